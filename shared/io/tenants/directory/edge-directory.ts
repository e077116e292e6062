/**
 * The tenant directory on an edge: all tenants and policies in memory, read from the NATS KV bucket
 * on and on, and trusted only under a lease (see edge-lease.ts). The server tells of every change;
 * the edge then reads on, as it does after each announcement. After a lost connection, a lost
 * bucket or an unreadable entry the edge refuses requests and loads everything again; it never
 * answers from an old copy. While a new bucket is being filled, the edge serves the tenants that it
 * has read, and an unknown tenant gets 503, not 401.
 */
import { Events, type KvEntry } from 'nats'
import {
  deadEdgeMs,
  leaseMs,
  leaseRenewMs,
  leaseStallMs,
} from '#shared/core/base/limits/tenants.ts'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import {
  connectionListKeyPrefix,
  type EdgeEntry,
  edgeGoneSchema,
  edgeKey,
  listKeyPrefix,
  parseListKey,
  policyKey,
  syncedKey,
  tenantKey,
} from '#shared/core/tenants/directory-entries.ts'
import { verdictKeyEntryKey } from '#shared/core/verdicts/verdict-keys.ts'
import type { EdgeKeys } from '#shared/io/keys/edge-keys.ts'
import type { BucketRead } from '#shared/io/nats/bucket-reader.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import {
  hasNoResponders,
  isJetstreamError,
  isWrongRevision,
  jetstreamCodes,
} from '#shared/io/nats/jetstream-errors.ts'
import { readJson } from '#shared/io/nats/kv-entries.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { ActivePolicies } from './active-policies.ts'
import {
  type EdgeDirectory,
  putAnnouncement,
  readAnnouncement,
  readProven,
  toEdgeDirectory,
} from './directory-entries.ts'
import { type DirectoryReads, openDirectoryReads } from './directory-reads.ts'
import { createEdgeLease, type EdgeLease } from './edge-lease.ts'
import { countDirectory, observeDirectory, type ReloadReason } from './observe-directory.ts'
import { createTenantCopy, type Tenant, type TenantCopy } from './tenant-copy.ts'
import { forgetEdge, isPolicyDocument, markKey } from './tenant-directory.ts'

type TenantDirectoryOptions = {
  nats: Nats
  keys: EdgeKeys
  log: Log
  metrics: Metrics
  /** Unique per start of a process; letters, digits, `-` and `_`. */
  edgeId: string
  /** The monotonic clock. */
  nowMs: () => number
}

export type TenantDirectory = {
  /** The tenant in the copy. Use it only while the lease is valid. */
  find: (tenantId: string) => Tenant | undefined
  /** The key that signs verdicts, likewise; null while there is none. */
  verdictSigner: TenantCopy['verdictSigner']
  /** Whether the copy is proven current; otherwise accept nothing. */
  leaseValid: () => boolean
  /** Whether the copy has every tenant; otherwise a missing one may not have been written yet. */
  synced: () => boolean
  /** Whether the key of every tenant in the copy is known. */
  keysKnown: () => boolean
  /** The newest revision of the bucket that the copy reflects. */
  revision: () => number
  /** The id under which this edge is announced. It changes when the edge was marked gone. */
  edgeId: () => string
  /** Edges with an announcement, this one included. */
  countEdges: () => number
  /** Policy documents in the copy, and those that are compiled. */
  countPolicies: ActivePolicies['count']
  /** Why this edge cannot verify signatures, or null. */
  fault: () => string | null
  /** Drops the lease, stops the watch and removes this edge's registration. */
  close: () => Promise<void>
}

type State = TenantDirectoryOptions & {
  lease: EdgeLease
  directory: EdgeDirectory | null
  /** Null while the bucket is not read. */
  reads: DirectoryReads | null
  /** Why the bucket cannot be read; null while it can. */
  readFault: string | null
  /** The newest revision that was read. */
  readRevision: number
  /** The active snapshot, and the one that is being filled: the same once it is current. */
  active: TenantCopy
  staging: TenantCopy
  loaded: boolean
  closed: boolean
  /** The id in this edge's announcements; a new one once the old one is marked gone. */
  registeredAs: string
  registrations: number
  /** The revision of this edge's own entry, 0 when there is none. */
  ownRevision: number
  /** Settles with the latest announcement. */
  announcing: Promise<unknown>
  /** When the bucket was last read. */
  heardMs: number
  /** Other edges by id: the revision of their newest announcement, and when it arrived. */
  others: Map<string, { revision: number; heardMs: number }>
  leaseWasValid: boolean
  onFault: (reason: string, about: string) => void
  onReload: (reason: ReloadReason) => void
}

/** Starts to load, and retries until it is closed; `fault` and `leaseValid` show the state. */
export function openTenantDirectory(options: TenantDirectoryOptions): TenantDirectory {
  const state = createState(options)
  observeDirectory({ metrics: state.metrics, lease: state.lease, active: () => state.active })
  const stopped = follow(state)
  void watchConnection(state)
  const timer = setInterval(() => tick(state), leaseRenewMs)
  return {
    find: (tenantId) => state.active.tenants.get(tenantId),
    verdictSigner: () => state.active.verdictSigner(),
    leaseValid: state.lease.valid,
    synced: () => state.active.synced(),
    keysKnown: () => state.active.keysKnown(),
    revision: state.lease.servedRevision,
    edgeId: () => state.registeredAs,
    countEdges: () => state.others.size + 1,
    countPolicies: () => state.active.countPolicies(),
    fault: () => findFault(state),
    close: async () => {
      state.closed = true
      clearInterval(timer)
      state.lease.drop()
      state.reads?.stop()
      // An announcement in flight would replace the entry that says that the edge is gone.
      await state.announcing
      const { directory, registeredAs, ownRevision } = state
      if (directory !== null && ownRevision > 0 && state.nats.connected()) {
        // A remaining entry delays the next rotation by one lease.
        await forgetEdge(directory, registeredAs, ownRevision)
      }
      await stopped
    },
  }
}

function createState(options: TenantDirectoryOptions): State {
  const { nowMs } = options
  const { onFault, onReload, onAnnounced } = countDirectory(options)
  const copyOptions = {
    opener: options.keys,
    telemetryStreams: options.nats.telemetryStreams.length,
    nowMs,
    onFault,
    previous: () => undefined,
  }
  const empty = createTenantCopy(copyOptions)
  const state: State = {
    ...options,
    lease: createEdgeLease({
      nowMs,
      leaseMs,
      announce: (appliedRevision) => {
        const announced = announce(state, appliedRevision)
        state.announcing = announced.catch(() => undefined)
        return announced
      },
      onCurrent: () => serve(state),
      onAnnounced,
    }),
    directory: null,
    reads: null,
    readFault: null,
    readRevision: 0,
    active: empty,
    staging: empty,
    loaded: false,
    closed: false,
    registeredAs: options.edgeId,
    registrations: 1,
    ownRevision: 0,
    announcing: Promise.resolve(),
    heardMs: nowMs(),
    others: new Map(),
    leaseWasValid: false,
    onFault,
    onReload,
  }
  return state
}

/** Waits between two attempts to read the bucket. */
const rereadMs = 250

async function follow(state: State): Promise<void> {
  while (!state.closed) {
    try {
      await followOnce(state)
      state.reads = null
    } catch (error) {
      noteReadFault(state, error)
    }
    if (!state.closed) await new Promise((resolve) => setTimeout(resolve, rereadMs))
  }
}

/** NATS does not answer, or has no bucket: the lease expires without a renewal. */
function noteReadFault(state: State, error: unknown): void {
  if (state.readFault === null) state.log.warn({ err: error }, 'the directory cannot be read')
  state.readFault = (error as Error).message
}

async function watchConnection(state: State): Promise<void> {
  for await (const { type } of state.nats.connection.status()) {
    if (state.closed) return
    // Meanwhile the bucket may have been put back to an earlier copy.
    if (type === Events.Reconnect) reload(state, 'reconnected')
  }
}

/** Reads the bucket and then its changes into a staging snapshot, until the reads are stopped. */
async function followOnce(state: State): Promise<void> {
  const { nats, lease, nowMs } = state
  const reads = await openDirectoryReads(nats, (error) => noteReadFault(state, error))
  const { bucket, createdAt } = reads
  const { keys, onFault } = state
  const previous = (tenantId: string) => state.active.tenants.get(tenantId)
  const telemetryStreams = nats.telemetryStreams.length
  const staging = createTenantCopy({
    telemetryStreams,
    opener: keys,
    nowMs,
    onFault,
    previous,
  })
  const directory = toEdgeDirectory({ nats, bucket, createdAt }, keys)
  try {
    // A close while it was opened had nothing to stop.
    if (state.closed) return
    Object.assign(state, { directory, reads, staging, heardMs: nowMs(), readRevision: 0 })
    state.others.clear()
    lease.restart()
    lease.announceChange()
    for await (const read of reads.all()) {
      if (state.reads !== reads) break
      applyRead(state, directory, read)
      if (read.isToEnd) lease.applied(state.readRevision)
      const hasMark = read.entries.some(({ key }) => key === markKey)
      if (hasMark && state.active === staging) lease.announceChange()
    }
  } finally {
    reads.stop()
  }
}

function applyRead(state: State, directory: EdgeDirectory, { entries }: BucketRead): void {
  state.heardMs = state.nowMs()
  state.readFault = null
  for (const entry of entries) {
    applyEntry(state, directory, entry)
    state.readRevision = entry.revision
  }
}

function applyEntry(state: State, directory: EdgeDirectory, entry: KvEntry): void {
  const { key } = entry
  const { staging } = state
  if (key.startsWith(edgeKey(''))) {
    if (key !== markKey) noteEdge(state, directory, key.slice(edgeKey('').length), entry)
  } else if (key.startsWith(tenantKey(''))) {
    const tenantId = key.slice(tenantKey('').length)
    const proven = readProven(directory, entry)
    if (proven === null) staging.setUnproven(tenantId)
    else staging.setTenant(tenantId, proven.value ?? undefined)
  } else if (key.startsWith(listKeyPrefix) || key.startsWith(connectionListKeyPrefix)) {
    applyLists(staging, directory, entry)
  } else if (key === syncedKey) {
    const proven = readProven(directory, entry)
    if (proven === null) state.onFault('unproven_entry', syncedKey)
    staging.setSynced(proven?.value)
  } else if (key === verdictKeyEntryKey) {
    const proven = readProven(directory, entry)
    if (proven === null) state.onFault('unproven_entry', key)
    staging.setVerdictKey(proven?.value ?? undefined)
  } else if (key.startsWith(policyKey(''))) {
    applyPolicy(state, key.slice(policyKey('').length), entry)
  }
}

function applyLists(staging: TenantCopy, directory: EdgeDirectory, entry: KvEntry): void {
  const parsed = parseListKey(entry.key)
  if (parsed === null) return
  const { tenantId, shard } = parsed
  const proven = readProven(directory, entry)
  if (proven === null) staging.setListsUnproven(tenantId, shard)
  else staging.setLists(tenantId, shard, proven.value ?? undefined)
}

/** Ignores a document that does not match its hash. */
function applyPolicy({ staging, onFault }: State, policyHash: string, entry: KvEntry): void {
  if (entry.operation !== 'PUT') staging.setPolicy(policyHash, undefined)
  else if (isPolicyDocument(entry.string(), policyHash)) {
    staging.setPolicy(policyHash, readJson(entry) ?? null)
  } else onFault('unproven_policy', policyHash)
}

function noteEdge(state: State, directory: EdgeDirectory, edgeId: string, entry: KvEntry): void {
  const gone = isGone(directory, entry)
  if (edgeId !== state.registeredAs) {
    // An entry without a proof is recorded as well; it is removed once it stays silent.
    if (gone) state.others.delete(edgeId)
    else state.others.set(edgeId, { revision: entry.revision, heardMs: state.nowMs() })
  } else if (gone) {
    if (entry.revision > state.ownRevision && !state.closed) leaveRegistration(state)
  } else {
    // This also finds an announcement whose acknowledgement was lost.
    state.ownRevision = Math.max(state.ownRevision, entry.revision)
  }
}

const isGone = (directory: EdgeDirectory, entry: KvEntry): boolean =>
  edgeGoneSchema.safeParse(readAnnouncement(directory, entry)?.value).success

/** The registration was marked gone: takes a new id and loads everything again. */
function leaveRegistration(state: State): void {
  state.registrations++
  state.registeredAs = `${state.edgeId}-${state.registrations}`
  state.ownRevision = 0
  state.log.warn('this edge is no longer registered: loading the tenant directory afresh')
  reload(state, 'lost')
}

/** Replaces this edge's last entry; fails in a bucket that was lost or restored. */
async function announce(state: State, appliedRevision: number): Promise<number> {
  const { directory, closed, registeredAs } = state
  if (directory === null || closed) throw new Error('there is no bucket to announce to')
  const { forms } = state.keys
  const entry: EdgeEntry = { edge_id: registeredAs, applied_revision: appliedRevision, forms }
  const put = async () => {
    const readBefore = state.readRevision
    const revision = await putAnnouncement(
      directory,
      edgeKey(registeredAs),
      entry,
      state.ownRevision,
    )
    if (state.registeredAs !== registeredAs) throw new Error('this edge was marked gone')
    if (revision <= readBefore) {
      reload(state, 'lost')
      throw new Error('the tenants bucket was put back to an earlier copy')
    }
    state.reads?.wake(revision)
    state.ownRevision = Math.max(state.ownRevision, revision)
    return revision
  }
  try {
    return await put()
  } catch (error) {
    if (isWrongRevision(error) && state.registeredAs === registeredAs) {
      if (await findOwnEntry(state, directory)) return await put()
    } else if (await isBucketGone(state, error)) {
      state.log.warn('the tenants bucket is gone: refusing until it is there again')
      reload(state, 'lost')
    }
    throw error
  }
}

/**
 * @returns whether the present entry may be replaced: it is this edge's own, whose acknowledgement
 *   was lost, or it has no valid proof
 */
async function findOwnEntry(state: State, directory: EdgeDirectory): Promise<boolean> {
  const present = await directory.bucket.get(edgeKey(state.registeredAs))
  if (present !== null && present.revision >= state.ownRevision && !isGone(directory, present)) {
    state.ownRevision = present.revision
    return true
  }
  // This edge was marked gone, or the bucket was replaced.
  leaveRegistration(state)
  return false
}

/** Whether the stream does not exist, rather than having no leader at the moment. */
async function isBucketGone({ nats }: State, error: unknown): Promise<boolean> {
  if (!hasNoResponders(error)) return false
  return nats.manager.streams.info(`KV_${tenantsBucket}`).then(
    () => false,
    (why: unknown) => isJetstreamError(why, jetstreamCodes.streamNotFound),
  )
}

function reload(state: State, reason: ReloadReason): void {
  if (reason === 'lost') state.lease.drop()
  if (state.reads === null) return
  state.onReload(reason)
  state.reads.stop()
  state.reads = null
}

/** Makes the staging snapshot active, because it is current. */
function serve(state: State): void {
  state.active = state.staging
  state.loaded = true
  state.log.info({ tenants: state.active.tenants.size }, 'the tenant directory is current')
}

function tick(state: State): void {
  const { lease, nowMs } = state
  lease.renew()
  const valid = lease.valid()
  if (valid !== state.leaseWasValid) {
    state.leaseWasValid = valid
    if (valid) state.log.info('holding a credential lease')
    else state.log.warn('the credential lease has run out: refusing until it is renewed')
  }
  const silentMs = nowMs() - state.heardMs
  if (lease.unprovenMs() > leaseStallMs && silentMs > leaseStallMs) reload(state, 'stalled')
  if (valid && state.directory !== null) {
    for (const [edgeId, edge] of state.others) {
      if (nowMs() - edge.heardMs < deadEdgeMs) continue
      state.others.delete(edgeId)
      void forgetEdge(state.directory, edgeId, edge.revision)
    }
  }
}

function findFault(state: State): string | null {
  const { readFault: why } = state
  if (!state.loaded) return `the tenant directory is not loaded${why === null ? '' : `: ${why}`}`
  if (!state.lease.valid()) return 'the credential lease has run out'
  const tenants = [...state.active.tenants.values()]
  const foreign = tenants.filter(
    ({ fault }) => fault === 'unsealable_secret' || fault === 'unproven_entry',
  )
  if (tenants.length > 0 && foreign.length === tenants.length) {
    return 'no tenant entry is proven, or can be unsealed, with the keys of this edge'
  }
  return state.active.synced() ? null : 'the tenant directory is not complete'
}
