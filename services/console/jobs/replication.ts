/**
 * Replicates alerts, their dispositions, deliveries, labels and corrections of phones to
 * ClickHouse, where fraud teams query them.
 * A lease lets one console run a round at a time. A round reads one snapshot of Postgres and
 * copies exactly the changes since the last snapshot. It is recorded once its rows are stored, so
 * an interrupted round is repeated, and a repeated copy changes nothing. Deliveries are never
 * delayed: the job writes only to its own tables.
 */
import { hourMs } from '#shared/core/base/instants.ts'
import {
  findChangedCorrections,
  insertCorrectionRows,
} from '#shared/io/analytics/correction-replica-store.ts'
import {
  insertAlertRows,
  insertDeliveryRows,
  insertLabelRows,
  insertRemovals,
  markRound,
  purgeRemovals,
  readMark,
  removeMonth,
  removeOlderRounds,
} from '#shared/io/analytics/replica-rows-store.ts'
import {
  type AlertKey,
  type AlertReplicaRow,
  beginRound,
  findChangedAlerts,
  findChangedDeliveries,
  findNewLabels,
  findRemovals,
  findRemovedMonths,
  findTenantsBehind,
  fixSnapshot,
  forgetCopied,
  type ReplicationState,
  readAlerts,
  readAlertsAfter,
  readDeliveries,
  readDeliveriesAfter,
  readDeliveriesOfAlerts,
  readLabels,
  readLabelsAfter,
  readReplicationState,
  recordCopied,
  replicationLease,
  type TenantSeq,
} from '#shared/io/analytics/replication-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { preferKeyLookups } from '#shared/io/deliveries/key-lookups.ts'
import { type Lease, type Leases, withLease } from '#shared/io/leases/leases.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '../../../shared/io/process/poll.ts'

type ReplicationDeps = {
  postgres: Postgres
  leases: Leases
  clickhouse: Clickhouse
  log: Log
  metrics: Metrics
  /** The monotonic clock, and the wall clock. */
  nowMs: () => number
  wallMs: () => number
  /** Rows in one read and one insert. */
  pageRows?: number
}

export type Replication = {
  /** One round. @returns `idle` without changes, `elsewhere` when another console has the lease */
  runRound: () => Promise<'copied' | 'idle' | 'elsewhere'>
  /** Runs rounds until it is stopped. */
  start: () => Poller
}

/** The interval between rounds. */
const pollMs = 2_000
/** How often an idle round is marked. */
const idleMarkMs = 5_000
/** How often removed rows are purged by a mutation. */
const purgeMs = hourMs
const usualPageRows = 2_000

type State = Required<ReplicationDeps> & {
  copiedRows: (kind: string, count: number) => void
  copiedAtMs: number
  markedAtMs: number
  purgedAtMs: number
}

/** Creates the replication of one console. */
export function createReplication(deps: ReplicationDeps): Replication {
  const { metrics } = deps
  const rows = metrics.counter(
    'di_replication_rows_total',
    'Rows replicated from Postgres to ClickHouse, by kind',
    ['kind'],
  )
  const rounds = metrics.counter('di_replication_rounds_total', 'Replication rounds, by outcome', [
    'outcome',
  ])
  const state: State = {
    pageRows: usualPageRows,
    ...deps,
    copiedRows: (kind, count) => rows.inc({ kind }, count),
    // Before the first round the age is unknown; it counts from the start.
    copiedAtMs: deps.wallMs(),
    markedAtMs: Number.NEGATIVE_INFINITY,
    // The first purge is a minute after the start, since a console may stop within the hour.
    purgedAtMs: deps.nowMs() - purgeMs + 60_000,
  }
  metrics.gauge(
    'di_replication_lag_seconds',
    'Age of the replicated alerts and deliveries; since the start before it is known',
    {
      collect() {
        this.set(Math.max(0, deps.wallMs() - state.copiedAtMs) / 1000)
      },
    },
  )
  const runRound: Replication['runRound'] = async () => {
    const outcome = await withLease(deps.leases, replicationLease, (lease) =>
      copyRound(state, lease),
    )
    // The lag is the same for the rows that another console copied.
    if (outcome === null) {
      const { copiedAtMs } = await readMark(deps.clickhouse)
      // There is no mark before the first copy is complete.
      if (copiedAtMs > 0) state.copiedAtMs = copiedAtMs
    }
    return outcome ?? 'elsewhere'
  }
  return {
    runRound,
    start: () =>
      startPolling(async () => rounds.inc({ outcome: await runRound() }), {
        log: deps.log,
        everyMs: pollMs,
        failure: 'alerts and deliveries cannot be replicated',
        onFailure: () => rounds.inc({ outcome: 'failed' }),
      }),
  }
}

async function copyRound(state: State, lease: Lease): Promise<'copied' | 'idle'> {
  const { postgres, nowMs } = state
  const clickhouse = lease.fence(state.clickhouse)
  const mark = await readMark(clickhouse)
  const before = await readTrusted(postgres, lease, mark.round)
  const numbered = numberRound(lease, before, mark.round)
  const round: Round = {
    copiedRows: state.copiedRows,
    pageRows: state.pageRows,
    clickhouse,
    copied: before.copied,
    corrected: before.copied === null ? null : before.corrected,
    numberOf: numbered.take,
    deliveryIds: new Set(),
  }
  const { snapshot, atMs, seqs } = await postgres.withSession((session) =>
    session.transaction(async (tx) => {
      const fixed = await fixSnapshot(tx)
      await preferKeyLookups(tx)
      return { ...fixed, seqs: await copyAll(round, tx) }
    }),
  )
  const number = numbered.taken()
  state.copiedAtMs = atMs
  if (number !== null) {
    if (before.copied === null) await removeOlderRounds(clickhouse, number)
    await markRound(clickhouse, { round: number, copiedAtMs: atMs })
    await recordCopied(lease, { snapshot, round: number, seqs })
    state.markedAtMs = nowMs()
  } else if (nowMs() - state.markedAtMs >= idleMarkMs) {
    await markRound(clickhouse, { round: before.round, copiedAtMs: atMs })
    state.markedAtMs = nowMs()
  }
  if (nowMs() - state.purgedAtMs >= purgeMs) {
    await purgeRemovals(clickhouse)
    state.purgedAtMs = nowMs()
  }
  return number === null ? 'idle' : 'copied'
}

/**
 * The state, unless one of the stores lost what the other remembers (it was restored, or
 * moved): then everything is copied again.
 */
async function readTrusted(
  postgres: Postgres,
  lease: Lease,
  marked: number,
): Promise<ReplicationState> {
  const state = await readReplicationState(postgres)
  if (state.copied === null) return state
  if (state.own && state.completed <= marked && marked <= state.round) return state
  await forgetCopied(lease)
  return { ...state, copied: null, corrected: null }
}

/** Assigns the round's number before its first row is written; a round without rows gets none. */
function numberRound(lease: Lease, before: ReplicationState, marked: number) {
  let number: number | null = null
  const take = async (): Promise<number> => {
    number ??= await beginRound(lease, Math.max(before.round, marked))
    return number
  }
  return { take, taken: () => number }
}

type Round = Pick<State, 'clickhouse' | 'copiedRows' | 'pageRows'> & {
  copied: string | null
  corrected: string | null
  numberOf: () => Promise<number>
  /** Deliveries written with new alerts: all reads of a round are of one snapshot. */
  deliveryIds: Set<string>
}

/** @returns up to which `seq` the alerts of which tenants are copied */
async function copyAll(round: Round, tx: Queryable): Promise<TenantSeq[]> {
  const { copied } = round
  // A first copy is a round even without rows: its snapshot is the start of the next one.
  if (copied === null) await round.numberOf()
  const seqs: TenantSeq[] = []
  for (const { tenantId, copied: seq, last } of await findTenantsBehind(tx)) {
    await copyAlertsAfter(round, tx, { tenantId, seq })
    seqs.push({ tenantId, seq: last })
  }
  // The sequence moved even if the alerts behind it are erased again.
  if (seqs.length > 0) await round.numberOf()
  if (copied === null) {
    await copyAllDeliveries(round, tx)
    await copyAllLabels(round, tx)
  } else {
    await copyNewLabels(round, tx, copied)
    await copyChanges(round, tx, copied)
  }
  for (const some of pagesOf(round, await findChangedCorrections(tx, round.corrected))) {
    await insertCorrectionRows(round.clickhouse, await round.numberOf(), some)
    round.copiedRows('phone_correction', some.length)
  }
  return seqs
}

async function copyAlertsAfter(round: Round, tx: Queryable, from: TenantSeq): Promise<void> {
  const { pageRows } = round
  for (let seq = from.seq; ; ) {
    const alerts = await readAlertsAfter(tx, { tenantId: from.tenantId, seq }, pageRows)
    await writeAlerts(round, alerts)
    // A first copy reads all deliveries later.
    if (round.copied !== null) {
      const deliveries = await readDeliveriesOfAlerts(tx, alerts.map(toKey))
      await writeDeliveries(round, deliveries)
      for (const row of deliveries) round.deliveryIds.add(row.delivery_id)
    }
    if (alerts.length < pageRows) return
    seq = alerts.at(-1)!.seq
  }
}

const toKey = (row: AlertReplicaRow): AlertKey => ({
  tenantId: row.tenant_id,
  alertId: row.alert_id,
})

async function copyAllDeliveries(round: Round, tx: Queryable): Promise<void> {
  for (let after = ''; ; ) {
    const deliveries = await readDeliveriesAfter(tx, after, round.pageRows)
    await writeDeliveries(round, deliveries)
    if (deliveries.length < round.pageRows) return
    after = deliveries.at(-1)!.delivery_id
  }
}

async function copyAllLabels(round: Round, tx: Queryable): Promise<void> {
  for (let after = ''; ; ) {
    const labels = await readLabelsAfter(tx, after, round.pageRows)
    await writeLabels(round, labels)
    if (labels.length < round.pageRows) return
    after = labels.at(-1)!.label_id
  }
}

async function copyNewLabels(round: Round, tx: Queryable, copied: string): Promise<void> {
  for (const some of pagesOf(round, await findNewLabels(tx, copied))) {
    await writeLabels(round, await readLabels(tx, some))
  }
}

async function copyChanges(round: Round, tx: Queryable, copied: string): Promise<void> {
  for (const some of pagesOf(round, await findChangedAlerts(tx, copied))) {
    await writeAlerts(round, await readAlerts(tx, some))
  }
  const changed = await findChangedDeliveries(tx, copied)
  // A new alert's first delivery is mostly tried by now, and is written with its alert.
  for (const some of pagesOf(
    round,
    changed.filter((id) => !round.deliveryIds.has(id)),
  )) {
    await writeDeliveries(round, await readDeliveries(tx, some))
  }
  for (const month of await findRemovedMonths(tx, copied)) {
    await removeMonth(round.clickhouse, await round.numberOf(), month)
    round.copiedRows('removed_month', 1)
  }
  const removals = await findRemovals(tx, copied)
  if (removals.length === 0) return
  await insertRemovals(round.clickhouse, await round.numberOf(), removals)
  round.copiedRows('removal', removals.length)
}

function* pagesOf<T>({ pageRows }: Round, all: readonly T[]): Generator<T[]> {
  for (let at = 0; at < all.length; at += pageRows) yield all.slice(at, at + pageRows)
}

async function writeAlerts(
  { clickhouse, copiedRows, numberOf }: Round,
  rows: AlertReplicaRow[],
): Promise<void> {
  if (rows.length === 0) return
  await insertAlertRows(clickhouse, await numberOf(), rows)
  copiedRows('alert', rows.length)
}

async function writeDeliveries(
  { clickhouse, copiedRows, numberOf }: Round,
  rows: Awaited<ReturnType<typeof readDeliveries>>,
): Promise<void> {
  if (rows.length === 0) return
  await insertDeliveryRows(clickhouse, await numberOf(), rows)
  copiedRows('delivery', rows.length)
}

async function writeLabels(
  { clickhouse, copiedRows, numberOf }: Round,
  rows: Awaited<ReturnType<typeof readLabels>>,
): Promise<void> {
  if (rows.length === 0) return
  await insertLabelRows(clickhouse, await numberOf(), rows)
  copiedRows('label', rows.length)
}
