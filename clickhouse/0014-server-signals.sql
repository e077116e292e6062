-- What the service itself observed or verified of an event, from the head that the edge wrote. The
-- columns are empty in rows from before. They are not made from body: a client cannot write them.

alter table telemetry
  -- As signals: read server_signals.attestation.verified directly. Only edges choose the names.
  add column if not exists server_signals JSON(max_dynamic_paths = 64, max_dynamic_types = 2),
  -- category.signal of every boolean server signal that was true and says that something is wrong.
  add column if not exists detected_server_signals Array(LowCardinality(String));

alter table signal_patterns
  add column if not exists server_signals JSON(max_dynamic_paths = 64, max_dynamic_types = 2);
