/**
 * How long a tenant's data is kept: an operator's change of it, and the rounds that remove what is
 * too old, every hour and soon after a change. Any number of consoles take turns; a round that
 * breaks off is begun again, and what it had removed stays removed.
 */
import { hourMs } from '#shared/core/base/instants.ts'
import { reconciliationKeptMs } from '#shared/core/base/limits.ts'
import {
  type RetainedKind,
  type RetentionSetting,
  toCutoffDayMs,
  toCutoffMs,
} from '#shared/core/tenants/retention.ts'
import { type Clickhouse, describeFailure } from '#shared/io/clickhouse/clickhouse.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { type Locks, tryNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import type { Postgres, Session } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'
import { insertCutoffs } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import {
  dropPartitions,
  removeRows,
  retainedTables,
} from '#shared/io/retention/retention-rows-store.ts'
import {
  findDueRound,
  findOverdue,
  listRetention,
  type Overdue,
  type Removed,
  removeAlerts,
  removeDeliveries,
  scheduleNextRound,
  setRetention,
  type TenantRetention,
} from '#shared/io/retention/retention-store.ts'
import type { TenantView } from '#shared/io/tenants/tenant-store.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

/**
 * Sets some of a tenant's limits; what is too old by them goes within seconds.
 * @throws Problem tenant_not_found
 */
export async function setTenantRetention(
  deps: { postgres: Postgres },
  wanted: {
    tenantId: string
    settings: Partial<Record<RetainedKind, RetentionSetting>>
    actor: string
  },
): Promise<TenantView> {
  const { tenantId, settings, actor } = wanted
  return deps.postgres.transaction(async (tx) => {
    const before = await requireTenant(tx, tenantId)
    await setRetention(tx, tenantId, settings)
    const after = await requireTenant(tx, tenantId)
    await insertAudit(tx, {
      actor,
      tenantId,
      action: 'tenant.retention_set',
      before: before.retention,
      after: after.retention,
    })
    return after
  })
}

export type RetentionDeps = {
  postgres: Postgres
  /** Connections for work that holds a lock. */
  locks: Locks
  clickhouse: Clickhouse
  log: Log
  metrics: Metrics
  /** The monotonic clock, and the wall clock. */
  nowMs: () => number
  wallMs: () => number
}

export type Retention = {
  /**
   * One round, if one is due.
   * @returns `elsewhere` when another console is at it, `failed` when it is to be repeated
   */
  runRound: (signal?: AbortSignal) => Promise<'not_due' | 'elsewhere' | 'done' | 'failed'>
  /** Runs rounds until it is stopped. */
  start: () => { stop: () => Promise<void> }
}

/** A round that failed is tried again after this. */
const retryMs = 60_000
/** How often to ask whether a round is due: a change is acted on within this. */
const pollMs = 5_000
/** Rows in one transaction: some tens of milliseconds. */
const rowsPerStep = 1_000

type State = RetentionDeps & {
  removed: (store: string, rows: number) => void
  failed: (store: string, error: unknown) => void
  /** By table and tenant, up to which cutoff nothing is left: midnights move once a day. */
  clean: Map<string, number>
}

type Round = {
  session: Session
  signal: AbortSignal
  /** The earlier of two clocks: one that is ahead must not remove what is young. */
  atMs: number
}

/** Retention of one console. */
export function createRetention(deps: RetentionDeps): Retention {
  const { metrics } = deps
  const removed = metrics.counter(
    'di_retention_removed_total',
    'Rows that were removed because they were too old',
    ['store'],
  )
  const failures = metrics.counter(
    'di_retention_failures_total',
    'Removals that failed and are tried again',
    ['store'],
  )
  const rounds = metrics.counter(
    'di_retention_rounds_total',
    'Rounds of removing what is too old',
    ['outcome'],
  )
  const state: State = {
    ...deps,
    removed: (store, rows) => removed.inc({ store }, rows),
    failed: (store, error) => {
      failures.inc({ store })
      deps.log.warn({ err: describeFailure(error), store }, 'what is too old could not be removed')
    },
    clean: new Map(),
  }
  const runRound: Retention['runRound'] = async (signal = new AbortController().signal) => {
    if ((await findDueRound(deps.postgres)) === null) return 'not_due'
    const outcome = await tryNamedLock(deps.locks, 'retention', (session) =>
      runDue(state, session, signal),
    )
    if (outcome === 'done' || outcome === 'failed') rounds.inc({ outcome })
    return outcome ?? 'elsewhere'
  }
  return { runRound, start: () => start(deps.log, runRound) }
}

function start(log: Log, runRound: Retention['runRound']): { stop: () => Promise<void> } {
  const stopped = new AbortController()
  let failing = false
  const run = async () => {
    while (!stopped.signal.aborted) {
      try {
        await runRound(stopped.signal)
        failing = false
      } catch (error) {
        if (!failing) log.warn({ err: error }, 'retention cannot be looked after now')
        failing = true
      }
      await pause(pollMs, stopped.signal)
    }
  }
  const running = run()
  return {
    stop: async () => {
      stopped.abort()
      await running
    },
  }
}

async function runDue(
  state: State,
  session: Session,
  signal: AbortSignal,
): Promise<'not_due' | 'done' | 'failed'> {
  // Under the lock: whoever had it before may have done this very round.
  const due = await findDueRound(session)
  if (due === null) return 'not_due'
  const round = { session, signal, atMs: Math.min(due.nowMs, state.wallMs()) }
  const outcomes = [
    await attempt(state, 'reconciliation', () => noteCutoffs(state, round)),
    await attempt(state, 'deliveries', () => removeEndedDeliveries(state, round)),
    await attempt(state, 'alerts', () => removeOldAlerts(state, round)),
    ...(await removeEvents(state, round)),
  ]
  if (signal.aborted) return 'failed'
  const done = outcomes.every(Boolean)
  await scheduleNextRound(session, due, done ? hourMs : retryMs)
  return done ? 'done' : 'failed'
}

/** One store that is away does not keep the others waiting. */
async function attempt(state: State, store: string, work: () => Promise<void>): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    state.failed(store, error)
    return false
  }
}

/** Read before every step: a limit that was just lifted must not be acted on. */
async function readLimits({ session }: Round): Promise<TenantRetention[]> {
  // On the session of the lock: when that is lost, so is our turn.
  return listRetention(session)
}

/**
 * Reconciliation does not look for what retention removes, nor for what it removed once; and for
 * alerts only while it knows which are due.
 */
async function noteCutoffs({ clickhouse }: State, round: Round): Promise<void> {
  const cutoffs = (await readLimits(round)).map(({ tenantId, days }) => ({
    tenantId,
    eventsMs: toCutoffDayMs(days.events, round.atMs),
    alertsMs: Math.max(toCutoffMs(days.alerts, round.atMs) ?? 0, round.atMs - reconciliationKeptMs),
    deliveriesMs: toCutoffMs(days.deliveries, round.atMs),
  }))
  await insertCutoffs(clickhouse, cutoffs)
}

async function removeEndedDeliveries(state: State, round: Round): Promise<void> {
  await removeStepwise(state, round, 'deliveries', (overdue) =>
    state.postgres.transaction((tx) => removeDeliveries(tx, overdue, rowsPerStep)),
  )
}

async function removeOldAlerts(state: State, round: Round): Promise<void> {
  await removeStepwise(state, round, 'alerts', (overdue) =>
    removeAlerts(state.postgres, overdue, rowsPerStep),
  )
}

async function removeStepwise(
  state: State,
  round: Round,
  kind: 'alerts' | 'deliveries',
  remove: (overdue: Overdue) => Promise<Removed>,
): Promise<void> {
  const asked = (await readLimits(round)).flatMap(({ tenantId, days }) => {
    const cutoffMs = toCutoffMs(days[kind], round.atMs)
    return cutoffMs === null ? [] : [{ tenantId, cutoffMs }]
  })
  for (const overdue of await findOverdue(round.session, kind, asked)) {
    for (let left = true; left && !round.signal.aborted; ) {
      await round.session.query('select 1')
      const removed = await remove(overdue)
      state.removed('alerts', removed.alerts)
      state.removed('deliveries', removed.deliveries)
      state.removed('attempts', removed.attempts)
      left = removed[kind] === rowsPerStep
    }
  }
}

async function removeEvents(state: State, round: Round): Promise<boolean[]> {
  const { clickhouse } = state
  const outcomes = [
    await attempt(state, 'telemetry', async () => {
      const cutoffs = (await readLimits(round)).map(({ days }) =>
        toCutoffDayMs(days.events, round.atMs),
      )
      // One tenant without a limit keeps every month, and so does nobody being there.
      if (cutoffs.length === 0 || cutoffs.includes(null) || round.signal.aborted) return
      const earliestMs = cutoffs.reduce((least, one) => Math.min(least!, one!), Infinity)!
      state.removed('telemetry', await dropPartitions(clickhouse, earliestMs))
    }),
  ]
  for (const table of retainedTables) {
    outcomes.push(
      await attempt(state, table, async () => {
        for (const [cutoffMs, tenantIds] of groupByCutoff(await readLimits(round), round)) {
          const dirty = tenantIds.filter(
            (tenantId) => (state.clean.get(`${table} ${tenantId}`) ?? 0) < cutoffMs,
          )
          if (dirty.length === 0 || round.signal.aborted) continue
          const { signal } = round
          const { nowMs } = state
          const wanted = { table, tenantIds: dirty, cutoffMs, signal, nowMs }
          state.removed(table, await removeRows(clickhouse, wanted))
          if (signal.aborted) return
          for (const tenantId of dirty) state.clean.set(`${table} ${tenantId}`, cutoffMs)
        }
      }),
    )
  }
  return outcomes
}

/** Tenants of one limit together: a statement costs the same for one and for a thousand. */
function groupByCutoff(limits: TenantRetention[], { atMs }: Round): Map<number, string[]> {
  const groups = new Map<number, string[]>()
  for (const { tenantId, days } of limits) {
    const cutoffMs = toCutoffDayMs(days.events, atMs)
    if (cutoffMs === null) continue
    const group = groups.get(cutoffMs)
    if (group === undefined) groups.set(cutoffMs, [tenantId])
    else group.push(tenantId)
  }
  return groups
}
