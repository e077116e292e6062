-- The identifiers by which alone an install may be on a known phone, while another one differs; so
-- it counts as a phone of its own among those that have them.
alter table phone_links add column if not exists doubtful Array(LowCardinality(String));

-- What an install was first seen with that does not change on one phone, as a text. Empty in rows of
-- an earlier release.
alter table phone_links add column if not exists fixed String codec(ZSTD(1));
