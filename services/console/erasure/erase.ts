/**
 * Erases a device or a user of a tenant from every store, with a receipt of the counts before and
 * after. The order makes it safe to interrupt: wait until accepted events are stored and decided,
 * remove alerts, remove messages that could restore data, then remove ClickHouse rows, which lead
 * to the other stores. Another attempt completes an interrupted one. Before it returns, a second
 * count finds nothing.
 */
import { leaseWaitMs } from '#shared/core/base/limits/tenants.ts'
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import { deadLetterStream } from '#shared/core/telemetry/nats-names.ts'
import { hourlyCountLease } from '#shared/io/analytics/counts/hourly-count-store.ts'
import { replicationLease } from '#shared/io/analytics/replication-store.ts'
import { type Clickhouse, toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import {
  type AlertCounts,
  countErasableAlerts,
  eraseAlerts,
  listErasableAlerts,
} from '#shared/io/erasure/erasure-alerts-store.ts'
import type { ErasureTraces } from '#shared/io/erasure/erasure-conditions.ts'
import type {
  CountsBefore,
  ErasureProgress,
  ErasureReceipt,
} from '#shared/io/erasure/erasure-job-store.ts'
import type { ErasureStore, ErasureTable } from '#shared/io/erasure/erasure-store.ts'
import {
  awaitWorkedOff,
  countDeadLetterMentions,
  eraseDeadLetters,
  eraseTelemetryMessages,
  findLastTelemetrySequence,
  readTelemetryCut,
  type TelemetryCut,
} from '#shared/io/erasure/erasure-streams.ts'
import { type ErasureSubject, toSubjectSha256 } from '#shared/io/erasure/erasure-subject.ts'
import type { KeptMentions } from '#shared/io/erasure/mentions.ts'
import { countPostgresMentions } from '#shared/io/erasure/mentions-in-postgres.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { type Lease, type Leases, withLease } from '#shared/io/leases/leases.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { forgetRequests } from './forget-requests.ts'

export type EraseDeps = {
  leases: Leases
  /** It must allow requests as long as a mutation. */
  clickhouse: Clickhouse
  createStore: (clickhouse: Clickhouse) => ErasureStore
  findNats: () => Nats | null
  sealer: Sealer
  /** The monotonic clock. */
  nowMs: () => number
  wallMs: () => number
  /** How long accepted events may take until they are stored and decided; 30 s by default. */
  waitMaxMs?: number
}

export type EraseRun = {
  subject: ErasureSubject
  /** Of the tenant's erasures. */
  lease: Lease
  /** When the first attempt began, and what the stores held then. */
  startedAt: string
  before: CountsBefore
  /** Ends the attempt before its next step. */
  signal: AbortSignal
  onProgress: (reached: { progress: ErasureProgress; before: CountsBefore }) => Promise<void>
}

/**
 * @throws Problem unavailable when a store does not answer, and an AbortError: run it again
 */
export type Erase = (run: EraseRun) => Promise<ErasureReceipt>

/** A subject that keeps sending may need another pass for new events. */
const passesMax = 3
const decidedMaxMs = 30_000
const oldPartsMaxMs = 15_000

type Counts = { clickhouse: Record<ErasureTable, number>; postgres: AlertCounts; streams: Streams }
/** `TELEMETRY` is the telemetry stream of the tenant, whatever its number. */
type Streams = { TELEMETRY: number; DEAD_LETTERS: number }

/** Creates the function that erases. */
export function createErase(deps: EraseDeps): Erase {
  return async (run) => {
    const { subject } = run
    const { tenantId, kind } = subject
    const track = createTrack(run)
    let traces: ErasureTraces | null = null
    for (let pass = 1; ; pass++) {
      const erased: Pass = await erasePass(deps, run, track, traces)
      traces = erased.traces
      if (isEmpty(erased.after) || (erased.later > 0 && isEmptyUpToCut(erased.after))) {
        return {
          tenant_id: tenantId,
          subject: { kind, sha256: toSubjectSha256(subject) },
          started_at: run.startedAt,
          finished_at: new Date(deps.wallMs()).toISOString(),
          counts: toCounts(track.before, erased.after),
          kept_mentions: await countMentions(deps, run),
          notes: toNotes(erased),
        }
      }
      if (pass === passesMax) throw unavailable('The subject sends faster than it can be erased.')
    }
  }
}

/** Keeps how far an erasure is, and the first count of each store. */
type Track = {
  before: CountsBefore
  count: (store: keyof CountsBefore, counts: Record<string, number>) => void
  /** @throws AbortError when the erasure is to end early */
  reach: (stores: Partial<ErasureProgress>) => Promise<void>
}

function createTrack({ before: earlier, signal, onProgress }: EraseRun): Track {
  const before = { ...earlier }
  const progress: ErasureProgress = {
    postgres: 'waiting',
    streams: 'waiting',
    clickhouse: 'waiting',
  }
  return {
    before,
    count: (store, counts) => {
      before[store] ??= counts
    },
    reach: async (stores) => {
      Object.assign(progress, stores)
      await onProgress({ progress, before })
      signal.throwIfAborted()
    },
  }
}

type Pass = {
  traces: ErasureTraces
  after: Counts
  later: number
  oldParts: number
}

async function erasePass(
  deps: EraseDeps,
  { lease, subject }: EraseRun,
  track: Track,
  earlier: ErasureTraces | null,
): Promise<Pass> {
  const store = deps.createStore(lease.fence(deps.clickhouse))
  const nats = requireNats(deps)
  const cut = await inNats(() => readTelemetryCut(nats, lease, subject.tenantId))
  await requireDecided(deps, nats, cut, true)
  const traces = await inClickhouse(() => store.readTraces(subject, cut.streamOffset, earlier))
  track.count('clickhouse', await inClickhouse(() => store.countRows(traces)))
  const { eventIds, sessionIds } = traces
  const erasable = { subject, eventIds, sessionIds }
  track.count('postgres', await countErasableAlerts(lease, erasable))
  await track.reach({ postgres: 'erasing' })
  const alertIds = await listErasableAlerts(lease, erasable)
  // Until an erasure that stops after this point is resumed, reconciliation reports a difference.
  await inClickhouse(() => store.eraseExpectedAlerts(subject.tenantId, alertIds))
  await eraseAlerts(lease, erasable)
  await track.reach({ postgres: 'erased', clickhouse: 'erasing' })
  // Replication reads Postgres again from here, where no row of the subject is left.
  const replication = { name: replicationLease, busy: 'Alerts are being replicated.' }
  await betweenRounds(deps, lease, replication, (paused) => paused.eraseReplicas(traces))
  await track.reach({ streams: 'erasing' })
  track.count('streams', await eraseStreams(nats, lease, subject, cut))
  await track.reach({ streams: 'erased' })
  await eraseClickhouse(deps, nats, { lease, traces, cut })
  const { tenantId, kind, id } = subject
  const deviceIds = kind === 'device' ? [id] : traces.devices.map((device) => device.id)
  await inNats(() => forgetRequests({ nats, sealer: deps.sealer }, { tenantId, deviceIds }))
  await track.reach({ clickhouse: 'erased' })
  const oldParts = await inClickhouse(() => store.dropOldParts(oldPartsMaxMs))
  return {
    traces,
    after: {
      clickhouse: await inClickhouse(() => store.countRows(traces)),
      postgres: await countErasableAlerts(lease, erasable),
      streams: await eraseStreams(nats, lease, subject, cut),
    },
    later: await inClickhouse(() => store.countLater(traces)),
    oldParts,
  }
}

/**
 * Erases between two rounds of another job: what the round before wrote is in ClickHouse, and the
 * next one reads afterwards.
 */
async function betweenRounds(
  deps: EraseDeps,
  lease: Lease,
  { name, busy }: { name: string; busy: string },
  erase: (store: ErasureStore) => Promise<void>,
): Promise<void> {
  const work = async (pause: Lease) => {
    const store = deps.createStore(pause.fence(lease.fence(deps.clickhouse)))
    await inClickhouse(() => erase(store))
    return true
  }
  if ((await withLease(deps.leases, name, work, leaseWaitMs)) !== null) return
  throw unavailable(busy)
}

/** @returns the number of removed messages */
async function eraseStreams(
  nats: Nats,
  lease: Lease,
  subject: ErasureSubject,
  cut: TelemetryCut,
): Promise<Streams> {
  await lease.check()
  return inNats(async () => ({
    TELEMETRY: await eraseTelemetryMessages(nats, subject, cut),
    DEAD_LETTERS: await eraseDeadLetters(nats, subject),
  }))
}

async function eraseClickhouse(
  deps: EraseDeps,
  nats: Nats,
  { lease, traces, cut }: { lease: Lease; traces: ErasureTraces; cut: TelemetryCut },
): Promise<void> {
  const store = deps.createStore(lease.fence(deps.clickhouse))
  await inClickhouse(() => store.eraseRows(traces))
  // An insert that was under way may have put its aggregates where they were just erased, and its
  // raw events where the rebuild does not see them yet: all that had begun has to end first.
  const { stream } = cut
  const sequence = await inNats(() => findLastTelemetrySequence(nats, stream))
  await requireDecided(deps, nats, { stream, sequence }, false)
  await inClickhouse(() => store.rebuild(traces))
  // Its sketches may have the subject's hashes: they are counted again from what remains.
  const counting = { name: hourlyCountLease, busy: 'Hours are being counted.' }
  await betweenRounds(deps, lease, counting, (paused) =>
    paused.forgetHourlyCounts(traces.subject.tenantId),
  )
}

async function requireDecided(
  deps: EraseDeps,
  nats: Nats,
  upTo: Pick<TelemetryCut, 'stream' | 'sequence'>,
  decided: boolean,
): Promise<void> {
  const limitMs = deps.waitMaxMs ?? decidedMaxMs
  const options = { decided, limitMs, nowMs: deps.nowMs }
  if (await inNats(() => awaitWorkedOff(nats, upTo, options))) return
  throw unavailable(
    `Accepted events were not stored and decided within ${limitMs} ms: is a scorer running?`,
  )
}

function requireNats({ findNats }: EraseDeps): Nats {
  const nats = findNats()
  if (nats?.connected()) return nats
  throw unavailable('NATS is not connected.')
}

const inNats = <T>(work: () => Promise<T>): Promise<T> => inStore('NATS', work)
const inClickhouse = <T>(work: () => Promise<T>): Promise<T> => inStore('ClickHouse', work)

async function inStore<T>(store: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem || error instanceof TypeError) throw error
    const detail = `${store} does not answer at the moment.`
    throw unavailable(detail, toLoggable(error))
  }
}

function isEmpty({ clickhouse, postgres, streams }: Counts): boolean {
  return [clickhouse, postgres, streams].every((counts) =>
    Object.values(counts).every((count) => count === 0),
  )
}

/** Whether all events up to the cut are removed; aggregates may include later events. */
function isEmptyUpToCut({ clickhouse, streams }: Counts): boolean {
  const { telemetry, activity, shadow_decisions: shadow } = clickhouse
  return telemetry + activity + shadow + streams.TELEMETRY + streams.DEAD_LETTERS === 0
}

function toCounts(before: CountsBefore, after: Counts): ErasureReceipt['counts'] {
  const counts: ErasureReceipt['counts'] = {}
  for (const store of ['clickhouse', 'postgres', 'streams'] as const) {
    const left: Record<string, number> = after[store]
    for (const [name, count] of Object.entries(before[store] ?? {})) {
      counts[`${store}.${name}`] = { before: count, after: left[name] ?? 0 }
    }
  }
  return counts
}

/** What people and other devices wrote stays, and the receipt says where. */
async function countMentions(deps: EraseDeps, { lease, subject }: EraseRun): Promise<KeptMentions> {
  const store = deps.createStore(deps.clickhouse)
  const { events, others } = await inClickhouse(() => store.countMentions(subject))
  const nats = requireNats(deps)
  const letters = await inNats(() => countDeadLetterMentions(nats, subject))
  const inPostgres = await countPostgresMentions(lease, subject)
  const inStreams = letters === 0 ? [] : [{ place: `streams.${deadLetterStream}`, rows: letters }]
  return { events, others: [...inPostgres, ...others, ...inStreams] }
}

function toNotes(pass: Pass): string[] {
  const notes = [
    'clickhouse.sdk_baselines keeps places of bitmaps, never ids, and expires within 8 days.',
    'Postgres writes over the space of removed rows in time; its write-ahead log and backups of ' +
      'any store keep what they held until they are recycled.',
  ]
  if (pass.oldParts > 0) {
    notes.push(
      `${pass.oldParts} replaced part folders are still on ClickHouse's disk; it removes them ` +
        'after old_parts_lifetime (8 minutes unless set otherwise).',
    )
  }
  if (pass.later > 0) {
    notes.push(`${pass.later} events came after the erasure had begun: they are new, and are kept.`)
  }
  return notes
}
