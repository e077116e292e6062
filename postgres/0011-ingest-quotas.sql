-- What a tenant may send in bytes per second, and the share of the telemetry stream that it may have
-- waiting undecided; null means the product's default.
alter table tenants
  add column ingest_bytes_per_second double precision,
  add column ingest_bytes_burst double precision,
  add column ingest_share double precision,
  -- A burst takes the largest body.
  add constraint an_ingest_rate_in_bytes_is_whole_and_takes_any_body
    check (num_nulls(ingest_bytes_per_second, ingest_bytes_burst) in (0, 2)
      and ingest_bytes_per_second > 0 and ingest_bytes_burst >= 65536),
  add constraint an_ingest_share_leaves_room check (ingest_share > 0 and ingest_share <= 0.9);
