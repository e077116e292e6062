-- Every accepted event. Ingest is at least once: a redelivered message inserts the same row again,
-- and a client's retry of the same bytes has the same event_id and a later received_at. Merges keep
-- the row that was received first; a reader that cannot wait for a merge says FINAL.

create table if not exists telemetry (
  tenant_id LowCardinality(String),
  device_id String,
  session_id String,
  event_id String,
  -- The event's place in its telemetry stream; 0 when it is unknown.
  stream_offset UInt64 codec(Delta, ZSTD(1)),
  -- The number of the telemetry stream, on which all events of the tenant lie.
  stream UInt8 default 1 codec(ZSTD(1)),
  received_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  -- The client's clock, which is never trusted.
  occurred_at Nullable(DateTime64(3, 'UTC')),
  -- Empty when the client sent none.
  user_id String,
  account_id String,
  sdk_version LowCardinality(String),
  platform LowCardinality(String),
  batch_type LowCardinality(String),
  -- The client's own verdict, which is advisory.
  client_score Float64,
  client_action LowCardinality(String),
  client_flags Array(LowCardinality(String)),
  -- The server's verdict, computed at the edge.
  rasp_score UInt8,
  rasp_action Enum8('ALLOW' = 0, 'REVIEW' = 1, 'BLOCK' = 2),
  flags Array(LowCardinality(String)),
  -- JSON text: [{"code","weight","evidence"}].
  reasons String codec(ZSTD(1)),
  policy_version UInt32,
  policy_hash LowCardinality(String),
  epoch UInt64,
  -- Read signals.root.su_binary directly. 256 paths hold the catalog and the additions of SDKs;
  -- rarer paths share a column, as do values of a third type. An array that is not of plain values
  -- of one type is stored as its JSON text.
  signals JSON(max_dynamic_paths = 256, max_dynamic_types = 2),
  -- The engine could not store the signals: they are {} here and complete in body.
  signals_refused Bool,
  -- Values of signals that only body has, because the tenant sends more names than there are paths.
  signals_left_out UInt16,
  -- The submission, byte for byte.
  body String codec(ZSTD(1)),
  -- A bit per category, in the order of the interface, that has at least one measured signal.
  filled_categories UInt8,
  -- category.signal of names that the catalog does not have, at most 32.
  unknown_signals Array(LowCardinality(String)),
  -- A bit per watched signal that was detected, and one per watched signal that was clean.
  detected_bits UInt64,
  clean_bits UInt64,
  -- category.signal of every boolean signal that was detected, sorted; computed from body where the
  -- insert leaves it out. Detected means true, and false for tamper.app_attest_valid.
  detected_signals Array(LowCardinality(String))
    default arraySlice(arraySort(arrayDistinct(arrayFlatten(arrayMap(
      category -> arrayMap(
        found -> concat(category, '.', found.1),
        arrayFilter(
          found -> length(found.1) <= 64
            and found.2 = if(category = 'tamper' and found.1 = 'app_attest_valid', 'false', 'true'),
          JSONExtractKeysAndValuesRaw(
            JSONExtract(body, 'signals', 'Map(String, String)')[category]
          )
        )
      ),
      ['root', 'emulator', 'debugger', 'tamper', 'ecosystem', 'network']
    )))), 1, 256),
  -- A key of signal_patterns; empty when the pattern was not stored.
  pattern LowCardinality(String),
  -- Which of device_id, session_id, user_id and account_id hold a placeholder such as "unknown".
  placeholder_ids Array(LowCardinality(String)),
  -- Of the app and the phone, where the body has them; empty otherwise.
  app_version LowCardinality(String),
  os_version LowCardinality(String),
  device_brand LowCardinality(String),
  device_model LowCardinality(String),
  row_version UInt64 materialized 18446744073709551615 - toUnixTimestamp64Milli(received_at),
  index event_id_bloom event_id type bloom_filter(0.01) granularity 1,
  index user_id_bloom user_id type bloom_filter(0.01) granularity 1,
  index account_id_bloom account_id type bloom_filter(0.01) granularity 1
)
engine = ReplacingMergeTree(row_version)
partition by toYYYYMM(received_at)
order by (tenant_id, device_id, session_id, event_id)
settings
  -- Each path of signals is up to ten files of a wide part, all open during a merge, so only large
  -- parts are wide.
  min_bytes_for_wide_part = 1073741824,
  -- Merges take about ten parts of a size instead of five: rows are rewritten less often.
  merge_selector_base = 10;

-- Distinct combinations of signals, reduced to what policies can see: no identifiers, numbers as
-- the lower bounds of ranges, only known texts. A backtest scores each pattern once and joins
-- events to it by telemetry.pattern; an event without a stored pattern is scored from its body. A
-- process adds at most 5,000 patterns per tenant and month, and a pattern in use is stored again
-- after a month.
create table if not exists signal_patterns (
  tenant_id LowCardinality(String),
  pattern String,
  -- The version of the ranges and texts.
  version UInt16,
  signals JSON(max_dynamic_paths = 256, max_dynamic_types = 2),
  -- category.signal of signals that the pattern leaves out.
  hidden Array(LowCardinality(String)),
  detected_bits UInt64,
  clean_bits UInt64,
  stored_on Date default toDate(now(), 'UTC')
)
engine = ReplacingMergeTree(stored_on)
order by (tenant_id, pattern)
ttl stored_on + interval 400 day
settings min_bytes_for_wide_part = 1073741824;
