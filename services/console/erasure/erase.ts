/**
 * Erases a device or a user of a tenant from every store, with a receipt of the counts before and
 * after. The order makes it safe to interrupt: wait until accepted events are stored and decided,
 * remove alerts, remove messages that could restore data, then remove ClickHouse rows, which lead
 * to the other stores. Another call finishes an interrupted erasure. Before it returns, a second
 * count finds nothing. The id itself is not recorded.
 */
import { Problem } from '#shared/core/http/problem.ts'
import { withReplicationPaused } from '#shared/io/analytics/replication-store.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import {
  type AlertCounts,
  countAuditMentions,
  countErasableAlerts,
  eraseAlerts,
  listErasableAlerts,
} from '#shared/io/erasure/erasure-alerts-store.ts'
import type { ErasureStore, ErasureTable, ErasureTraces } from '#shared/io/erasure/erasure-store.ts'
import {
  awaitWorkedOff,
  eraseDeadLetters,
  eraseTelemetryMessages,
  readTelemetryCut,
  type TelemetryCut,
} from '#shared/io/erasure/erasure-streams.ts'
import { type ErasureSubject, toSubjectSha256 } from '#shared/io/erasure/erasure-subject.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Locks } from '#shared/io/postgres/named-lock-store.ts'
import { isSqlState, type Session, sqlStates } from '#shared/io/postgres/postgres.ts'
import { withTenantLock } from '#shared/io/tenants/tenant-lock.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

type EraseDeps = {
  /** Connections for the tenant's erasure lock; each erasure uses one. */
  locks: Locks
  /** Its client must allow requests as long as a mutation. */
  store: ErasureStore
  findNats: () => Nats | null
  /** The monotonic clock. */
  nowMs: () => number
  wallMs: () => number
  onOutcome: (outcome: 'done' | 'failed') => void
  /** How long accepted events may take until they are stored and decided; 30 s by default. */
  waitMaxMs?: number
}

type EraseRequest = ErasureSubject & { actor: string }

type ErasureCount = { before: number; after: number }

export type ErasureReceipt = {
  tenant_id: string
  subject: { kind: ErasureSubject['kind']; sha256: string }
  started_at: string
  finished_at: string
  /** By store and table or stream. */
  counts: Record<string, ErasureCount>
  kept_mentions: KeptMentions
  notes: string[]
}

/** What remains of the id: events of other devices or users may have it in a free field. */
export type KeptMentions = {
  /** Null when there are too many bodies to search. */
  events: number | null
}

export type Erase = (wanted: EraseRequest) => Promise<ErasureReceipt>

/** Each erasure rewrites parts of the largest tables and uses a connection. */
const erasuresAtOnceMax = 2
/** A subject that keeps sending may need another pass for new events. */
const passesMax = 3
const decidedMaxMs = 30_000
const oldPartsMaxMs = 15_000

/**
 * Creates the function that erases.
 * @throws Problem tenant_not_found; conflict while other erasures run; unavailable when a store
 *   does not answer: call again
 */
export function createErase(deps: EraseDeps): Erase {
  let running = 0
  return async (wanted) => {
    if (running >= erasuresAtOnceMax) {
      throw new Problem('conflict', `${running} erasures are under way. Call again.`)
    }
    running++
    try {
      const receipt = await withTenantLock(
        deps.locks,
        wanted.tenantId,
        (session) => eraseLocked(deps, session, wanted),
        'erasure',
      )
      deps.onOutcome('done')
      return receipt
    } catch (error) {
      deps.onOutcome('failed')
      throw error
    } finally {
      running--
    }
  }
}

type Counts = { clickhouse: Record<ErasureTable, number>; postgres: AlertCounts; streams: Streams }
type Streams = { TELEMETRY: number; DEAD_LETTERS: number }

async function eraseLocked(
  deps: EraseDeps,
  session: Session,
  { actor, ...subject }: EraseRequest,
): Promise<ErasureReceipt> {
  const { tenantId, kind } = subject
  const startedAt = new Date(deps.wallMs()).toISOString()
  await requireTenant(session, tenantId)
  let before: Counts | null = null
  let traces: ErasureTraces | null = null
  for (let pass = 1; ; pass++) {
    const erased: Pass = await erasePass(deps, session, subject, traces)
    traces = erased.traces
    before ??= erased.before
    if (isEmpty(erased.after) || (erased.later > 0 && isEmptyUpToCut(erased.after))) {
      const receipt: ErasureReceipt = {
        tenant_id: tenantId,
        subject: { kind, sha256: toSubjectSha256(subject) },
        started_at: startedAt,
        finished_at: new Date(deps.wallMs()).toISOString(),
        counts: toCounts(before, erased.after),
        kept_mentions: { events: await inClickhouse(() => deps.store.countMentions(subject)) },
        notes: await toNotes(session, subject, erased),
      }
      const { tenant_id: _, ...after } = receipt
      await insertAudit(session, { actor, tenantId, action: 'erasure.done', after })
      return receipt
    }
    if (pass === passesMax) throw unavailable('The erasure is incomplete. Call again.')
  }
}

type Pass = {
  traces: ErasureTraces
  before: Counts
  after: Counts
  later: number
  oldParts: number
}

async function erasePass(
  deps: EraseDeps,
  session: Session,
  subject: ErasureSubject,
  earlier: ErasureTraces | null,
): Promise<Pass> {
  const { store } = deps
  const nats = requireNats(deps)
  const cut = await inNats(() => readTelemetryCut(nats))
  await requireDecided(deps, nats, cut.sequence, true)
  const traces = await inClickhouse(() => store.readTraces(subject, cut.streamOffset, earlier))
  const clickhouseBefore = await inClickhouse(() => store.countRows(traces))
  const erasable = { subject, eventIds: traces.eventIds }
  const postgresBefore = await countErasableAlerts(session, erasable)
  const alertIds = await listErasableAlerts(session, erasable)
  // If the erasure stops after this point, reconciliation reports a difference until it is
  // repeated.
  await inClickhouse(() => store.eraseExpectedAlerts(subject.tenantId, alertIds))
  await eraseAlerts(session, erasable)
  // Replication reads Postgres again from here, where no row of the subject is left.
  await whileReplicationPaused(deps.locks, () => inClickhouse(() => store.eraseReplicas(traces)))
  const streamsBefore = await eraseStreams(nats, subject, cut)
  await eraseClickhouse(deps, nats, traces)
  const oldParts = await inClickhouse(() => store.dropOldParts(oldPartsMaxMs))
  return {
    traces,
    before: { clickhouse: clickhouseBefore, postgres: postgresBefore, streams: streamsBefore },
    after: {
      clickhouse: await inClickhouse(() => store.countRows(traces)),
      postgres: await countErasableAlerts(session, erasable),
      streams: await eraseStreams(nats, subject, cut),
    },
    later: await inClickhouse(() => store.countLater(traces)),
    oldParts,
  }
}

async function whileReplicationPaused(locks: Locks, work: () => Promise<void>): Promise<void> {
  try {
    await withReplicationPaused(locks, work)
  } catch (error) {
    if (!isSqlState(error, sqlStates.lockNotAvailable)) throw error
    throw unavailable('Alerts are being replicated. Call again.')
  }
}

/** @returns the number of removed messages */
async function eraseStreams(
  nats: Nats,
  subject: ErasureSubject,
  cut: TelemetryCut,
): Promise<Streams> {
  return inNats(async () => ({
    TELEMETRY: await eraseTelemetryMessages(nats, subject, cut),
    DEAD_LETTERS: await eraseDeadLetters(nats, subject),
  }))
}

async function eraseClickhouse(deps: EraseDeps, nats: Nats, traces: ErasureTraces): Promise<void> {
  await inClickhouse(() => deps.store.eraseRows(traces))
  // An insert that was under way may have put its aggregates where they were just erased, and its
  // raw events where the rebuild does not see them yet: all that had begun has to end first.
  const { sequence } = await inNats(() => readTelemetryCut(nats))
  await requireDecided(deps, nats, sequence, false)
  await inClickhouse(() => deps.store.rebuild(traces))
}

async function requireDecided(
  deps: EraseDeps,
  nats: Nats,
  sequence: number,
  decided: boolean,
): Promise<void> {
  const limitMs = deps.waitMaxMs ?? decidedMaxMs
  const options = { decided, limitMs, nowMs: deps.nowMs }
  if (await inNats(() => awaitWorkedOff(nats, sequence, options))) return
  throw unavailable(
    `Accepted events were not stored and decided within ${limitMs} ms: is a scorer running? ` +
      'Call again.',
  )
}

function requireNats({ findNats }: EraseDeps): Nats {
  const nats = findNats()
  if (nats?.connected()) return nats
  throw unavailable('NATS is not connected. Call again.')
}

const inNats = <T>(work: () => Promise<T>): Promise<T> => inStore('NATS', work)
const inClickhouse = <T>(work: () => Promise<T>): Promise<T> => inStore('ClickHouse', work)

async function inStore<T>(store: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem || error instanceof TypeError) throw error
    const detail = `${store} does not answer at the moment. Call again.`
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

function toCounts(before: Counts, after: Counts): Record<string, ErasureCount> {
  const counts: Record<string, ErasureCount> = {}
  for (const store of ['clickhouse', 'postgres', 'streams'] as const) {
    const left: Record<string, number> = after[store]
    for (const [name, count] of Object.entries(before[store])) {
      counts[`${store}.${name}`] = { before: count, after: left[name] ?? 0 }
    }
  }
  return counts
}

async function toNotes(session: Session, subject: ErasureSubject, pass: Pass): Promise<string[]> {
  const notes = [
    'clickhouse.sdk_baselines keeps places of bitmaps, never ids, and expires within 8 days.',
    'Postgres writes over the space of removed rows in time; its write-ahead log and backups of ' +
      'any store keep what they held until they are recycled.',
  ]
  const mentions = await countAuditMentions(session, subject)
  if (mentions > 0) {
    notes.push(
      `${mentions} rows of the audit log hold the id in an operator's words; it is append-only.`,
    )
  }
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
