/**
 * Keeps what must stay gone in two stores, and notices when one of them was put back to an earlier
 * state. What Postgres knows to be erased and is there again is erased again. What only the list in
 * NATS knows waits for an operator, who confirms it (see `recovery`): nothing in NATS changes
 * Postgres, or erases, by itself. A lease lets one console run it.
 */
import { randomUUID } from 'node:crypto'
import { readMark } from '#shared/io/analytics/replica-rows-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { requestErasure } from '#shared/io/erasure/erasure-job-store.ts'
import { findLastTelemetrySequence, type TelemetryCut } from '#shared/io/erasure/erasure-streams.ts'
import { type ErasureSubject, toSubjectSha256 } from '#shared/io/erasure/erasure-subject.ts'
import { findRevivedAlerts, findRevivedEvents } from '#shared/io/erasure/revived-subjects-store.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { type Lease, type Leases, withLease } from '#shared/io/leases/leases.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readDecidedWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import {
  type Erased,
  isNewer,
  putRemovals,
  type Removal,
  readRemovals,
  toRemovalKey,
} from '#shared/io/tenants/removal-list.ts'
import {
  endSearch,
  findLostRemovals,
  type LostRemovals,
  listDealtWith,
  listRemovals,
  listUnsearched,
} from '#shared/io/tenants/removal-store.ts'
import { listTelemetryStreamsOf } from '#shared/io/tenants/tenant-streams.ts'

export type RemovalsDeps = {
  postgres: Postgres
  leases: Leases
  clickhouse: Clickhouse
  findNats: () => Nats | null
  sealer: Sealer
  log: Log
  metrics: Metrics
  wallMs: () => number
}

export type Removals = {
  /** Compares both lists once. @returns `elsewhere` when another console has the lease */
  runRound: () => Promise<'compared' | 'elsewhere'>
  /** What waits for an operator, as the last round has found it. */
  countPending: () => Record<Removal['kind'], number>
  start: () => Poller
}

/** Each round reads the whole list: with ten thousand tenants a third of a second. */
const pollMs = 30_000
const kinds = ['api_key', 'webhook', 'erasure'] as const

type State = RemovalsDeps & {
  revived: () => void
  pending: Record<Removal['kind'], number>
  /** Who confirmed an erasure that only NATS knew, by key. */
  actors: Map<string, string>
  /** The newest round of replication that ClickHouse had; a lower one shows that it was put back. */
  round: number | null
  /** Erased subjects that may come back, by key. */
  doubtful: Map<string, Erased>
  /** The ends of their telemetry streams after the first search; null before it. */
  ends: StreamEnd[] | null
}

type StreamEnd = Pick<TelemetryCut, 'stream' | 'sequence'>

/** Creates the job of one console. */
export function createRemovals(deps: RemovalsDeps): Removals {
  const counter = deps.metrics.counter(
    'di_revived_total',
    'Erased subjects that a restored store had again, and that are erased again',
    ['kind'],
  )
  startAtZero(counter, [{ kind: 'erasure' }])
  const state: State = {
    ...deps,
    revived: () => counter.inc({ kind: 'erasure' }),
    pending: { api_key: 0, webhook: 0, erasure: 0 },
    actors: new Map(),
    round: null,
    doubtful: new Map(),
    ends: null,
  }
  const runRound: Removals['runRound'] = async () =>
    (await withLease(deps.leases, 'removals', (lease) => compare(state, lease))) ?? 'elsewhere'
  const failure = 'what must stay gone cannot be compared'
  return {
    runRound,
    countPending: () => state.pending,
    start: () =>
      startPolling(runRound, {
        log: deps.log,
        everyMs: pollMs,
        failure,
        logFromFailure: 2,
      }),
  }
}

async function compare(state: State, lease: Lease): Promise<'compared'> {
  const nats = state.findNats()
  if (nats === null) return 'compared'
  const { postgres } = state
  const prover = state.sealer.proverOf('removal')
  const nowMs = state.wallMs()
  const listed = await readRemovals(nats, prover)
  const present = await listRemovals(postgres, nowMs)
  noteLost(state, await findLostRemovals(postgres, { listed, present, nowMs }))
  const { round } = await readMark(state.clickhouse)
  // After a start it is not known whether ClickHouse was put back before.
  const wasPutBack = state.round === null || round < state.round
  const added = present.filter((removal) => isNewer(removal, listed.get(toRemovalKey(removal))))
  const recovered = await listUnsearched(postgres)
  for (const erased of recovered) state.actors.set(toRemovalKey(erased), erased.actor)
  // NATS does not list an erasure that has just ended, or one that a JetStream forgot.
  addDoubtful(state, [...(wasPutBack ? present : added).filter(isErased), ...recovered])
  await eraseAgain(state, lease, await findRevivedAlerts(postgres, recovered))
  state.round = round
  const dealtWith = await listDealtWith(postgres, { listed, present })
  await lease.check()
  await putRemovals(nats, prover, [...added, ...dealtWith])
  await searchDoubtful(state, lease, nats)
  await endSearch(lease, recovered, nowMs)
  return 'compared'
}

/** Logs once what an operator must confirm. */
function noteLost(state: State, lost: LostRemovals): void {
  const { api_keys, webhooks, erasures } = lost
  const pending = { api_key: api_keys.length, webhook: webhooks.length, erasure: erasures.length }
  if (kinds.some((kind) => pending[kind] > state.pending[kind])) {
    state.log.error(pending, 'Postgres has forgotten what must stay gone: see `di recovery list`')
  }
  state.pending = pending
}

function addDoubtful(state: State, added: readonly Erased[]): void {
  if (added.length === 0) return
  for (const erased of added) state.doubtful.set(toRemovalKey(erased), erased)
  state.ends = null
}

/**
 * Searches ClickHouse for doubtful subjects at once, and again when scorers have decided what the
 * telemetry streams had by then: a JetStream that was put back gives them old events once more. A
 * search of a tenant with ten million devices takes 0.7 s on two cores.
 */
async function searchDoubtful(state: State, lease: Lease, nats: Nats): Promise<void> {
  const { doubtful, postgres, clickhouse, ends } = state
  if (doubtful.size === 0 || (ends !== null && !(await areDecided(nats, ends)))) return
  const subjects = [...doubtful.values()]
  await eraseAgain(state, lease, await findRevivedEvents(clickhouse, subjects))
  if (ends === null) state.ends = await readEnds(nats, postgres, subjects)
  else doubtful.clear()
}

async function readEnds(
  nats: Nats,
  postgres: Postgres,
  subjects: readonly Erased[],
): Promise<StreamEnd[]> {
  const tenantIds = subjects.map(({ tenant_id: tenantId }) => tenantId)
  const streams = await listTelemetryStreamsOf(postgres, tenantIds)
  return Promise.all(
    streams.map(async (stream) => ({
      stream,
      sequence: await findLastTelemetrySequence(nats, stream),
    })),
  )
}

async function areDecided(nats: Nats, ends: readonly StreamEnd[]): Promise<boolean> {
  const decided = await Promise.all(
    ends.map(
      async ({ stream, sequence }) => (await readDecidedWatermark(nats, stream)) >= sequence,
    ),
  )
  return !decided.includes(false)
}

const isErased = (removal: Removal): removal is Erased => removal.kind === 'erasure'

async function eraseAgain(
  state: State,
  lease: Lease,
  subjects: readonly ErasureSubject[],
): Promise<void> {
  const { sealer, log, revived, actors } = state
  const distinct = new Map(subjects.map((subject) => [JSON.stringify(subject), subject]))
  for (const subject of distinct.values()) {
    const { tenantId, kind } = subject
    const erasureId = `era_${randomUUID()}`
    const actor = actors.get(toErasureKey(subject)) ?? 'system'
    const waitingMax = Number.POSITIVE_INFINITY
    const wanted = { erasureId, subject, actor, waitingMax, approval: 'repeated' } as const
    const erasure = await requestErasure(lease, sealer, wanted)
    // One that waits already was counted when it was requested.
    if (erasure === 'busy' || erasure.erasure_id !== erasureId) continue
    revived()
    log.error({ tenantId, kind }, 'an erased subject was there again: it is erased again')
  }
}

const toErasureKey = (subject: ErasureSubject) =>
  toRemovalKey({
    kind: 'erasure',
    tenant_id: subject.tenantId,
    subject: subject.kind,
    sha256: toSubjectSha256(subject),
    started_at: '',
  })
