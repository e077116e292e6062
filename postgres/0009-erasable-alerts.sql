-- What an erasure of a user looks for, while it keeps new alerts of the tenant waiting: the alerts
-- that name the user, and those that events of the user deserved.
create index alerts_of_user on alerts (tenant_id, user_id) where user_id is not null;
create index alerts_of_event on alerts (tenant_id, event_id);
