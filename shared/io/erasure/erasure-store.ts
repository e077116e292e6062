/**
 * Erases a device or a user from ClickHouse: raw events, activity and aggregates. The aggregates of
 * a device that other users share are rebuilt from the remaining events. Mutations write new parts
 * without the rows, and the old parts are then removed from disk.
 *
 * The text of a mutation remains in files and system tables of the server, so it contains hashes
 * instead of ids. Every step is idempotent, and the rows that lead from a user to its devices are
 * erased last: an interrupted erasure is completed by starting again.
 */
import type { CommandParams } from '@clickhouse/client'
import { sessionQueryMax } from '#shared/core/base/limits/history.ts'
import { quoteTexts } from '#shared/core/scoring/sql/scoring-sql-text.ts'
import { toHash, toKeyHash } from '#shared/core/velocity/key-hash.ts'
import { forgetHourlyCounts } from '#shared/io/analytics/counts/hourly-count-store.ts'
import type { Clickhouse, ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode, onEveryServer } from '#shared/io/clickhouse/shards.ts'
import {
  chunksOf,
  type ErasureTraces,
  mutationValuesMax,
  none,
  type ReplicaTable,
  replicaIds,
  replicaTables,
  toConditions,
  toEventCondition,
  toReplicaConditions,
} from './erasure-conditions.ts'
import {
  countedIdentities,
  eraseEarlierInstalls,
  identityTables,
  rebuildIdentityKeys,
  toKeyConditions,
} from './erasure-identity-store.ts'
import type { ErasureSubject } from './erasure-subject.ts'
import { forgetInStoredEvidence } from './forget-in-evidence.ts'
import { type CountMentions, createCountMentions } from './mentions-in-clickhouse.ts'
import { dropOldParts } from './old-parts.ts'
import {
  rebuildDevices,
  rebuildInstallKeys,
  rebuildSessions,
  rebuildUserDevices,
} from './rebuild-sql.ts'

const erasureTables = [
  'telemetry',
  'sessions',
  'devices',
  'user_devices',
  'activity',
  'alerts_replica',
  'deliveries_replica',
  'labels_replica',
  'reconciliation_entries',
  'decisions',
  'shadow_decisions',
  'replays',
  'installs',
  'install_keys',
  'phone_corrections_replica',
  ...identityTables,
] as const
export type ErasureTable = (typeof erasureTables)[number]

/** Tables whose mutations leave replaced parts. */
const droppedTables = [
  ...erasureTables,
  'reconciliation_expected_alerts',
  'hourly_counts',
  'daily_counts',
]

export type ErasureStore = {
  /**
   * @param earlier of a pass that may have erased what leads to rows that it left
   */
  readTraces: (
    subject: ErasureSubject,
    lastStreamOffset: number,
    earlier: ErasureTraces | null,
  ) => Promise<ErasureTraces>
  /** Counts the rows to erase, by table. An aggregate counts once, merged or not. */
  countRows: (traces: ErasureTraces) => Promise<Record<ErasureTable, number>>
  countMentions: CountMentions
  /** Events of the subject that came after the cut. */
  countLater: (traces: ErasureTraces) => Promise<number>
  /** Erases activity, raw events and aggregates, but not a user's `user_devices`. */
  eraseRows: (traces: ErasureTraces) => Promise<void>
  /** Removes these alerts from reconciliation. Call it before they are erased. */
  eraseExpectedAlerts: (tenantId: string, alertIds: readonly string[]) => Promise<void>
  /**
   * Erases copies of alerts, deliveries and corrections of phones, once they are gone from Postgres
   * and none is copied, and takes a device out of what was decided of others.
   */
  eraseReplicas: (traces: ErasureTraces) => Promise<void>
  /**
   * Puts the aggregates of what remains back, then erases the traces themselves. All inserts that
   * were under way when `eraseRows` returned must have ended.
   */
  rebuild: (traces: ErasureTraces) => Promise<void>
  /** Removes what was counted of the tenant's hours. Call it while none is counted. */
  forgetHourlyCounts: (tenantId: string) => Promise<void>
  /**
   * Has the parts that mutations replaced removed from the disk.
   * @returns how many are still there after the limit
   */
  dropOldParts: (limitMs: number) => Promise<number>
}

export function createErasureStore(clickhouse: Clickhouse): ErasureStore {
  return {
    readTraces: async (subject, lastStreamOffset, earlier) => {
      const found = await readTraces(clickhouse, subject, lastStreamOffset)
      return earlier === null ? found : addTraces(found, earlier)
    },
    countRows: (traces) => countRows(clickhouse, traces),
    countMentions: createCountMentions(clickhouse),
    countLater: async (traces) => {
      const { where, params } = toConditions(traces)
      const text = `select count() from telemetry where ${where.anyTelemetry}
        and stream_offset > {last:UInt64}`
      return Number((await read<[number]>(clickhouse, text, params))[0]![0])
    },
    eraseRows: async (traces) => {
      const { where } = toConditions(traces)
      for (const some of chunksOf(traces.eventHashes, mutationValuesMax)) {
        await eraseNamed(clickhouse, traces, some)
        await mutate(clickhouse, traces, 'activity', toEventCondition(some))
      }
      for (const table of rowTables) {
        if (where[table] !== none) await mutate(clickhouse, traces, table, where[table])
      }
      if (traces.subject.kind === 'device') {
        await mutate(clickhouse, traces, 'user_devices', where.user_devices)
        await eraseEarlierInstalls(clickhouse, traces.subject.tenantId, where.is)
      }
    },
    eraseExpectedAlerts: async (tenantId, alertIds) => {
      for (const some of chunksOf(alertIds, mutationValuesMax)) {
        await commandAll(clickhouse, {
          // In the text: a parameter of a mutation travels in the address, which takes 128 KiB.
          query: `alter table reconciliation_expected_alerts delete where tenant_id = {tenant:String}
            and alert_id in ${quoteTexts(some)}`,
          query_params: { tenant: tenantId },
          clickhouse_settings: { mutations_sync: '2', max_query_size: String(queryBytesMax) },
        })
      }
    },
    eraseReplicas: async (traces) => {
      for (const table of replicaTables) {
        for (const condition of toReplicaConditions(traces, table)) {
          await mutate(clickhouse, traces, table, condition)
        }
      }
      if (traces.subject.kind !== 'device') return
      const { is, phone_corrections_replica: corrections } = toConditions(traces).where
      await mutate(clickhouse, traces, 'phone_corrections_replica', corrections)
      await forgetInStoredEvidence(clickhouse, traces.subject.tenantId, is)
    },
    rebuild: (traces) => rebuild(clickhouse, traces),
    forgetHourlyCounts: (tenantId) => forgetHourlyCounts(clickhouse, tenantId),
    dropOldParts: async (limitMs) => {
      const left = await onEveryServer(clickhouse, (server) =>
        dropOldParts(server, droppedTables, limitMs),
      )
      return left.reduce((sum, one) => sum + one, 0)
    },
  }
}

const queryBytesMax = 16 * 1024 * 1024

type Params = Record<string, unknown>

/** Every node changes the rows that it has. */
async function commandAll(clickhouse: Clickhouse, command: CommandParams): Promise<void> {
  await onEveryNode(clickhouse, (node) => node.command(command))
}

async function read<Row>(
  clickhouse: ClickhouseNode,
  query: string,
  params: Params,
): Promise<Row[]> {
  const result = await clickhouse.query({
    query,
    query_params: params,
    use_multipart_params_auto: true,
    clickhouse_settings: { max_query_size: String(queryBytesMax) },
    format: 'JSONCompactEachRow',
  })
  return result.json<Row>()
}

async function readTraces(
  clickhouse: Clickhouse,
  subject: ErasureSubject,
  lastStreamOffset: number,
): Promise<ErasureTraces> {
  const { tenantId: tenant, kind, id } = subject
  const params = { tenant, id, last: lastStreamOffset }
  const [[sipHash]] = (await read<[string]>(
    clickhouse,
    'select toString(sipHash64({id:String}))',
    params,
  )) as [[string]]
  const devices = kind === 'device' ? [] : await readDevices(clickhouse, subject)
  const eventIds: string[] = []
  const sessionIds = new Set<string>()
  const ofDevices = kind === 'device' ? [[id]] : chunksOf(toIds(devices), sessionQueryMax)
  for (const some of ofDevices) {
    const found = await read<[string, string]>(
      clickhouse,
      `select distinct event_id, session_id from telemetry
       where tenant_id = {tenant:String} and device_id in {devices:Array(String)}
         and stream_offset <= {last:UInt64}
         ${kind === 'user' ? 'and (user_id = {id:String} or account_id = {id:String})' : ''}`,
      { ...params, devices: some },
    )
    for (const [eventId, sessionId] of found) {
      eventIds.push(eventId)
      sessionIds.add(sessionId)
    }
  }
  // A retry's row is in the activity alone once merges have run, and so is what was interrupted.
  const active = await read<[string]>(
    clickhouse,
    `select distinct toString(event_hash) from activity
     where tenant_id = {tenant:String} and key_hash = {key:UInt64}
       and stream_offset <= {last:UInt64}`,
    { ...params, key: BigInt(toKeyHash(kind, id)) },
  )
  const hashes = new Set([...eventIds.map(toHash), ...active.map(([eventHash]) => eventHash)])
  return {
    subject,
    lastStreamOffset,
    sipHash,
    devices,
    eventIds,
    eventHashes: [...hashes],
    sessionIds: [...sessionIds],
  }
}

/** Devices are not added: what leads to them goes last. */
function addTraces(found: ErasureTraces, earlier: ErasureTraces): ErasureTraces {
  return {
    ...found,
    eventIds: [...new Set([...earlier.eventIds, ...found.eventIds])],
    eventHashes: [...new Set([...earlier.eventHashes, ...found.eventHashes])],
    sessionIds: [...new Set([...earlier.sessionIds, ...found.sessionIds])],
  }
}

const toIds = (devices: ErasureTraces['devices']): string[] => devices.map((device) => device.id)

async function readDevices(
  clickhouse: Clickhouse,
  { tenantId, id }: ErasureSubject,
): Promise<ErasureTraces['devices']> {
  const found = await read<[string, string]>(
    clickhouse,
    `select distinct device_id, toString(sipHash64(device_id)) from user_devices
     where tenant_id = {tenant:String} and user_id = {user:String}`,
    { tenant: tenantId, user: id },
  )
  return found.map(([device, sipHash]) => ({ id: device, sipHash }))
}

/** Whether a reconciliation entry names an event of the subject. */
const isNamed = (eventHashes: readonly string[]): string => `(id, place) ->
  stream_offset + place <= {last:UInt64} and
  reinterpretAsUInt64(SHA256(concat('evt_', left(base64URLEncode(id), 22)))) in (${eventHashes.join(',')})`

/**
 * Takes events out of the reconciliation entries, which keep their number: that many were erased.
 */
async function eraseNamed(
  clickhouse: Clickhouse,
  { subject, lastStreamOffset }: ErasureTraces,
  eventHashes: readonly string[],
): Promise<void> {
  const kept = `arrayMap(named -> not named, arrayMap(${isNamed(eventHashes)}, ids, places))`
  await commandAll(clickhouse, {
    query: `alter table reconciliation_entries update
      ids = arrayFilter((one, keep) -> keep, ids, ${kept}),
      places = arrayFilter((one, keep) -> keep, places, ${kept})
      where tenant_id = {tenant:String} and arrayExists(${isNamed(eventHashes)}, ids, places)`,
    query_params: { tenant: subject.tenantId, last: lastStreamOffset },
    clickhouse_settings: { mutations_sync: '2', max_query_size: String(queryBytesMax) },
  })
}

/** Erased by the id of the subject in each row. Events are erased before what is made of them. */
const rowTables = [
  ...(['decisions', 'shadow_decisions', 'replays', 'telemetry', 'sessions', 'devices'] as const),
  ...(['installs', 'install_keys', ...identityTables] as const),
]

type CountedOnce = Exclude<ErasureTable, 'activity' | 'reconciliation_entries' | ReplicaTable>

const countedOnce: Record<CountedOnce, string> = {
  telemetry: 'count()',
  decisions: 'uniqExact(event_id)',
  shadow_decisions: 'uniqExact(event_id)',
  replays: 'uniqExact(event_id, hour)',
  installs: 'uniqExact(token_id)',
  install_keys: 'uniqExact(key_hash, kind, issuer_hash)',
  phone_corrections_replica: 'uniqExact(device_id)',
  ...countedIdentities,
  sessions: 'uniqExact(device_id, session_id)',
  devices: 'uniqExact(device_id)',
  user_devices: 'uniqExact(user_id, device_id)',
}

async function countRows(
  clickhouse: Clickhouse,
  traces: ErasureTraces,
): Promise<Record<ErasureTable, number>> {
  const { where, params } = toConditions(traces)
  const counts = toZeros()
  const count = async (table: ErasureTable, what: string, condition: string) => {
    const text = `select ${what} from ${table} where ${condition}`
    counts[table] += Number((await read<[number]>(clickhouse, text, params))[0]![0])
  }
  for (const [table, what] of Object.entries(countedOnce)) {
    const name = table as keyof typeof countedOnce
    await count(name, what, where[name])
  }
  for (const some of chunksOf(traces.eventHashes, mutationValuesMax)) {
    await count('activity', 'count()', toEventCondition(some))
    const named = `sum(arrayCount(${isNamed(some)}, ids, places))`
    await count('reconciliation_entries', named, 'tenant_id = {tenant:String}')
  }
  for (const table of replicaTables) {
    for (const condition of toReplicaConditions(traces, table)) {
      await count(table, `uniqExact(created_at, ${replicaIds[table]})`, condition)
    }
  }
  return counts
}

const toZeros = () =>
  Object.fromEntries(erasureTables.map((table) => [table, 0])) as Record<ErasureTable, number>

/** Returns once the rows are in no part that is read any more. */
async function mutate(
  clickhouse: Clickhouse,
  { subject, lastStreamOffset }: ErasureTraces,
  table: ErasureTable,
  condition: string,
): Promise<void> {
  await commandAll(clickhouse, {
    query: `alter table ${table} delete where ${condition}`,
    query_params: { tenant: subject.tenantId, last: lastStreamOffset },
    clickhouse_settings: { mutations_sync: '2', max_query_size: String(queryBytesMax) },
  })
}

async function rebuild(clickhouse: Clickhouse, traces: ErasureTraces): Promise<void> {
  const { subject } = traces
  const isDevice = subject.kind === 'device'
  // Read again: the user may have come to another device while rows were erased.
  const devices = isDevice ? [] : await readDevices(clickhouse, subject)
  const ids = isDevice ? [subject.id] : toIds(devices)
  const insert = async (...queries: string[]) => {
    for (const query of queries) await insertFor(query)
  }
  const insertFor = async (query: string) => {
    for (const some of chunksOf(ids, sessionQueryMax)) {
      // The rows of a device, and what is made from them, are on one node.
      await commandAll(clickhouse, {
        query,
        query_params: { tenant: subject.tenantId, devices: some, id: subject.id },
        use_multipart_params_auto: true,
      })
    }
  }
  await insert(...rebuildSessions)
  await insert(rebuildDevices)
  // Just before they are put back: installs that are decided meanwhile need them.
  for (const some of chunksOf(devices, mutationValuesMax)) {
    const { identity_keys, identity_samples } = toKeyConditions(some.map(({ sipHash }) => sipHash))
    await mutate(clickhouse, traces, 'identity_keys', identity_keys)
    await mutate(clickhouse, traces, 'identity_samples', identity_samples)
  }
  for (const some of chunksOf(ids, sessionQueryMax)) {
    await rebuildIdentityKeys(clickhouse, subject.tenantId, some)
  }
  if (isDevice) {
    await insert(...rebuildUserDevices(''))
    // Its keys may be on another node.
    const query_params = { tenant: subject.tenantId, devices: ids }
    return clickhouse.command({ query: rebuildInstallKeys, query_params }).then(() => undefined)
  }
  const { where } = toConditions(traces)
  for (const some of chunksOf(devices, mutationValuesMax)) {
    const these = `sipHash64(device_id) in (${some.map((device) => device.sipHash).join(',')})`
    await mutate(clickhouse, traces, 'user_devices', `${where.user_devices} and ${these}`)
  }
  await insert(...rebuildUserDevices('and user = {id:String}'))
}
