/**
 * Removes data that is older than its tenant's retention period, and expired audit entries, entries
 * of allow and deny lists, undone corrections, sessions and invitations of operators: every hour,
 * and within seconds of a change. A lease lets one console run a round at a time. An
 * interrupted round is repeated; rows that it had removed stay removed.
 */
import { hourMs } from '#shared/core/base/instants.ts'
import { reconciliationKeptMs } from '#shared/core/base/limits/history.ts'
import { toCutoffDayMs, toCutoffMs } from '#shared/core/tenants/retention.ts'
import { removeEndedBulkJobs } from '#shared/io/alerts/bulk/bulk-job-store.ts'
import { removeEndedProposals } from '#shared/io/approvals/proposal-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { removeEndedErasures } from '#shared/io/erasure/erasure-job-store.ts'
import { removeExpiredAnswers } from '#shared/io/http/idempotent-answers.ts'
import { removeUndoneCorrections } from '#shared/io/identity/correct-phone.ts'
import { type Lease, type Leases, withLease } from '#shared/io/leases/leases.ts'
import { removeExpiredListEntries } from '#shared/io/lists/list-store.ts'
import { removeEndedInvitations } from '#shared/io/operators/invitation-store.ts'
import { removeExpiredSessions } from '#shared/io/operators/session-store.ts'
import { removeOldLabels } from '#shared/io/outcomes/label-store.ts'
import { removeOldBacktests } from '#shared/io/policies/policy-backtest-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { insertCutoffs } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import {
  dropPartitions,
  removeRows,
  retainedTables,
} from '#shared/io/retention/retention-rows-store.ts'
import {
  createDeliveryMonths,
  dropExpiredDeliveryMonth,
  findDueRound,
  findOverdue,
  listRetention,
  type Overdue,
  type Removed,
  removeAlerts,
  removeAuditEntries,
  removeDeliveries,
  scheduleNextRound,
  type TenantRetention,
} from '#shared/io/retention/retention-store.ts'
import { type Poller, startPolling } from '../../../shared/io/process/poll.ts'

export type RetentionDeps = {
  postgres: Postgres
  leases: Leases
  clickhouse: Clickhouse
  log: Log
  metrics: Metrics
  /** The monotonic clock, and the wall clock. */
  nowMs: () => number
  wallMs: () => number
}

export type Retention = {
  /**
   * Runs a round if one is due.
   * @returns `elsewhere` when another console runs it, `failed` when it must be repeated
   */
  runRound: (signal?: AbortSignal) => Promise<'not_due' | 'elsewhere' | 'done' | 'failed'>
  /** Runs rounds until it is stopped. */
  start: () => Poller
}

/** The delay after a failed round. */
const retryMs = 60_000
/** How often the job checks whether a round is due. A change takes effect within this time. */
const pollMs = 5_000
/** Rows in one transaction: some tens of milliseconds. */
const rowsPerStep = 1_000

type State = RetentionDeps & {
  countRemoved: (store: string, rows: number) => void
  recordFailure: (store: string, error: unknown) => void
  /** By table and tenant, the cutoff below which no row is left. Cutoffs move once a day. */
  cleanUntilMs: Map<string, number>
}

type Round = {
  lease: Lease
  /** The store of events, for its reads and what it removes. */
  clickhouse: Clickhouse
  signal: AbortSignal
  /** The earlier of two clocks: a clock that is ahead must not remove recent data. */
  atMs: number
}

/** Creates the retention job of one console. */
export function createRetention(deps: RetentionDeps): Retention {
  const { log, metrics } = deps
  const removed = metrics.counter(
    'di_retention_removed_total',
    'Rows removed because they were older than the retention period, by store',
    ['store'],
  )
  const failures = metrics.counter(
    'di_retention_failures_total',
    'Removals that failed and are repeated, by store',
    ['store'],
  )
  const rounds = metrics.counter('di_retention_rounds_total', 'Retention rounds, by outcome', [
    'outcome',
  ])
  const state: State = {
    ...deps,
    countRemoved: (store, rows) => removed.inc({ store }, rows),
    recordFailure: (store, error) => {
      failures.inc({ store })
      log.warn({ err: error, store }, 'expired data could not be removed')
    },
    cleanUntilMs: new Map(),
  }
  const runRound: Retention['runRound'] = async (signal = new AbortController().signal) => {
    if ((await findDueRound(deps.postgres)) === null) return 'not_due'
    const outcome = await withLease(deps.leases, 'retention', (lease) =>
      runDue(state, lease, signal),
    )
    if (outcome === 'done' || outcome === 'failed') rounds.inc({ outcome })
    return outcome ?? 'elsewhere'
  }
  return {
    runRound,
    start: () => startPolling(runRound, { log, everyMs: pollMs, failure: 'retention cannot run' }),
  }
}

async function runDue(
  state: State,
  lease: Lease,
  stopped: AbortSignal,
): Promise<'not_due' | 'done' | 'failed'> {
  // Check again under the lease: another console may have just run this round.
  const due = await findDueRound(lease)
  if (due === null) return 'not_due'
  const signal = AbortSignal.any([stopped, lease.signal])
  const clickhouse = lease.fence(state.clickhouse)
  const round = { lease, clickhouse, signal, atMs: Math.min(due.nowMs, state.wallMs()) }
  const outcomes = [
    await attempt(state, 'reconciliation', () => recordCutoffs(round)),
    await attempt(state, 'delivery_months', () => changeDeliveryMonths(state, round)),
    await attempt(state, 'deliveries', () => removeEndedDeliveries(state, round)),
    await attempt(state, 'alerts', () => removeOldAlerts(state, round)),
    await attempt(state, 'labels', () => removeOldLabelsOf(state, round)),
    await attempt(state, 'operator_sessions', () =>
      removeAll(state, round, 'operator_sessions', (most) =>
        removeExpiredSessions(round.lease, round.atMs, most),
      ),
    ),
    await attempt(state, 'operator_invitations', () =>
      removeAll(state, round, 'operator_invitations', (most) =>
        removeEndedInvitations(round.lease, round.atMs, most),
      ),
    ),
    await attempt(state, 'bulk_jobs', () =>
      removeAll(state, round, 'bulk_jobs', (most) =>
        removeEndedBulkJobs(round.lease, round.atMs, most),
      ),
    ),
    await attempt(state, 'idempotent_answers', () =>
      removeAll(state, round, 'idempotent_answers', (most) =>
        removeExpiredAnswers(round.lease, round.atMs, most),
      ),
    ),
    await attempt(state, 'erasures', () =>
      removeAll(state, round, 'erasures', (most) =>
        removeEndedErasures(round.lease, round.atMs, most),
      ),
    ),
    await attempt(state, 'proposals', () =>
      removeAll(state, round, 'proposals', (most) =>
        removeEndedProposals(round.lease, round.atMs, most),
      ),
    ),
    await attempt(state, 'policy_backtests', () =>
      removeAll(state, round, 'policy_backtests', (most) =>
        removeOldBacktests(round.lease, round.atMs, most),
      ),
    ),
    await attempt(state, 'list_entries', () =>
      removeAll(state, round, 'list_entries', (most) =>
        round.lease.transaction((tx) => removeExpiredListEntries(tx, round.atMs, most)),
      ),
    ),
    await attempt(state, 'phone_corrections', () =>
      removeAll(state, round, 'phone_corrections', (most) =>
        removeUndoneCorrections(round.lease, round.atMs, most),
      ),
    ),
    await attempt(state, 'audit_log', () =>
      removeAll(state, round, 'audit_log', (most) => removeAuditEntries(round.lease, most)),
    ),
    await attempt(state, 'telemetry', () => dropOldPartitions(state, round)),
  ]
  for (const table of retainedTables) {
    outcomes.push(await attempt(state, table, () => removeOldRows(state, round, table)))
  }
  if (signal.aborted) return 'failed'
  const done = outcomes.every(Boolean)
  await scheduleNextRound(lease, due, done ? hourMs : retryMs)
  return done ? 'done' : 'failed'
}

/** Runs one step. A store that is unavailable must not block the others. */
async function attempt(state: State, store: string, work: () => Promise<void>): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    state.recordFailure(store, error)
    return false
  }
}

/**
 * Reads the retention periods. Call it before every step, so that a period that was just extended
 * is respected.
 */
async function readRetention({ lease }: Round): Promise<TenantRetention[]> {
  return listRetention(lease)
}

/**
 * Records the cutoffs for reconciliation, which then ignores removed data. Reconciliation keeps
 * expected alerts for a limited time, so alerts older than that are ignored as well.
 */
async function recordCutoffs(round: Round): Promise<void> {
  const cutoffs = (await readRetention(round)).map(({ tenantId, days }) => ({
    tenantId,
    eventsMs: toCutoffDayMs(days.events, round.atMs),
    alertsMs: Math.max(toCutoffMs(days.alerts, round.atMs) ?? 0, round.atMs - reconciliationKeptMs),
    deliveriesMs: toCutoffMs(days.deliveries, round.atMs),
  }))
  await insertCutoffs(round.clickhouse, cutoffs)
}

/** Drops months in which everything has expired before single rows are removed. */
async function changeDeliveryMonths(state: State, round: Round): Promise<void> {
  await createDeliveryMonths(round.lease)
  for (let more = true; more && !round.signal.aborted; ) {
    const cutoffs = (await readRetention(round)).map(({ tenantId, days }) => ({
      tenantId,
      cutoffMs: toCutoffMs(days.deliveries, round.atMs),
    }))
    const month = await dropExpiredDeliveryMonth(round.lease, cutoffs)
    if (month !== null) {
      state.countRemoved('delivery_months', 1)
      state.log.info({ month }, 'dropped a month of expired deliveries')
    }
    more = month !== null
  }
}

async function removeEndedDeliveries(state: State, round: Round): Promise<void> {
  await removeStepwise(state, round, 'deliveries', (overdue) =>
    round.lease.transaction((tx) => removeDeliveries(tx, overdue, rowsPerStep)),
  )
}

async function removeOldAlerts(state: State, round: Round): Promise<void> {
  await removeStepwise(state, round, 'alerts', (overdue) =>
    removeAlerts(round.lease, overdue, rowsPerStep),
  )
}

/** Labels are kept as long as alerts: both say what turned out to be fraud. */
async function removeOldLabelsOf(state: State, round: Round): Promise<void> {
  for (const { tenantId, days } of await readRetention(round)) {
    const cutoffMs = toCutoffMs(days.alerts, round.atMs)
    if (cutoffMs === null) continue
    await removeAll(state, round, 'labels', (most) =>
      removeOldLabels(round.lease, { tenantId, cutoffMs }, most),
    )
  }
}

async function removeStepwise(
  state: State,
  round: Round,
  kind: 'alerts' | 'deliveries',
  remove: (overdue: Overdue) => Promise<Removed>,
): Promise<void> {
  const candidates = (await readRetention(round)).flatMap(({ tenantId, days }) => {
    const cutoffMs = toCutoffMs(days[kind], round.atMs)
    return cutoffMs === null ? [] : [{ tenantId, cutoffMs }]
  })
  for (const overdue of await findOverdue(round.lease, kind, candidates)) {
    for (let more = true; more && !round.signal.aborted; ) {
      const removed = await remove(overdue)
      state.countRemoved('alerts', removed.alerts)
      state.countRemoved('deliveries', removed.deliveries)
      state.countRemoved('attempts', removed.attempts)
      more = removed[kind] === rowsPerStep
    }
  }
}

/** Removes rows in bounded steps until none is left. */
async function removeAll(
  state: State,
  { signal }: Round,
  store: string,
  remove: (most: number) => Promise<number>,
): Promise<void> {
  for (let more = true; more && !signal.aborted; ) {
    const removed = await remove(rowsPerStep)
    state.countRemoved(store, removed)
    more = removed === rowsPerStep
  }
}

/** Drops months that are older than every tenant's period. */
async function dropOldPartitions(state: State, round: Round): Promise<void> {
  const tenants = await readRetention(round)
  const cutoffs = tenants.map(({ days }) => toCutoffDayMs(days.events, round.atMs))
  // A tenant without a limit keeps every month. Without any tenant nothing is dropped.
  if (cutoffs.length === 0 || cutoffs.includes(null) || round.signal.aborted) return
  const earliestMs = cutoffs.reduce((least, one) => Math.min(least!, one!), Infinity)!
  state.countRemoved('telemetry', await dropPartitions(round.clickhouse, earliestMs))
}

async function removeOldRows(
  state: State,
  round: Round,
  table: (typeof retainedTables)[number],
): Promise<void> {
  const { cleanUntilMs, nowMs } = state
  const { clickhouse, signal } = round
  for (const [cutoffMs, tenantIds] of groupByCutoff(await readRetention(round), round)) {
    const pending = tenantIds.filter(
      (tenantId) => (cleanUntilMs.get(`${table} ${tenantId}`) ?? 0) < cutoffMs,
    )
    if (pending.length === 0 || signal.aborted) continue
    const removal = { table, tenantIds: pending, cutoffMs, signal, nowMs }
    state.countRemoved(table, await removeRows(clickhouse, removal))
    if (signal.aborted) return
    for (const tenantId of pending) cleanUntilMs.set(`${table} ${tenantId}`, cutoffMs)
  }
}

/** Groups tenants with the same cutoff: a statement costs the same for one and for a thousand. */
function groupByCutoff(tenants: TenantRetention[], { atMs }: Round): Map<number, string[]> {
  const groups = new Map<number, string[]>()
  for (const { tenantId, days } of tenants) {
    const cutoffMs = toCutoffDayMs(days.events, atMs)
    if (cutoffMs === null) continue
    const group = groups.get(cutoffMs)
    if (group === undefined) groups.set(cutoffMs, [tenantId])
    else group.push(tenantId)
  }
  return groups
}
