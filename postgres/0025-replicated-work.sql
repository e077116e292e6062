-- Replication of who has an alert and of when it last changed: changes of assignees and notes record
-- the transaction that wrote them, as dispositions do. Rows from before have none: they are copied
-- with everything else by the first round of a release that knows these columns.

alter table alert_assignments add column written_by_xid xid8;
alter table alert_assignments alter column written_by_xid set default pg_current_xact_id();
create index assignments_by_xid on alert_assignments (written_by_xid);

alter table alert_notes add column written_by_xid xid8;
alter table alert_notes alter column written_by_xid set default pg_current_xact_id();
create index notes_by_xid on alert_notes (written_by_xid);

-- The last round that copied every column. An older release beside this one completes rounds
-- without raising it; after such a round everything is copied again.
alter table replication_state add column whole_round bigint not null default 0;
