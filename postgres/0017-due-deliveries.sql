-- The sweep looks for what is due, whichever tenant it is of: with nothing due it reads one entry,
-- however many tenants have deliveries that wait for a retry. A claim changes no column of it.
create index deliveries_due_first on deliveries (due_at) where state = 'pending';
