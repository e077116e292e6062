-- A device with 100,000 sessions is counted and paged by the hash of their ids: 8 bytes of each to
-- read instead of all of it. A part that is there already gets it when it is merged; until then the
-- hash is computed from the id as it is read.
alter table sessions add column if not exists session_hash UInt64 default cityHash64(session_id);
