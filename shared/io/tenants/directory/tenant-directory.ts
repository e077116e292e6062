/**
 * The writer's side of the tenant directory: it copies tenants and policies from Postgres to the
 * NATS KV bucket that every edge watches. A change of credentials waits until no edge can act on
 * the previous ones. Edges announce in the same bucket what they have applied (see edge-lease.ts),
 * so one sequence orders changes and announcements, and no two clocks are compared.
 */
import { hash } from 'node:crypto'
import { Empty, headers, type KvEntry } from 'nats'
import { policyHashCharacters } from '#shared/core/policies/policy.ts'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import {
  type EdgeGone,
  edgeEntrySchema,
  edgeGoneSchema,
  edgeKey,
  policyKey,
  syncedKey,
  type TenantEntry,
  tenantEntrySchema,
  tenantKey,
} from '#shared/core/tenants/directory-entries.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { isWrongRevision } from '#shared/io/nats/jetstream-errors.ts'
import { listKeys } from '#shared/io/nats/kv-entries.ts'
import { within } from '#shared/io/process/pause.ts'
import {
  type Directory,
  type EdgeDirectory,
  openDirectory,
  putAnnouncement,
  putProven,
  readAnnouncement,
  readProven,
} from './directory-entries.ts'

/** The directory holds a newer epoch of this tenant than the one to be written. */
export class StaleEntryError extends Error {
  constructor(entry: TenantEntry, presentEpoch: number) {
    super(`tenant ${entry.tenant_id} is at epoch ${presentEpoch}, not ${entry.epoch}, at the edges`)
    this.name = 'StaleEntryError'
  }
}

/**
 * Projects a tenant to the edges. Its policy document is stored first, so no edge sees a tenant
 * without its policy. Epochs only rise, so a delayed writer cannot restore an older state.
 * @param policy the document's content address and the exact JSON text that was hashed
 * @returns the revision that carries the tenant; an edge that has applied it acts on this entry
 * @throws StaleEntryError when the directory has a newer epoch
 */
export async function projectTenant(
  directory: Directory,
  entry: TenantEntry,
  policy: { hash: string; text: string },
): Promise<number> {
  const { bucket } = directory
  const key = tenantKey(entry.tenant_id)
  const present = await bucket.get(policyKey(policy.hash))
  const isThere = present?.operation === 'PUT' && isPolicyDocument(present.string(), policy.hash)
  if (!isThere || !(await usesPolicy(directory, key, policy.hash))) {
    // Written again when it comes into use, so a console that removes unused ones keeps it.
    await bucket.put(policyKey(policy.hash), policy.text)
  }
  for (;;) {
    const held = await bucket.get(key)
    const proven = held === null ? null : readProven(directory, held)
    const parsed = tenantEntrySchema.safeParse(proven?.value)
    if (parsed.success && parsed.data.epoch > entry.epoch) {
      throw new StaleEntryError(entry, parsed.data.epoch)
    }
    try {
      return await putProven(directory, key, JSON.stringify(entry), held?.revision ?? 0)
    } catch (error) {
      if (!isWrongRevision(error)) throw error
    }
  }
}

/** The epoch of a tenant's proven entry; null when there is none. @throws when NATS is away */
export async function findProvenEpoch(
  directory: Directory,
  tenantId: string,
): Promise<number | null> {
  const held = await directory.bucket.get(tenantKey(tenantId))
  const proven = held === null ? null : readProven(directory, held)
  return tenantEntrySchema.safeParse(proven?.value).data?.epoch ?? null
}

async function usesPolicy(directory: Directory, key: string, policyHash: string) {
  const held = await directory.bucket.get(key)
  const entry = tenantEntrySchema.safeParse(
    held === null ? null : readProven(directory, held)?.value,
  )
  return entry.success && entry.data.policy_hash === policyHash
}

/** A policy document needs no proof: its key is its hash. */
export function isPolicyDocument(text: string, policyHash: string): boolean {
  return hash('sha256', text, 'hex').slice(0, policyHashCharacters) === policyHash
}

type AwaitEdgesOptions = {
  nats: Nats
  /** Its keys verify the announcements of edges. */
  sealer: Sealer
  /** The revision of the change, from `projectTenant`. */
  revision: number
  /** This process's monotonic clock. */
  nowMs: () => number
  leaseMs: number
  marginMs: number
  /** Called with each edge that must confirm, and again once it has. */
  onEdge?: EdgeListener | undefined
}

export type EdgeListener = (edgeId: string, hasConfirmed: boolean) => void

export type EdgesWaited = {
  /** Edges that have announced the revision. */
  confirmed: string[]
  /** Edges that did not: their leases have expired, so they refuse until they have applied it. */
  leaseExpired: string[]
  waitedMs: number
}

/**
 * Waits until every edge acts on a revision or refuses requests: each has announced the revision,
 * or a lease and its margin have passed since the call, after which no edge without the revision
 * holds a lease. It waits for edges that appear meanwhile, too. In a lost bucket that is not synced
 * again edges with a lease may be missing, so it waits the whole time.
 *
 * The list of edges must be complete. In a cluster a server that is behind may feed the watch, so a
 * mark is written and must come back. An edge that announced again at that moment comes after the
 * mark, so the present keys are listed then and each must have arrived.
 * Never throws: with an unreachable NATS it waits the whole time.
 */
export async function awaitEdges(options: AwaitEdgesOptions): Promise<EdgesWaited> {
  const { nats, sealer, revision, nowMs, leaseMs, marginMs } = options
  const startMs = nowMs()
  const edges = new Map<string, Announcement>()
  const opened = openDirectory(nats, sealer).catch(() => null)
  const directory = (await within(opened, leaseMs)) ? await opened : null
  const complete =
    directory !== null &&
    (await watchAnnouncements({
      directory,
      edges,
      mark: putMark(nats),
      done: () => [...edges.values()].every((edge) => edge.applied >= revision),
      onEdge: (edgeId) => {
        const edge = edges.get(edgeId)
        if (edge !== undefined) options.onEdge?.(edgeId, edge.applied >= revision)
      },
      remainingMs: () => startMs + leaseMs + marginMs - nowMs(),
    }))
  if (!complete) {
    for (let left = 1; left > 0; ) {
      left = startMs + leaseMs + marginMs - nowMs()
      if (left > 0) await sleep(left)
    }
  }
  const confirmed: string[] = []
  const leaseExpired: string[] = []
  for (const [edgeId, edge] of edges) {
    if (edge.applied >= revision) confirmed.push(edgeId)
    else leaseExpired.push(edgeId)
  }
  if (directory !== null) {
    for (const edgeId of leaseExpired) {
      // Only a lease that was requested before the change is known to have expired.
      const { at } = edges.get(edgeId)!
      if (at < revision) void forgetEdge(directory, edgeId, at)
    }
  }
  return { confirmed, leaseExpired, waitedMs: nowMs() - startMs }
}

/** The revision that an edge announced as applied, and the revision of its announcement. */
type Announcement = { applied: number; at: number }

/** The key of the mark, not of an edge: its deletion makes every edge announce its revision. */
export const markKey = edgeKey('=mark')

/** @returns the mark's revision, above every one that was stored before */
async function putMark(nats: Nats): Promise<number> {
  const meta = headers()
  meta.set('KV-Operation', 'DEL')
  const subject = `$KV.${tenantsBucket}.${markKey}`
  return (await nats.jetstream.publish(subject, Empty, { headers: meta })).seq
}

type WatchOptions = {
  directory: Directory
  /** Once the watch delivers the mark, it has delivered every earlier entry. */
  mark: Promise<number>
  edges: Map<string, Announcement>
  /** Called after each announcement of an edge. */
  onEdge: (edgeId: string) => void
  done: () => boolean
  remainingMs: () => number
}

/**
 * Follows the announcements until `done` holds over a complete list of them.
 * @returns false when time ran out or the watch broke
 */
async function watchAnnouncements(options: WatchOptions): Promise<boolean> {
  const { directory, edges, done, mark } = options
  const { nats, bucket } = directory
  mark.catch(() => undefined)
  const seen = new Set<string>()
  /** The keys of all announcements once the mark had arrived. */
  let announced: string[] | null = null
  let ended = false
  let stop: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<boolean>((resolve, reject) => {
      const expire = () => {
        const leftMs = options.remainingMs()
        if (leftMs <= 0) resolve(false)
        else timer = setTimeout(expire, Math.ceil(leftMs))
      }
      expire()
      const settle = () => {
        if (announced?.every((key) => seen.has(key)) && done()) resolve(true)
      }
      const pass = async (revision: number) => {
        if (announced !== null || revision < (await mark)) return
        // An entry that was replaced before the watch sent it arrives after the mark.
        const keys = await listKeys(nats, tenantsBucket, edgeKey('*'))
        // Read after the list, so that a loss before it is noticed.
        const synced = await bucket.get(syncedKey)
        if (synced !== null && readProven(directory, synced) !== null) announced = keys
        settle()
      }
      const follow = async () => {
        const watch = await bucket.watch({ key: edgeKey('*') })
        stop = () => watch.stop()
        if (ended) stop()
        for await (const entry of watch) {
          seen.add(entry.key)
          if (entry.key === markKey) pass(entry.revision).catch(reject)
          else options.onEdge(applyAnnouncement(directory, edges, entry))
          settle()
        }
        resolve(false)
      }
      follow().catch(reject)
    })
  } catch {
    return false
  } finally {
    ended = true
    clearTimeout(timer)
    stop?.()
  }
}

/**
 * A deletion or an announcement without a valid proof confirms nothing: its edge is waited for.
 * @returns the id of the edge
 */
function applyAnnouncement(
  directory: Directory,
  edges: Map<string, Announcement>,
  entry: KvEntry,
): string {
  const edgeId = entry.key.slice(edgeKey('').length)
  const value = readAnnouncement(directory, entry)?.value
  if (edgeGoneSchema.safeParse(value).success) {
    edges.delete(edgeId)
    return edgeId
  }
  const parsed = edgeEntrySchema.safeParse(value)
  edges.set(edgeId, {
    applied: parsed.success ? parsed.data.applied_revision : -1,
    at: entry.revision,
  })
  return edgeId
}

/**
 * Marks an edge as gone, unless it has announced anything since. Its lease must have expired. If it
 * is alive, it notices, loads everything again and takes another id before another lease.
 */
export async function forgetEdge(
  directory: EdgeDirectory,
  edgeId: string,
  revision: number,
): Promise<void> {
  const gone: EdgeGone = { edge_id: edgeId, gone: true }
  try {
    await putAnnouncement(directory, edgeKey(edgeId), gone, revision)
  } catch {
    // It announced again, or NATS is away: the remaining entry only costs a wait.
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.ceil(ms)))
}
