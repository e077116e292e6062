-- When an operator last freed the names of unknown signals of a tenant. Scorers forget the names
-- that they admitted before.
alter table tenants add column signal_names_freed_at timestamptz;
