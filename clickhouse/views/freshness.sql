create or replace view {analytics:Identifier}.freshness (
  copied_at DateTime64(3, 'UTC')
    comment 'Alerts, dispositions and deliveries are here as they were committed at this instant.'
) as
select replicated_at as copied_at from replication_rounds final
comment 'Up to when alerts, dispositions, reasons and deliveries are copied. Events are here within a second of being accepted.';
