-- Times that a telemetry stream was put back to an earlier copy. From `first_sequence` on the stream
-- used sequences again, and their stream offsets begin at `base_ms` instead of `created_ms`.

create table stream_incarnations (
  stream text not null,
  -- Only one scorer can take a number.
  number integer not null,
  -- When the stream was created: it tells a stream from a later one of the same name.
  created_ms bigint not null,
  first_sequence bigint not null,
  base_ms bigint not null,
  noticed_at timestamptz not null default now(),
  primary key (stream, number),
  constraint an_incarnation_begins_after_the_creation_of_its_stream check (base_ms > created_ms),
  constraint sequences_start_at_1 check (first_sequence >= 1)
);
