-- Who has an alert, and when it last changed.

alter table alerts_replica
  -- An operator's id; empty while nobody has it.
  add column if not exists assignee LowCardinality(String),
  -- The last change of its disposition, its assignee or its notes; null since it was raised.
  add column if not exists changed_at Nullable(DateTime64(3, 'UTC'));
