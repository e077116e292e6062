/**
 * Shards of ClickHouse: which of them has a row. The shard follows from a hash of the row's key and
 * the number of shards alone, so a key never moves while that number stays.
 */

/** The name of the cluster in every server's `remote_servers`, its shards in their order. */
export const clusterName = 'device_intelligence'

/** The database of the tables of all shards, on each of them, beside a shard's own database. */
export const toAllDatabase = (database: string): string => `${database}_all`

/**
 * @param keyHash 64 bits in decimal, as `toKeyHash` makes them
 * @returns from 0
 */
export function shardOf(keyHash: string, shards: number): number {
  return Number(BigInt(keyHash) % BigInt(shards))
}

// As `toKeyHash('device', id)` computes it: the activity of a device lies with its history.
const ofDevice = "reinterpretAsUInt64(SHA256(concat('device ', device_id)))"
// `reconciliation` compares a tenant's numbers; a removal of a copied row knows no device.
const ofTenant = 'reinterpretAsUInt64(SHA256(tenant_id))'

/**
 * SQL of the hash that chooses the shard of a row, by table. Tables that are not here have few rows
 * without a tenant, all on the first shard.
 */
const shardingKeys: Readonly<Record<string, string>> = {
  telemetry: ofDevice,
  sessions: ofDevice,
  devices: ofDevice,
  user_devices: ofDevice,
  decisions: ofDevice,
  installs: ofDevice,
  replays: ofDevice,
  shadow_decisions: ofDevice,
  activity: 'key_hash',
  // Where its events are: only views write it.
  sdk_baselines: ofTenant,
  // A key and its issuer are on one shard.
  install_keys: ofTenant,
  // Phones with a key in common are read together.
  identity_keys: ofTenant,
  identity_samples: ofTenant,
  phone_links: ofTenant,
  phone_installs: ofTenant,
  signal_patterns: ofTenant,
  alerts_replica: ofTenant,
  deliveries_replica: ofTenant,
  phone_corrections_replica: ofTenant,
  labels_replica: ofTenant,
  reconciliation_entries: ofTenant,
  reconciliation_accepted: ofTenant,
  reconciliation_expected_alerts: ofTenant,
  reconciliation_cutoffs: ofTenant,
  prevalence_spikes: ofTenant,
  hourly_counts: ofTenant,
  hourly_marks: ofTenant,
  daily_counts: ofTenant,
  daily_marks: ofTenant,
}

/**
 * SQL: creates, or follows a change of, the table of all shards beside a shard's own.
 * @param names.all the database of such tables
 */
export function toDistributedTable(names: {
  all: string
  database: string
  table: string
}): string {
  const { all, database, table } = names
  const key = shardingKeys[table] ?? '0'
  return `create or replace table \`${all}\`.\`${table}\` as \`${database}\`.\`${table}\`
    engine = Distributed('${clusterName}', '${database}', '${table}', ${key})`
}
