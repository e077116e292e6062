/**
 * Fills ClickHouse with the fleet's history: the planned events as a scorer stores them, with their
 * alerts and deliveries as the replication writes them, and for volume copies of the whole fleet
 * with their own ids, made inside the engine. A copy is a complete fleet: its farms are farms and
 * its users move between its own phones. Bodies are copied unchanged, so they name the first ids.
 */
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { decodeBatch, toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import {
  insertAlertRows,
  insertDeliveryRows,
  insertLabelRows,
  markRound,
} from '#shared/io/analytics/replica-rows-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createInstallWriter } from '#shared/io/installs/install-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { acceptVisits } from '../../../deploy/fleet/history/history-edge.ts'
import {
  type HistoryPlan,
  makeHistory,
  type Stories,
} from '../../../deploy/fleet/history/history-plan.ts'
import { encodeBatch, toWaiterBytes } from '../../../services/ingest/group-commit.ts'
import { insertLinks } from '../identity/phone-links.ts'
import { cookbookSpan, historyEndMs, historyStartMs } from './cookbook-span.ts'
import { type HistoryEvent, type RaisedHistory, raiseAlerts } from './history-alerts.ts'
import { toHistoryConnection } from './history-connections.ts'
import { makeRegistrations } from './history-installs.ts'
import { type HistoryLabel, makeLabels, toLabelRow } from './history-labels.ts'
import { makeLinks } from './history-phones.ts'

export type FleetHistory = RaisedHistory & {
  events: HistoryEvent[]
  stories: Stories
  labels: HistoryLabel[]
}

/** The tenant of the planned history; copies go to it and to the other two. */
export const fleetTenant = 'fleet'
const tenants = [fleetTenant, 'fleet-b', 'fleet-c']
const rowsPerInsert = 5_000

/**
 * Plans a history; the same seed gives the same bytes.
 * @param devices phones of the fleet, without the few that stories add
 */
export function planHistory(seed: number, devices: number): FleetHistory {
  const model = makeHistory(seed, devices, cookbookSpan)
  const events = makeEvents(model)
  const raised = raiseAlerts(seed, events, model.stories)
  return { events, stories: model.stories, labels: makeLabels(seed, events), ...raised }
}

function makeEvents(model: HistoryPlan): HistoryEvent[] {
  const tenant = {
    tenantId: fleetTenant,
    hmacSecret: 'the secret of the simulated fleet',
    policy: defaultPolicy,
    policyVersion: 1,
    policyHash: toPolicyHash(defaultPolicy),
  }
  const span = { startMs: historyStartMs, endMs: historyEndMs }
  return acceptVisits(model, tenant, span).map(({ phone, head, body }, index) => {
    const message = encodeBatch([{ head, body, bytes: toWaiterBytes(head, body), arrivedMs: 0 }])
    const decoded = decodeBatch(message, toStreamOffset(0, index + 1)).events[0]!
    const connection = toHistoryConnection(decoded, phone)
    const event = { ...decoded, ...(connection === undefined ? {} : { connection }) }
    return { event, phone, detected: findDetected(event.body.signals as Signals) }
  })
}

/** What the view of signals returns for an event, computed independently. */
function findDetected(signals: Signals): string[] {
  return Object.entries(signals)
    .flatMap(([category, values]) =>
      Object.entries(values)
        .filter(([name, value]) => value === (name !== 'app_attest_valid'))
        .map(([name]) => `${category}.${name}`),
    )
    .sort()
}

/** Stores the planned history. */
export async function insertHistory(clickhouse: Clickhouse, history: FleetHistory): Promise<void> {
  const { insertTelemetry } = createTelemetryStore(clickhouse)
  for (const some of pages(history.events)) {
    const outcome = await insertTelemetry(some.map(({ event }) => event))
    if (outcome.refused.length > 0) throw new Error('an event of the history was refused')
  }
  await createInstallWriter(clickhouse).insertRegistrations(makeRegistrations(history.events))
  await insertLinks(clickhouse, makeLinks(history.events))
  for (const some of pages(history.alertRows)) await insertAlertRows(clickhouse, 1, some)
  for (const some of pages(history.deliveryRows)) await insertDeliveryRows(clickhouse, 1, some)
  const labels = history.labels.map((label) => toLabelRow(fleetTenant, label))
  await insertLabelRows(clickhouse, 1, labels)
  await markRound(clickhouse, { round: 1, copiedAtMs: historyEndMs })
}

function* pages<T>(all: readonly T[]): Generator<T[]> {
  for (let at = 0; at < all.length; at += rowsPerInsert) yield all.slice(at, at + rowsPerInsert)
}

/** Copies in one insert: larger ones take more memory and no less time. */
const copiesPerInsert = 8

/**
 * Copies the stored history until there are enough events: of ten copies six go to the first
 * tenant, three to the second, one to the third. Tables that no analyst reads are left out.
 * @returns the events of all tenants
 */
export async function multiplyHistory(
  clickhouse: Clickhouse,
  history: FleetHistory,
  events: number,
): Promise<number> {
  const run = (query: string) => clickhouse.command({ query })
  for (const view of ['activity', 'sdk_baselines'])
    await run(`drop view if exists ${view}_of_telemetry`)
  await run(
    'create table seeds engine = MergeTree order by tuple() as ' +
      'select * except row_version from telemetry final',
  )
  for (const table of ['alerts_replica', 'deliveries_replica']) {
    await run(`create table seeds_${table} engine = MergeTree order by tuple() as
      select * from ${table} final`)
  }
  const copies = Math.max(1, Math.ceil(events / history.events.length))
  const half = Math.ceil(copies / 2)
  // Two at a time: one insert keeps one core busy.
  await Promise.all([
    insertCopies(run, { from: 1, to: half }),
    insertCopies(run, { from: Math.max(1, half), to: copies }),
  ])
  return copies * history.events.length
}

type Run = (query: string) => Promise<unknown>

async function insertCopies(run: Run, { from, to }: { from: number; to: number }): Promise<void> {
  for (let first = from; first < to; first += copiesPerInsert) {
    const numbers = Array.from(
      { length: Math.min(copiesPerInsert, to - first) },
      (_, n) => first + n,
    )
    const of = (table: string) =>
      numbers.map((copy) => `select *, ${copy} as copy from ${table}`).join(' union all ')
    const settings = 'settings max_threads = 1'
    await run(`insert into telemetry (* except row_version)
      select * replace (${ids(['device_id', 'session_id', 'event_id', 'user_id', 'account_id'])},
        ${tenantOf}, ${moved('received_at')}) except copy
      from (${of('seeds')}) ${settings}`)
    const shared = ['alert_id', 'device_id', 'event_id', 'user_id']
    await run(`insert into alerts_replica
      select * replace (${ids([...shared, 'session_id'])}, ${tenantOf}, ${moved('created_at')},
        seq * 10000 + copy as seq) except copy
      from (${of('seeds_alerts_replica')}) ${settings}`)
    await run(`insert into deliveries_replica
      select * replace (${ids([...shared, 'delivery_id'])}, ${tenantOf}, ${moved('created_at')})
        except copy
      from (${of('seeds_deliveries_replica')}) ${settings}`)
  }
}

/** An empty user id stays empty. */
const ids = (columns: string[]): string =>
  columns
    .map(
      (one) =>
        `if(${one} = '', '', concat('k', leftPad(toString(copy), 5, '0'), '-', ${one})) as ${one}`,
    )
    .join(', ')

const tenantOf = `multiIf(copy % 10 < 6, '${tenants[0]}', copy % 10 < 9, '${tenants[1]}',
  '${tenants[2]}') as tenant_id`

/** Up to ten minutes later, equally for the whole copy: order and distances stay. */
const moved = (column: string): string =>
  `${column} + toIntervalMillisecond(sipHash64(copy) % 600000) as ${column}`
