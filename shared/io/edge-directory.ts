/**
 * The tenant directory as an edge uses it: every tenant and policy in memory, kept by a watch over
 * the NATS KV bucket and trusted only under a lease (see edge-lease.ts). A watch that died, a
 * bucket that was lost and made anew, an entry that cannot be read: each ends in a refusal and a
 * fresh load, never in an answer from an old copy. While the bucket is being filled again, the
 * tenants that are there are served and nobody is called unknown.
 */
import { Events, type KV, type KvEntry, type QueuedIterator } from 'nats'
import { deadEdgeMs, leaseMs, leaseRenewMs, leaseStallMs } from '#shared/core/limits.ts'
import {
  type EdgeEntry,
  edgeKey,
  policyKey,
  tenantKey,
  tenantsBucket,
  wholeKey,
} from '#shared/core/messages.ts'
import { createEdgeLease, type EdgeLease } from './edge-lease.ts'
import { isJetstreamError, isUnheard, isWrongRevision, jetstreamCodes } from './jetstream-errors.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Nats } from './nats.ts'
import type { Sealer } from './sealed-secrets.ts'
import { openTenantsBucket } from './streams.ts'
import { createTenantCopy, type Tenant, type TenantCopy } from './tenant-copy.ts'
import { forgetEdge, readJson } from './tenant-directory.ts'

export type TenantDirectoryOptions = {
  nats: Nats
  sealer: Sealer
  log: Log
  metrics: Metrics
  /** Unique per start of a process; letters, digits, `-` and `_`. */
  edgeId: string
  /** The monotonic clock. */
  nowMs: () => number
}

export type TenantDirectory = {
  /** The tenant as the copy has it. Meaningful only while the lease is valid. */
  find: (tenantId: string) => Tenant | undefined
  /** Whether the copy is proven current at this moment; without it nothing may be accepted. */
  leaseValid: () => boolean
  /**
   * Whether the copy has every tenant that there is: without it, one that is not found may only not
   * have been put back yet.
   */
  whole: () => boolean
  /** The newest revision of the bucket that the copy reflects. */
  revision: () => number
  /** Edges that announce themselves, this one included. */
  countEdges: () => number
  /** Why this edge cannot judge signatures, or null. */
  fault: () => string | null
  /** Gives the lease up, stops watching and takes this edge out of the register. */
  close: () => Promise<void>
}

type ReloadReason = 'ended' | 'stalled' | 'reconnected' | 'lost'

type State = TenantDirectoryOptions & {
  lease: EdgeLease
  bucket: KV | null
  watch: QueuedIterator<KvEntry> | null
  /** What requests are judged by, and what the present watch fills: the same once it is current. */
  served: TenantCopy
  filling: TenantCopy
  loaded: boolean
  closed: boolean
  /** The revision of this edge's own entry, 0 when there is none. */
  ownRevision: number
  /** When the watch last brought anything. */
  heardMs: number
  /** Other edges by id: the revision of their newest announcement, and when we heard it. */
  others: Map<string, { revision: number; heardMs: number }>
  leaseWasValid: boolean
  onFault: (reason: string, about: string) => void
  onReload: (reason: ReloadReason) => void
}

/** Begins to load and never stops trying; `fault` and `leaseValid` say how far it is. */
export function openTenantDirectory(options: TenantDirectoryOptions): TenantDirectory {
  const state = createState(options)
  observeState(state)
  const stopped = follow(state)
  void watchConnection(state)
  const timer = setInterval(() => tick(state), leaseRenewMs)
  return {
    find: (tenantId) => state.served.tenants.get(tenantId),
    leaseValid: state.lease.valid,
    whole: () => state.served.whole(),
    revision: state.lease.servedRevision,
    countEdges: () => state.others.size + 1,
    fault: () => findFault(state),
    close: async () => {
      state.closed = true
      clearInterval(timer)
      state.lease.drop()
      state.watch?.stop()
      if (state.bucket !== null && state.nats.connected()) {
        // An entry that stays only costs the next rotation a lease's wait.
        await state.bucket.purge(edgeKey(state.edgeId)).catch(() => undefined)
      }
      await stopped
    },
  }
}

function createState(options: TenantDirectoryOptions): State {
  const { metrics, log, nowMs } = options
  const labels: 'reason'[] = ['reason']
  const faults = metrics.counter('di_directory_faults_total', 'Entries that cannot be used', labels)
  const reloads = metrics.counter('di_directory_reloads_total', 'Watches begun anew', labels)
  const announcements = metrics.counter(
    'di_directory_announcements_total',
    'Lease renewals tried',
    ['outcome'],
  )
  const onFault = (reason: string, about: string) => {
    faults.inc({ reason })
    log.error({ reason, about }, 'an entry of the tenant directory cannot be used')
  }
  const copyOptions = { sealer: options.sealer, nowMs, onFault, previous: () => undefined }
  const empty = createTenantCopy(copyOptions)
  const state: State = {
    ...options,
    lease: createEdgeLease({
      nowMs,
      leaseMs,
      announce: (appliedRevision) => announce(state, appliedRevision),
      onCurrent: () => serve(state),
      onAnnounced: (outcome) => announcements.inc({ outcome }),
    }),
    bucket: null,
    watch: null,
    served: empty,
    filling: empty,
    loaded: false,
    closed: false,
    ownRevision: 0,
    heardMs: nowMs(),
    others: new Map(),
    leaseWasValid: false,
    onFault,
    onReload: (reason) => reloads.inc({ reason }),
  }
  return state
}

/** Waits between two attempts to watch. */
const rewatchMs = 250

async function follow(state: State): Promise<void> {
  let failing = false
  while (!state.closed) {
    try {
      await followOnce(state)
      failing = false
      if (!state.closed && state.watch !== null) state.onReload('ended')
      state.watch = null
    } catch (error) {
      // The bucket's server is away or cannot answer: the lease runs out by itself.
      if (!failing) state.log.warn({ err: error }, 'the tenant directory cannot be watched')
      failing = true
    }
    if (!state.closed) await new Promise((resolve) => setTimeout(resolve, rewatchMs))
  }
}

/** A watch does not survive the server that fed it, and says nothing of it for many seconds. */
async function watchConnection(state: State): Promise<void> {
  for await (const { type } of state.nats.connection.status()) {
    if (state.closed) return
    if (type === Events.Reconnect) reload(state, 'reconnected')
  }
}

/** Watches the bucket from its present content on, into a copy of its own, until the watch ends. */
async function followOnce(state: State): Promise<void> {
  const { nats, lease, nowMs } = state
  // An answer that takes longer than half a lease is of no use to it.
  const jetstream = nats.connection.jetstream({ timeout: leaseMs / 2 })
  const bucket = await openTenantsBucket({ ...nats, jetstream })
  const filling = createTenantCopy({
    sealer: state.sealer,
    nowMs,
    onFault: state.onFault,
    previous: (tenantId) => state.served.tenants.get(tenantId),
  })
  const watch = await bucket.watch()
  if (state.closed) {
    watch.stop()
    return
  }
  state.bucket = bucket
  state.watch = watch
  state.filling = filling
  state.heardMs = nowMs()
  state.others.clear()
  lease.restart()
  lease.announceChange()
  for await (const entry of watch) {
    if (state.watch !== watch) break
    state.heardMs = nowMs()
    const changed = applyEntry(state, entry)
    lease.applied(entry.revision)
    if (changed && state.served === filling) lease.announceChange()
  }
}

/** @returns whether the entry is a change that somebody may be waiting to see applied */
function applyEntry(state: State, entry: KvEntry): boolean {
  const value = entry.operation === 'PUT' ? readJson(entry) : undefined
  const { key } = entry
  if (key.startsWith(edgeKey(''))) {
    noteEdge(state, key.slice(edgeKey('').length), entry)
    return false
  }
  if (key.startsWith(tenantKey(''))) {
    const present = entry.operation === 'PUT' ? (value ?? null) : undefined
    state.filling.setTenant(key.slice(tenantKey('').length), present)
  } else if (key === wholeKey) {
    state.filling.setWhole(value)
    return false
  } else if (key.startsWith(policyKey(''))) {
    const present = entry.operation === 'PUT' ? (value ?? null) : undefined
    state.filling.setPolicy(key.slice(policyKey('').length), present)
  }
  return true
}

function noteEdge(state: State, edgeId: string, entry: KvEntry): void {
  if (edgeId === state.edgeId) {
    // Also the way to learn of an announcement whose acknowledgement was lost.
    state.ownRevision = Math.max(state.ownRevision, entry.revision)
  } else if (entry.operation === 'PUT') {
    state.others.set(edgeId, { revision: entry.revision, heardMs: state.nowMs() })
  } else {
    state.others.delete(edgeId)
  }
}

/** Stores this edge's entry over its last one: a bucket that was lost or restored cannot pass. */
async function announce(state: State, appliedRevision: number): Promise<number> {
  const { bucket, edgeId, closed } = state
  if (bucket === null || closed) throw new Error('there is no bucket to announce to')
  const entry: EdgeEntry = { edge_id: edgeId, applied_revision: appliedRevision }
  const text = JSON.stringify(entry)
  const put = async () => {
    const previousSeq = state.ownRevision
    const revision = await bucket.put(edgeKey(edgeId), text, { previousSeq })
    state.ownRevision = Math.max(state.ownRevision, revision)
    return revision
  }
  try {
    return await put()
  } catch (error) {
    if (isWrongRevision(error)) {
      if (await findOwnEntry(state, bucket)) return await put()
    } else if (await isBucketGone(state, error)) {
      state.log.warn('the tenants bucket is gone: refusing until it is there again')
      reload(state, 'lost')
    }
    throw error
  }
}

/**
 * @returns whether the entry that stands in the way is this edge's own, of a lost acknowledgement
 */
async function findOwnEntry(state: State, bucket: KV): Promise<boolean> {
  const present = await bucket.get(edgeKey(state.edgeId))
  const own = present?.operation === 'PUT' && present.revision >= state.ownRevision
  state.ownRevision = present?.revision ?? 0
  if (own) return true
  // Somebody took us for dead, or the bucket is not the one that we announced ourselves to.
  state.log.warn('this edge is no longer registered: loading the tenant directory afresh')
  reload(state, 'lost')
  return false
}

/** Whether nobody answered because there is no such stream, and not because its leader is away. */
async function isBucketGone({ nats }: State, error: unknown): Promise<boolean> {
  if (!isUnheard(error)) return false
  return nats.manager.streams.info(`KV_${tenantsBucket}`).then(
    () => false,
    (why: unknown) => isJetstreamError(why, jetstreamCodes.streamNotFound),
  )
}

function reload(state: State, reason: ReloadReason): void {
  if (reason === 'lost') state.lease.drop()
  if (state.watch === null) return
  state.onReload(reason)
  state.watch.stop()
  state.watch = null
}

/** The watched copy is current: it is what requests are judged by from now on. */
function serve(state: State): void {
  state.served = state.filling
  state.loaded = true
  state.log.info({ tenants: state.served.tenants.size }, 'the tenant directory is current')
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
  if (valid && state.bucket !== null) {
    for (const [edgeId, edge] of state.others) {
      if (nowMs() - edge.heardMs < deadEdgeMs) continue
      state.others.delete(edgeId)
      void forgetEdge(state.bucket, edgeId, edge.revision)
    }
  }
}

function findFault(state: State): string | null {
  if (!state.loaded) return 'the tenant directory is not loaded'
  if (!state.lease.valid()) return 'the credential lease has run out'
  if (!state.served.whole()) return 'the tenant directory is not complete'
  let unsealable = 0
  for (const tenant of state.served.tenants.values()) {
    if (tenant.fault !== 'unsealable_secret') return null
    unsealable++
  }
  return unsealable === 0 ? null : 'no tenant secret can be unsealed with this MASTER_KEY'
}

function observeState(state: State): void {
  const { metrics, lease } = state
  metrics.gauge('di_lease_valid', 'Whether this edge holds a credential lease', {
    collect() {
      this.set(lease.valid() ? 1 : 0)
    },
  })
  metrics.gauge('di_directory_whole', 'Whether the served copy has every tenant', {
    collect() {
      this.set(state.served.whole() ? 1 : 0)
    },
  })
  metrics.gauge('di_directory_revision', 'Newest revision that the served copy reflects', {
    collect() {
      this.set(lease.servedRevision())
    },
  })
  metrics.gauge('di_directory_tenants', 'Tenants of the served copy, by state', {
    labels: ['state'],
    collect() {
      const counts = new Map([
        ['active', 0],
        ['suspended', 0],
      ])
      for (const tenant of state.served.tenants.values()) {
        const label = tenant.fault ?? tenant.status
        counts.set(label, (counts.get(label) ?? 0) + 1)
      }
      this.reset()
      for (const [label, count] of counts) this.set({ state: label }, count)
    },
  })
}
