/**
 * Keeps the projection of the tenants in NATS equal to Postgres: it repairs missing, stale, edited
 * and leftover entries within seconds, and counts them. An entry that is ahead of Postgres shows
 * that Postgres was put back to an earlier state: it stays as it is until an operator recovers the
 * tenant. Nothing in NATS changes Postgres by itself. A repair never races with a rotation: it
 * writes only if the entry still has the revision from before the read of Postgres. When nothing is
 * missing it writes a synced entry: then edges may call a tenant unknown, and rotations trust the
 * list of edges.
 */
import { leaseMarginMs, leaseMs, unusedPolicyMs } from '#shared/core/base/limits/tenants.ts'
import {
  edgeKey,
  type SyncedEntry,
  syncedEntrySchema,
  syncedKey,
  tenantKey,
} from '#shared/core/tenants/directory-entries.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { readListMarker } from '#shared/io/lists/list-store.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { isWrongRevision } from '#shared/io/nats/jetstream-errors.ts'
import { restoreTenantsBucket } from '#shared/io/nats/streams/restore-streams.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import { within } from '#shared/io/process/pause.ts'
import {
  type Ahead,
  type Copy,
  type Fault,
  findFaults,
  type RepairKind,
  repairKinds,
} from '#shared/io/tenants/directory/directory-faults.ts'
import { createTenantStore, type TenantStore } from '#shared/io/tenants/tenant-store.ts'
import {
  type Directory,
  type ProvenEntry,
  putProven,
  readProven,
  toDirectory,
} from './directory-entries.ts'
import { createUnusedPolicies, type UnusedPolicies } from './unused-policies.ts'

export type TenantProjection = {
  /**
   * Compares once and repairs what differs.
   * @returns how many entries were written or removed
   * @throws when Postgres or NATS is away
   */
  repair: () => Promise<number>
  /** Tenants that wait for an operator to recover them. */
  countAhead: () => number
  stop: () => void
}

type TenantProjectionOptions = {
  /** The connection, or null while there has not been one yet. */
  findNats: () => Nats | null
  /** Its keys prove what is written. */
  sealer: Sealer
  postgres: Postgres
  log: Log
  metrics: Metrics
  /** The monotonic clock. */
  nowMs: () => number
  /** How long a policy stays that no tenant uses; a minute by default. */
  unusedPolicyMs?: number
}

type State = TenantProjectionOptions & {
  store: TenantStore
  copy: Copy | null
  /** The last state that was compared and found equal. */
  clean: string | null
  /** Tenants at that moment, and the policies that they had. */
  tenants: number
  policiesInUse: ReadonlySet<string>
  unusedPolicies: UnusedPolicies
  removedPolicies: (count: number) => void
  ahead: number
  /** Faults of the last look, by key: what changes at this moment looks wrong for an instant. */
  suspects: Map<string, string>
  repaired: (kind: RepairKind) => void
}

/** Keys named in one line of the log. */
const loggedKeysMax = 10

/** How many entries are repaired at once: a lost bucket of ten thousand takes a few seconds. */
const repairsAtOnce = 64

export function createTenantProjection(options: TenantProjectionOptions): TenantProjection {
  const repairs = options.metrics.counter(
    'di_projection_repairs_total',
    'Entries of the tenant directory that differed from Postgres and were put right',
    ['kind'],
  )
  startAtZero(
    repairs,
    repairKinds.map((kind) => ({ kind })),
  )
  const removals = options.metrics.counter(
    'di_projection_policies_removed_total',
    'Policy documents removed from the tenant directory because no tenant uses them',
  )
  const state: State = {
    ...options,
    store: createTenantStore(options.postgres),
    copy: null,
    clean: null,
    tenants: 0,
    policiesInUse: new Set(),
    unusedPolicies: createUnusedPolicies(options.unusedPolicyMs ?? unusedPolicyMs, options.nowMs),
    removedPolicies: (count) => removals.inc(count),
    ahead: 0,
    suspects: new Map(),
    repaired: (kind) => repairs.inc({ kind }),
  }
  return {
    repair: () => repair(state),
    countAhead: () => state.ahead,
    stop: () => state.copy?.watch.stop(),
  }
}

const toSeen = ({ revision, wanted }: Fault) => `${revision} ${wanted}`

async function repair(state: State): Promise<number> {
  const before = state.copy
  const copy = await openCopy(state)
  const [tenantMarker, listMarker] = await Promise.all([
    state.store.readMarker(),
    readListMarker(state.postgres),
  ])
  const marker = `${copy.createdAt} ${copy.changes} ${tenantMarker} ${listMarker}`
  if (marker === state.clean) {
    await declareSynced(state, copy, state.tenants)
    await removeUnusedPolicies(state, copy)
    return 0
  }
  const { faults: found, ahead, tenants, policiesInUse } = await findFaults(state, copy)
  noteAhead(state, ahead)
  // A change is in Postgres a moment before it is here. What a fresh load misses is missing, and
  // what proves nothing was not written by us; anything else is at fault when the next look finds
  // it unchanged.
  const faults = found.filter(
    (fault) =>
      copy !== before ||
      fault.kind === 'unproven' ||
      state.suspects.get(fault.key) === toSeen(fault),
  )
  state.suspects = new Map(found.map((fault) => [fault.key, toSeen(fault)]))
  if ((readSynced(copy)?.tenants ?? 0) > tenants) await putSynced(copy, { tenants })
  const written = await repairAll(state, copy, faults)
  // Writes come back through the watch; only a comparison without differences is clean.
  state.clean = found.length === 0 ? marker : null
  state.tenants = tenants
  if (found.length === 0) await declareSynced(state, copy, tenants)
  state.policiesInUse = policiesInUse
  if (written > 0) {
    const keys = faults.slice(0, loggedKeysMax).map(({ key }) => key)
    state.log.warn(
      { written, keys },
      'entries of the tenant directory were wrong and were repaired',
    )
  }
  return written
}

/** Logs once what an operator must confirm. */
function noteAhead(state: State, ahead: readonly Ahead[]): void {
  if (ahead.length > state.ahead) {
    const tenants = ahead.slice(0, loggedKeysMax).map(({ entry }) => entry.tenant_id)
    state.log.error(
      { count: ahead.length, tenants },
      'Postgres is behind the tenant directory: look at `di recovery list`',
    )
  }
  state.ahead = ahead.length
}

/** Postgres and the bucket are equal, so the policies in use are known. */
async function removeUnusedPolicies(state: State, copy: Copy): Promise<void> {
  const nats = state.findNats()
  if (nats === null) return
  const { bucket, held } = copy
  const removed = await state.unusedPolicies.remove({ nats, bucket, held }, state.policiesInUse)
  if (removed > 0) state.removedPolicies(removed)
}

/**
 * Policies and lists come before tenants: no edge waits long for the policy of a tenant, and in a
 * bucket that is filled again no edge serves a tenant without its deny list.
 */
async function repairAll(state: State, copy: Copy, faults: Fault[]): Promise<number> {
  const isTenant = ({ key }: Fault) => key.startsWith(tenantKey(''))
  const first = await repairSome(
    state,
    copy,
    faults.filter((fault) => !isTenant(fault)),
  )
  return first + (await repairSome(state, copy, faults.filter(isTenant)))
}

async function repairSome(state: State, copy: Copy, faults: Fault[]): Promise<number> {
  let written = 0
  let at = 0
  const work = async () => {
    for (let fault = faults[at++]; fault !== undefined; fault = faults[at++]) {
      if (await repairOne(state, copy, fault)) written++
    }
  }
  await Promise.all(Array.from({ length: repairsAtOnce }, work))
  return written
}

function findSynced(copy: Copy): ProvenEntry | null {
  const entry = copy.held.get(syncedKey)
  return entry === undefined ? null : readProven(copy, entry)
}

function readSynced(copy: Copy): SyncedEntry | null {
  const proven = findSynced(copy)
  const parsed = syncedEntrySchema.safeParse(proven?.value)
  return parsed.success ? parsed.data : null
}

/**
 * Writes to the bucket that every tenant is in it. Without this entry it is unknown
 * what became of the one before it: edges may hold a lease from there and be registered nowhere. So
 * it is written only once every such lease has expired, unless there is no tenant.
 */
async function declareSynced(state: State, copy: Copy, tenants: number): Promise<void> {
  const synced = readSynced(copy)
  if (synced?.tenants === tenants && findSynced(copy)?.byPresentKey) return
  if (synced === null && tenants > 0) {
    if (state.nowMs() - copy.sinceMs <= leaseMs + leaseMarginMs) return
    // Check again that this is the bucket that was compared.
    if ((await openCopy(state)) !== copy) return
  }
  await putSynced(copy, { tenants })
}

async function putSynced(copy: Copy, synced: SyncedEntry): Promise<void> {
  try {
    await putProven(
      copy,
      syncedKey,
      JSON.stringify(synced),
      copy.held.get(syncedKey)?.revision ?? 0,
    )
  } catch (error) {
    // Another console was first; the next comparison reads its entry.
    if (!isWrongRevision(error)) throw error
  }
}

/** The copy, begun anew when its watch ended or its bucket was lost, purged or made again. */
async function openCopy(state: State): Promise<Copy> {
  const nats = state.findNats()
  if (nats === null) throw new Error('NATS is not connected')
  const bucket = await restoreTenantsBucket(nats)
  const { streamInfo } = await bucket.status()
  const createdAt = String(streamInfo.created)
  const directory = toDirectory({ nats, bucket, createdAt }, state.sealer)
  const subjects = streamInfo.state.num_subjects ?? 0
  const copy = state.copy
  if (copy !== null) {
    const current = !copy.ended && copy.createdAt === createdAt
    if (current && (await hasReached(copy, streamInfo.state.last_seq, subjects))) return copy
    copy.watch.stop()
  }
  state.copy = await loadCopy(directory, state.nowMs())
  state.clean = null
  return state.copy
}

/**
 * Whether the watch has brought all that the stream holds. A purge reaches no watch: it shows in
 * the number of keys.
 */
async function hasReached(copy: Copy, revision: number, keys: number): Promise<boolean> {
  for (let waitedMs = 0; waitedMs <= 1_000; waitedMs += 20) {
    if (copy.revision >= revision) return copy.revision > revision || copy.held.size === keys
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return false
}

const loadMaxMs = 10_000

async function loadCopy(directory: Directory, sinceMs: number): Promise<Copy> {
  let initialized = () => undefined as unknown
  const loaded = new Promise((resolve) => {
    initialized = () => resolve(undefined)
  })
  const watch = await directory.bucket.watch({ initializedFn: () => initialized() })
  const copy: Copy = {
    ...directory,
    watch,
    held: new Map(),
    proofs: new WeakMap(),
    changes: 0,
    revision: 0,
    ended: false,
    sinceMs,
  }
  void follow(copy)
  if (await within(loaded, loadMaxMs)) return copy
  watch.stop()
  throw new Error('the tenants bucket cannot be read')
}

async function follow(copy: Copy): Promise<void> {
  try {
    for await (const entry of copy.watch) {
      copy.held.set(entry.key, entry)
      if (!entry.key.startsWith(edgeKey('')) && entry.key !== syncedKey) copy.changes++
      copy.revision = Math.max(copy.revision, entry.revision)
    }
  } catch {
    // The next repair begins a new watch.
  } finally {
    copy.ended = true
  }
}

/** @returns false when the entry was written in the meantime, and is newer */
async function repairOne(
  state: State,
  copy: Copy,
  { kind, key, revision, wanted }: Fault,
): Promise<boolean> {
  try {
    // A policy document is proven by its address.
    if (kind === 'policy') await copy.bucket.put(key, wanted, { previousSeq: revision })
    else await putProven(copy, key, wanted, revision)
  } catch (error) {
    if (!isWrongRevision(error)) throw error
    return false
  }
  state.repaired(kind)
  return true
}
