-- What SDK versions usually send: how many devices each was seen on by the hour, and on how many of
-- those a category of signals came empty. A category that hardly any device of a version leaves
-- empty was stripped where it is missing. It is counted which devices ever sent a category empty,
-- not which ever filled it: an SDK that leaves categories out of some of its batches does so on
-- every device, and then nothing is unusual about it.
--
-- Devices are places of a bitmap, 65,536 of them for the hash of the id. So a state is a set: events
-- that are inserted again, in any order, change no bit of it, and it is at most 8 KB however many
-- devices there are. (uniqCombined is smaller, but at the size where it changes its inner form, 256
-- with precision 12, its answer depends on whether something came twice.) Reading corrects for
-- devices that share a place.
--
-- Versions and platforms are what clients say. A hostile one can fill the table with names: a row
-- of some hundred bytes for an event that costs more in telemetry itself, among its own tenant's
-- rows only, and gone after eight days: 24 hours are read, and five days may wait out an outage.

create table if not exists sdk_norms (
  tenant_id LowCardinality(String),
  sdk_version String,
  platform String,
  -- Of the edge's clock.
  hour DateTime('UTC'),
  devices AggregateFunction(groupBitmap, UInt16),
  -- Of those, the devices that sent the category empty at least once.
  empty_root AggregateFunction(groupBitmap, UInt16),
  empty_emulator AggregateFunction(groupBitmap, UInt16),
  empty_debugger AggregateFunction(groupBitmap, UInt16),
  empty_tamper AggregateFunction(groupBitmap, UInt16),
  empty_ecosystem AggregateFunction(groupBitmap, UInt16),
  empty_network AggregateFunction(groupBitmap, UInt16)
)
engine = AggregatingMergeTree
order by (tenant_id, sdk_version, platform, hour)
ttl hour + interval 8 day
-- Reads are by key: what is decompressed for one of them is a few rows.
settings index_granularity = 256, min_compress_block_size = 4096, max_compress_block_size = 16384;

create materialized view if not exists sdk_norms_of_telemetry to sdk_norms as
select
  tenant_id,
  sdk_version,
  platform,
  toStartOfHour(received_at) as hour,
  groupBitmapState(place) as devices,
  groupBitmapStateIf(place, not bitTest(filled_categories, 0)) as empty_root,
  groupBitmapStateIf(place, not bitTest(filled_categories, 1)) as empty_emulator,
  groupBitmapStateIf(place, not bitTest(filled_categories, 2)) as empty_debugger,
  groupBitmapStateIf(place, not bitTest(filled_categories, 3)) as empty_tamper,
  groupBitmapStateIf(place, not bitTest(filled_categories, 4)) as empty_ecosystem,
  groupBitmapStateIf(place, not bitTest(filled_categories, 5)) as empty_network
from (
  select
    tenant_id,
    sdk_version,
    platform,
    received_at,
    filled_categories,
    toUInt16(bitAnd(sipHash64(device_id), 65535)) as place
  from telemetry
)
group by tenant_id, sdk_version, platform, hour;
