/**
 * Keeps what must stay gone in two stores, and notices when one of them was put back to an earlier
 * state: API keys that were retired are retired again, a webhook with an older secret is paused,
 * and erased subjects that are there again are erased again. A named lock lets one console run it.
 */
import { randomUUID } from 'node:crypto'
import { readMark } from '#shared/io/analytics/replica-rows-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { requestErasure } from '#shared/io/erasure/erasure-job-store.ts'
import { findLastTelemetrySequence, type TelemetryCut } from '#shared/io/erasure/erasure-streams.ts'
import type { ErasureSubject } from '#shared/io/erasure/erasure-subject.ts'
import { findRevivedAlerts, findRevivedEvents } from '#shared/io/erasure/revived-subjects-store.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readDecidedWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { type Locks, tryNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import { listTenantIds } from '#shared/io/reconciliation/reconciliation-postgres-store.ts'
import {
  type Erased,
  isNewer,
  putRemovals,
  type Removal,
  readRemovals,
  toRemovalKey,
} from '#shared/io/tenants/removal-list.ts'
import {
  listRemovals,
  pauseRevivedWebhook,
  retireRevivedKey,
} from '#shared/io/tenants/removal-store.ts'
import type { Sealer } from '#shared/io/tenants/sealed-secrets.ts'
import { listTelemetryStreamsOf } from '#shared/io/tenants/tenant-streams.ts'

export type RemovalsDeps = {
  postgres: Postgres
  /** Connections for work that holds a lock. */
  locks: Locks
  clickhouse: Clickhouse
  findNats: () => Nats | null
  sealer: Sealer
  log: Log
  metrics: Metrics
  wallMs: () => number
}

export type Removals = {
  /** Compares both lists once. */
  runRound: () => Promise<void>
  start: () => Poller
}

/** Each round reads the whole list: with ten thousand tenants a third of a second. */
const everyMs = 30_000
const kinds = ['api_key', 'webhook', 'erasure'] as const

type State = RemovalsDeps & {
  revived: (kind: Removal['kind']) => void
  /** Erasures that only NATS knows and that were dealt with. */
  searched: Set<string>
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
    'Retired keys, replaced webhook secrets and erased subjects that a restored store had again',
    ['kind'],
  )
  startAtZero(
    counter,
    kinds.map((kind) => ({ kind })),
  )
  const state: State = {
    ...deps,
    revived: (kind) => counter.inc({ kind }),
    searched: new Set(),
    round: null,
    doubtful: new Map(),
    ends: null,
  }
  const runRound = async () => {
    await tryNamedLock(deps.locks, 'removals', () => compare(state))
  }
  const failure = 'what must stay gone cannot be compared'
  return {
    runRound,
    start: () => startPolling(runRound, { log: deps.log, everyMs, failure, logFromFailure: 2 }),
  }
}

async function compare(state: State): Promise<void> {
  const nats = state.findNats()
  if (nats === null) return
  const prover = state.sealer.proverOf('removal')
  const listed = await readRemovals(nats, prover)
  const present = await listRemovals(state.postgres, state.wallMs())
  const known = new Map(present.map((removal) => [toRemovalKey(removal), removal]))
  const lost = [...listed.entries()]
    .filter(([key, removal]) => isNewer(removal, known.get(key)))
    .map(([, removal]) => removal)
  for (const removal of lost) await apply(state, removal)
  const { round } = await readMark(state.clickhouse)
  // After a start it is not known whether ClickHouse was put back before.
  const wasPutBack = state.round === null || round < state.round
  const tenants = await listTenantIds(state.postgres)
  const toErased = (removals: readonly Removal[]) =>
    removals.filter(isErased).filter(({ tenant_id: tenant }) => tenants.has(tenant))
  const forgotten = toErased(lost).filter((erased) => !state.searched.has(toRemovalKey(erased)))
  const added = present.filter((removal) => isNewer(removal, listed.get(toRemovalKey(removal))))
  // NATS does not list an erasure that has just ended, or one that a JetStream forgot.
  const unlisted = toErased(added)
  const all = wasPutBack ? toErased([...listed.values(), ...present]) : []
  addDoubtful(state, [...all, ...forgotten, ...unlisted])
  await eraseAgain(state, await findRevivedAlerts(state.postgres, forgotten))
  state.round = round
  for (const erased of forgotten) state.searched.add(toRemovalKey(erased))
  const paused = lost
    .filter(({ kind }) => kind === 'webhook')
    .flatMap((removal) => known.get(toRemovalKey(removal)) ?? [])
  // A webhook that was paused is dealt with: the present secret is the newest from here on.
  await putRemovals(nats, prover, [...added, ...paused])
  await searchDoubtful(state, nats)
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
async function searchDoubtful(state: State, nats: Nats): Promise<void> {
  const { doubtful, postgres, clickhouse, ends } = state
  if (doubtful.size === 0 || (ends !== null && !(await areDecided(nats, ends)))) return
  const subjects = [...doubtful.values()]
  await eraseAgain(state, await findRevivedEvents(clickhouse, subjects))
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

async function apply({ postgres, log, revived }: State, removal: Removal): Promise<void> {
  const { kind, tenant_id: tenantId } = removal
  if (kind === 'api_key' && (await retireRevivedKey(postgres, removal))) {
    revived(kind)
    log.error({ tenantId }, 'Postgres was put back: a retired API key is retired again')
  }
  if (kind === 'webhook' && (await pauseRevivedWebhook(postgres, tenantId))) {
    revived(kind)
    log.error({ tenantId }, 'Postgres was put back: a webhook with a replaced secret is paused')
  }
}

async function eraseAgain(state: State, subjects: readonly ErasureSubject[]): Promise<void> {
  const { postgres, sealer, log, revived } = state
  const distinct = new Map(subjects.map((subject) => [JSON.stringify(subject), subject]))
  for (const subject of distinct.values()) {
    const { tenantId, kind } = subject
    const erasureId = `era_${randomUUID()}`
    const wanted = { erasureId, subject, actor: 'system', waitingMax: Number.POSITIVE_INFINITY }
    const erasure = await requestErasure(postgres, sealer, wanted)
    // One that waits already was counted when it was requested.
    if (erasure === 'busy' || erasure.erasure_id !== erasureId) continue
    revived('erasure')
    log.error({ tenantId, kind }, 'an erased subject was there again: it is erased again')
  }
}
