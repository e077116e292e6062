/**
 * Keeps the ledger comparable and compares it. Every few seconds: what edges claim is copied, and
 * it is marked up to where everything is decided, so that what is on its way is never taken for a
 * difference. Every minute the last hours of all tenants are compared, every hour a whole month; a
 * difference counts when it is still there a moment later. Any number of consoles may do so at
 * once.
 */
import { ledgerHourMs, ledgerStages, toLedgerHour } from '#shared/core/ledger.ts'
import { telemetryStream, toPosition } from '#shared/core/messages.ts'
import { listAcceptedClaims } from '#shared/io/accepted-claims.ts'
import { readMark } from '#shared/io/analytics-mirror-rows-store.ts'
import { type Clickhouse, describeFailure } from '#shared/io/clickhouse.ts'
import { listTenantIds, readClockMs } from '#shared/io/ledger-postgres-store.ts'
import { insertAcceptedClaims, markDecided } from '#shared/io/ledger-rows-store.ts'
import type { LedgerStore, NamedDifference } from '#shared/io/ledger-store.ts'
import type { Log } from '#shared/io/log.ts'
import type { Metrics } from '#shared/io/metrics.ts'
import type { Nats } from '#shared/io/nats.ts'
import { pause } from '#shared/io/pause.ts'
import type { Postgres } from '#shared/io/postgres.ts'
import { readDecidedFloor } from '#shared/io/stream-floors.ts'

export type LedgerDeps = {
  findNats: () => Nats | null
  postgres: Postgres
  clickhouse: Clickhouse
  store: LedgerStore
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

export type LedgerKeeper = {
  /**
   * Marks up to where everything is decided and copies what edges claim.
   * @returns false when not all that had been published was decided within seconds
   */
  mark: () => Promise<boolean>
  /** Compares the hours from one on, and sets the metric. @returns what differs */
  check: (fromMs: number) => Promise<FoundDifference[]>
  /** Does both until it is stopped. */
  start: () => { stop: () => Promise<void> }
}

const markEveryMs = 2_000
/** How often to say that nothing has come. */
const idleMarkMs = 10_000
const checkEveryMs = 60_000
const recentMs = 3 * ledgerHourMs
const longEveryMs = ledgerHourMs
const longMs = 31 * 24 * ledgerHourMs
const confirmMs = 5_000
/** How long decisions, and then the copies, may take until a mark is made without the claims. */
const workedOffMaxMs = 5_000
const pollMs = 100
/** A copy is made each second. */
const copyPollMs = 500
/** The clock may be read this much later than the snapshot that a copy is of. */
const clockMarginMs = 1_000
/** How far back messages are looked for at the start, in time and in number. */
const messagesMs = 20 * ledgerHourMs
const messagesMax = 1_000_000

type State = LedgerDeps & {
  report: (found: readonly FoundDifference[], long: boolean) => void
  /** Up to which position of which stream every message is known to the ledger. */
  complete: { streamMs: number; position: number } | null
  /** The claims that are copied, as text; null before the first round. */
  claimed: ReadonlySet<string> | null
  /** The last mark, and when it was made. */
  marked: { position: number; atMs: number } | null
  stopped: AbortController
}

/** The ledger of one console. */
export function createLedgerKeeper(deps: LedgerDeps): LedgerKeeper {
  const state: State = {
    ...deps,
    complete: null,
    claimed: null,
    marked: null,
    stopped: new AbortController(),
    report: createReport(deps),
  }
  const mark = () => markNow(state)
  const check = (fromMs: number) => checkFrom(state, fromMs)
  return { mark, check, start: () => start(state) }
}

/** Differences of the last hours, and of what is older as of the last long look. */
function createReport({ metrics, wallMs }: LedgerDeps): State['report'] {
  const gauge = metrics.gauge(
    'di_ledger_difference',
    'Events, alerts and deliveries in which the stages of the ledger differ: 0 when all agree',
    { labels: ['stage'] },
  )
  let older: readonly FoundDifference[] = []
  const set = (found: readonly FoundDifference[]) => {
    for (const stage of ['messages', ...ledgerStages]) {
      const of = found.filter((one) => one.stage === stage)
      gauge.set(
        { stage },
        of.reduce((sum, { count }) => sum + count, 0),
      )
    }
  }
  set([])
  return (found, long) => {
    const recentFromMs = toLedgerHour(wallMs()) - recentMs
    if (long) older = found.filter(({ hourMs }) => hourMs !== null && hourMs < recentFromMs)
    set([...older, ...found.filter((one) => !older.includes(one))])
  }
}

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
  let floor = await readDecidedFloor(nats)
  while (floor < stream.last_seq && nowMs() < deadlineMs && !state.stopped.signal.aborted) {
    await pause(pollMs, state.stopped.signal)
    floor = await readDecidedFloor(nats)
  }
  const position = toPosition(streamMs, floor + 1)
  const idle = claims.length === 0 && position === state.marked?.position
  if (idle && nowMs() - state.marked!.atMs < idleMarkMs) return floor >= stream.last_seq
  // What was decided is committed: a later copy has it.
  const atMs = (await readClockMs(postgres)) + clockMarginMs
  await markDecided(clickhouse, { position, atMs })
  state.marked = { position, atMs: nowMs() }
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

/** All at first, then those of the last hours: an edge reports an hour while it is. */
async function readClaims(state: State, nats: Nats) {
  if (state.claimed === null) return listAcceptedClaims(nats, null)
  const hour = Math.floor(state.wallMs() / ledgerHourMs)
  const claims = []
  for (const one of [hour - 1, hour, hour + 1])
    claims.push(...(await listAcceptedClaims(nats, one)))
  return claims
}

async function checkFrom(state: State, fromMs: number): Promise<FoundDifference[]> {
  const first = await findDifferences(state, fromMs)
  let found = first
  if (first.length > 0) {
    await pause(state.confirmMs ?? confirmMs, state.stopped.signal)
    const before = new Map(first.map((one) => [toKey(one), one]))
    found = (await findDifferences(state, fromMs)).flatMap((one) => {
      const earlier = before.get(toKey(one))
      return earlier === undefined ? [] : [{ ...one, count: Math.min(one.count, earlier.count) }]
    })
  }
  state.report(found, fromMs < toLedgerHour(state.wallMs()) - recentMs)
  for (const { tenantId, hourMs, ...difference } of found) {
    const hour = hourMs === null ? null : new Date(hourMs).toISOString()
    state.log.error({ tenant: tenantId, hour, ...difference }, 'the ledger does not agree')
  }
  return found
}

const toKey = ({ tenantId, hourMs, stage, kind }: FoundDifference): string =>
  `${tenantId} ${hourMs} ${stage} ${kind}`

async function findDifferences(state: State, fromMs: number): Promise<FoundDifference[]> {
  const { store, postgres, wallMs } = state
  const tenantIds = await listTenantIds(postgres)
  // An edge's clock may be ahead.
  const { hours } = await store.readLedger({ fromMs, toMs: wallMs() + 24 * ledgerHourMs })
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

/** Messages that were worked off, and of which no scorer has said what they brought. */
async function countLostMessages(state: State): Promise<number> {
  const nats = state.findNats()
  if (nats?.connected() !== true) return 0
  const { created } = await nats.manager.streams.info(telemetryStream)
  const streamMs = Date.parse(String(created))
  const floor = await readDecidedFloor(nats)
  const step = toPosition(0, 1)
  const to = toPosition(streamMs, floor + 1)
  const known = state.complete?.streamMs === streamMs ? state.complete.position : 0
  // At first those of the last hours: retention may have removed what older ones brought.
  const first = known > 0 ? known : await state.store.readFirstPosition(state.wallMs() - messagesMs)
  if (first === null) return 0
  const from = Math.max(first, toPosition(streamMs, Math.max(1, floor - messagesMax)))
  if (from >= to) return 0
  const lost = await state.store.countUnknownMessages({ from, to, step })
  if (lost === 0) state.complete = { streamMs, position: to }
  return lost
}

function start(state: State): { stop: () => Promise<void> } {
  const { stopped } = state
  const { signal } = stopped
  const repeat = async (what: string, everyMs: number, work: () => Promise<unknown>) => {
    for (let failures = 0; !signal.aborted; await pause(everyMs, signal)) {
      try {
        await work()
        failures = 0
      } catch (error) {
        failures += 1
        // Once is nothing: at the start NATS may not be there yet.
        if (failures === 2) state.log.warn({ err: describeFailure(error) }, what)
      }
    }
  }
  let longAtMs = Number.NEGATIVE_INFINITY
  const compare = async () => {
    const long = state.nowMs() - longAtMs >= longEveryMs
    const backMs = long ? longMs : recentMs
    await checkFrom(state, toLedgerHour(state.wallMs()) - backMs)
    if (long) longAtMs = state.nowMs()
  }
  const running = Promise.all([
    repeat('the ledger cannot be kept now', markEveryMs, () => markNow(state)),
    repeat('the ledger cannot be compared now', checkEveryMs, compare),
  ])
  return {
    stop: async () => {
      stopped.abort()
      await running
    },
  }
}
