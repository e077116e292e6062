create or replace view {analytics:Identifier}.prevalence_spikes (
  tenant_id LowCardinality(String) comment 'The tenant.',
  platform String comment 'android, ios or another, in lower case.',
  sdk_version String comment 'The SDK''s version.',
  signal String comment 'category.signal',
  started_at DateTime64(3, 'UTC')
    comment 'The beginning of the 24 hours in which the spike was found.',
  checked_at DateTime64(3, 'UTC') comment 'When it was looked at last.',
  ended_at Nullable(DateTime64(3, 'UTC'))
    comment 'When the share was back, or had become the usual; null while it goes on.',
  share Float64 comment 'The share of the version''s devices that had it, in the last 24 hours.',
  earlier_share Nullable(Float64)
    comment 'The same share on the days before; null when the version is new.',
  elsewhere_share Nullable(Float64)
    comment 'The share on the platform''s other versions; null when there is hardly any.',
  z_score Float64
    comment 'How far beyond chance the difference is, in standard deviations: the smaller of both.',
  devices UInt64 comment 'Devices of the version that had it since the spike began.',
  alerts UInt64 comment 'Alerts of those devices since then whose reasons name it.'
) as
select
  tenant_id,
  {{platform}} as platform,
  sdk_version, signal, started_at, checked_at, ended_at, share,
  earlier_share, elsewhere_share, z_score, devices, alerts
from prevalence_spikes final
comment 'Signals whose share of devices rose abruptly within one SDK version: mostly a release that is wrong. Found by the console, which looks every hour. Cheap by tenant.';
