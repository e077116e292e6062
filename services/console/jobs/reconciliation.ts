/**
 * Runs reconciliation. Every few seconds: what edges claim is copied, and
 * it is marked up to where everything is decided, so that what is on its way is never taken for a
 * difference. Every minute the last hours of all tenants are compared, and every hour the next two
 * days of the month before them, so that what a look costs does not grow with the past. A
 * difference counts when it is still there a moment later. Of any number of consoles one does this.
 */
import {
  reconciliationHourMs,
  reconciliationStages,
  toReconciliationHour,
} from '#shared/core/reconciliation/reconciliation.ts'
import { toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { readMark } from '#shared/io/analytics/replica-rows-store.ts'
import { type Clickhouse, describeFailure } from '#shared/io/clickhouse/clickhouse.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readDecidedWatermark } from '#shared/io/nats/low-watermark.ts'
import { type Locks, tryNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import type { Postgres, Session } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'
import { listAcceptedClaims } from '#shared/io/reconciliation/accepted-claims.ts'
import {
  listTenantIds,
  readClockMs,
  requireLock,
} from '#shared/io/reconciliation/reconciliation-postgres-store.ts'
import {
  insertAcceptedClaims,
  markDecided,
} from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import type {
  NamedDifference,
  ReconciliationStore,
} from '#shared/io/reconciliation/reconciliation-store.ts'

export type ReconciliationDeps = {
  findNats: () => Nats | null
  postgres: Postgres
  /** Connections for work that holds a lock. */
  locks: Locks
  clickhouse: Clickhouse
  store: ReconciliationStore
  log: Log
  metrics: Metrics
  /** The monotonic clock, and the wall clock. */
  nowMs: () => number
  wallMs: () => number
  /** How long a difference must last. */
  confirmMs?: number
}

/** A difference of one tenant and hour; the tenant of a lost message is not known. */
export type FoundDifference = Omit<NamedDifference, 'stage'> & {
  stage: NamedDifference['stage'] | 'messages'
  tenantId: string | null
  hourMs: number | null
}

export type ReconciliationKeeper = {
  /**
   * Marks up to where everything is decided and copies what edges claim.
   * @returns false when not all that had been published was decided within seconds
   */
  mark: () => Promise<boolean>
  /**
   * Compares the hours from one on, and sets the metric.
   * @param toMs before which hour; without end when left out
   * @returns what differs
   */
  check: (fromMs: number, toMs?: number) => Promise<FoundDifference[]>
  /** Does both until it is stopped, for as long as no other console does. */
  start: () => { stop: () => Promise<void> }
}

const markEveryMs = 2_000
/** How often an idle mark is written. */
const idleMarkMs = 10_000
const checkEveryMs = 60_000
const recentMs = 3 * reconciliationHourMs
/** Older hours are compared a part at a time: a month in fifteen hours. */
const olderEveryMs = reconciliationHourMs
const olderPartMs = 2 * 24 * reconciliationHourMs
const olderMs = 31 * 24 * reconciliationHourMs
/** How often a console tries to take the lock. */
const leadEveryMs = 5_000
const confirmMs = 5_000
/** How long decisions, then copies, may take before a mark is written without the claims. */
const workedOffMaxMs = 5_000
const pollMs = 100
/** A copy is made each second. */
const copyPollMs = 500
/** The clock may be read this much later than the snapshot that a copy is of. */
const clockMarginMs = 1_000
/** How far back lost messages are searched at the start, in time and in number. */
const messagesMs = 20 * reconciliationHourMs
const messagesMax = 1_000_000

type State = ReconciliationDeps & {
  report: Report
  /** Up to which stream offset of which stream every message is known to reconciliation. */
  complete: { streamMs: number; streamOffset: number } | null
  /** The claims that are copied, as text; null before the first round. */
  claimed: ReadonlySet<string> | null
  /** The last mark, and when it was made. */
  marked: { streamOffset: number; atMs: number } | null
  stopped: AbortController
}

/** The reconciliation of one console. */
export function createReconciliationKeeper(deps: ReconciliationDeps): ReconciliationKeeper {
  const state: State = {
    ...deps,
    complete: null,
    claimed: null,
    marked: null,
    stopped: new AbortController(),
    report: createReport(deps),
  }
  const mark = () => markNow(state)
  const check = (fromMs: number, toMs?: number) => checkSpan(state, toSpan(state, fromMs, toMs))
  return { mark, check, start: () => start(state) }
}

type Span = { fromMs: number; toMs: number }

type Report = {
  /** Replaces the differences of a span of hours. */
  found: (span: Span, found: readonly FoundDifference[]) => void
  /** Resets the metric while another console reports. */
  nothing: () => void
}

function createReport({ metrics }: ReconciliationDeps): Report {
  const gauge = metrics.gauge(
    'di_reconciliation_difference',
    'Events, alerts and deliveries in which the stages of reconciliation differ: 0 when all agree',
    { labels: ['stage'] },
  )
  let known: readonly FoundDifference[] = []
  const set = (found: readonly FoundDifference[]) => {
    known = found
    for (const stage of ['messages', ...reconciliationStages]) {
      const of = found.filter((one) => one.stage === stage)
      gauge.set(
        { stage },
        of.reduce((sum, { count }) => sum + count, 0),
      )
    }
  }
  set([])
  return {
    found: ({ fromMs, toMs }, found) => {
      const elsewhere = known.filter(
        ({ hourMs }) => hourMs !== null && (hourMs < fromMs || hourMs >= toMs),
      )
      set([...elsewhere, ...found])
    },
    nothing: () => set([]),
  }
}

/** A span without an end reaches a day ahead, since an edge's clock may be ahead. */
const toSpan = ({ wallMs }: State, fromMs: number, toMs?: number): Span => ({
  fromMs,
  toMs: toMs ?? wallMs() + 24 * reconciliationHourMs,
})

async function markNow(state: State): Promise<boolean> {
  const { findNats, postgres, clickhouse, nowMs } = state
  const nats = findNats()
  if (nats?.connected() !== true) throw new Error('NATS is not connected')
  // All of these claims are of messages that the stream has by now.
  const all = await readClaims(state, nats)
  const texts = new Set(all.map((claim) => JSON.stringify(claim)))
  const claims = all.filter((claim) => !state.claimed?.has(JSON.stringify(claim)))
  const { created, state: stream } = await nats.manager.streams.info(telemetryStream)
  const streamMs = Date.parse(String(created))
  const deadlineMs = nowMs() + workedOffMaxMs
  let floor = await readDecidedWatermark(nats)
  while (floor < stream.last_seq && nowMs() < deadlineMs && !state.stopped.signal.aborted) {
    await pause(pollMs, state.stopped.signal)
    floor = await readDecidedWatermark(nats)
  }
  const streamOffset = toStreamOffset(streamMs, floor + 1)
  const idle = claims.length === 0 && streamOffset === state.marked?.streamOffset
  if (idle && nowMs() - state.marked!.atMs < idleMarkMs) return floor >= stream.last_seq
  // Decisions up to here are committed, so a later copy has them.
  const atMs = (await readClockMs(postgres)) + clockMarginMs
  await markDecided(clickhouse, { streamOffset, atMs })
  state.marked = { streamOffset, atMs: nowMs() }
  if (floor < stream.last_seq) return false
  const copiedByMs = nowMs() + 2 * workedOffMaxMs
  while ((await readMark(clickhouse)).copiedAtMs < atMs) {
    if (nowMs() > copiedByMs || state.stopped.signal.aborted) return false
    await pause(copyPollMs, state.stopped.signal)
  }
  await insertAcceptedClaims(clickhouse, claims)
  state.claimed = texts
  return true
}

/** All claims at first, then those of the last hours: an edge reports only the current hour. */
async function readClaims(state: State, nats: Nats) {
  if (state.claimed === null) return listAcceptedClaims(nats, null)
  const hour = Math.floor(state.wallMs() / reconciliationHourMs)
  const claims = []
  for (const one of [hour - 1, hour, hour + 1])
    claims.push(...(await listAcceptedClaims(nats, one)))
  return claims
}

async function checkSpan(state: State, span: Span): Promise<FoundDifference[]> {
  const first = await findDifferences(state, span)
  let found = first
  if (first.length > 0) {
    await pause(state.confirmMs ?? confirmMs, state.stopped.signal)
    const before = new Map(first.map((one) => [toKey(one), one]))
    found = (await findDifferences(state, span)).flatMap((one) => {
      const earlier = before.get(toKey(one))
      return earlier === undefined ? [] : [{ ...one, count: Math.min(one.count, earlier.count) }]
    })
  }
  state.report.found(span, found)
  for (const { tenantId, hourMs, ...difference } of found) {
    const hour = hourMs === null ? null : new Date(hourMs).toISOString()
    state.log.error({ tenant: tenantId, hour, ...difference }, 'reconciliation found a difference')
  }
  return found
}

const toKey = ({ tenantId, hourMs, stage, kind }: FoundDifference): string =>
  `${tenantId} ${hourMs} ${stage} ${kind}`

async function findDifferences(state: State, span: Span): Promise<FoundDifference[]> {
  const { store, postgres } = state
  const tenantIds = await listTenantIds(postgres)
  const { hours } = await store.readReconciliation(span)
  const found = hours
    .filter(({ tenantId }) => tenantIds.has(tenantId))
    .flatMap(({ tenantId, hourMs, differences }) =>
      differences.map((difference): FoundDifference => ({ tenantId, hourMs, ...difference })),
    )
  const lost = await countLostMessages(state)
  if (lost === 0) return found
  const message = { stage: 'messages', kind: 'missing', count: lost } as const
  return [...found, { ...message, ids: [], tenantId: null, hourMs: null }]
}

/** Messages below the low watermark for which no scorer has written an entry. */
async function countLostMessages(state: State): Promise<number> {
  const nats = state.findNats()
  if (nats?.connected() !== true) return 0
  const { created } = await nats.manager.streams.info(telemetryStream)
  const streamMs = Date.parse(String(created))
  const floor = await readDecidedWatermark(nats)
  const step = toStreamOffset(0, 1)
  const to = toStreamOffset(streamMs, floor + 1)
  const known = state.complete?.streamMs === streamMs ? state.complete.streamOffset : 0
  // After a start, only recent messages: retention may have removed the rows of older ones.
  const first =
    known > 0 ? known : await state.store.readFirstStreamOffset(state.wallMs() - messagesMs)
  if (first === null) return 0
  const from = Math.max(first, toStreamOffset(streamMs, Math.max(1, floor - messagesMax)))
  if (from >= to) return 0
  const lost = await state.store.countUnknownMessages({ from, to, step })
  if (lost === 0) state.complete = { streamMs, streamOffset: to }
  return lost
}

function start(state: State): { stop: () => Promise<void> } {
  const { signal } = state.stopped
  const lead = () =>
    tryNamedLock(state.locks, 'reconciliation', (session) => keep(state, session)).finally(
      state.report.nothing,
    )
  const running = repeat(state, signal, {
    what: 'reconciliation cannot run now',
    everyMs: leadEveryMs,
    work: lead,
  })
  return {
    stop: async () => {
      state.stopped.abort()
      await running
    },
  }
}

/** Runs reconciliation until the console stops or loses the lock. */
async function keep(state: State, session: Session): Promise<void> {
  const lost = new AbortController()
  const signal = AbortSignal.any([state.stopped.signal, lost.signal])
  const whileLocked = (work: () => Promise<unknown>) => async () => {
    await requireLock(session).catch((error: unknown) => {
      lost.abort()
      throw error
    })
    await work()
  }
  await Promise.all([
    repeat(state, signal, {
      what: 'reconciliation cannot advance its mark now',
      everyMs: markEveryMs,
      work: whileLocked(() => markNow(state)),
    }),
    repeat(state, signal, {
      what: 'reconciliation cannot compare now',
      everyMs: checkEveryMs,
      work: whileLocked(createComparison(state)),
    }),
  ])
}

/** @returns one comparison: the last hours, and once an hour the next part of the older hours */
function createComparison(state: State): () => Promise<void> {
  let olderAtMs = Number.NEGATIVE_INFINITY
  let olderToMs = Number.NEGATIVE_INFINITY
  return async () => {
    const recentFromMs = toReconciliationHour(state.wallMs()) - recentMs
    await checkSpan(state, toSpan(state, recentFromMs))
    if (state.nowMs() - olderAtMs < olderEveryMs) return
    // From the latest to the earliest, and again.
    const isOver = olderToMs <= recentFromMs - olderMs
    const toMs = isOver ? recentFromMs : olderToMs
    await checkSpan(state, { fromMs: toMs - olderPartMs, toMs })
    olderToMs = toMs - olderPartMs
    olderAtMs = state.nowMs()
  }
}

type Repeated = { what: string; everyMs: number; work: () => Promise<unknown> }

async function repeat(
  { log }: State,
  signal: AbortSignal,
  { what, everyMs, work }: Repeated,
): Promise<void> {
  for (let failures = 0; !signal.aborted; await pause(everyMs, signal)) {
    try {
      await work()
      failures = 0
    } catch (error) {
      failures += 1
      // A single failure is normal at the start, while NATS is not connected.
      if (failures === 2) log.warn({ err: describeFailure(error) }, what)
    }
  }
}
