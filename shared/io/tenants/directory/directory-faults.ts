/**
 * Compares the tenant directory in NATS with Postgres, and names the entries that differ.
 */
import type { KvEntry, QueuedIterator } from 'nats'
import {
  listKey,
  listKeyPrefix,
  listShardSchema,
  policyKey,
  type TenantEntry,
  tenantEntrySchema,
  tenantKey,
} from '#shared/core/tenants/directory-entries.ts'
import { findListShard, listShardVersions } from '#shared/io/lists/list-store.ts'
import { createPolicyStore } from '#shared/io/policies/policy-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { isUndone } from '#shared/io/tenants/recover-tenant.ts'
import type { TenantStore } from '#shared/io/tenants/tenant-store.ts'
import { type Directory, readProven } from './directory-entries.ts'
import { isPolicyDocument } from './tenant-directory.ts'

type Stores = { store: TenantStore; postgres: Postgres }

/** The bucket as a watch has brought it. */
export type Copy = Directory & {
  watch: QueuedIterator<KvEntry>
  held: Map<string, KvEntry>
  /** What `readShardVersion` has read: all lists together are megabytes. */
  shardVersions: WeakMap<KvEntry, number | null>
  /** Rises with every change of a tenant or policy. */
  changes: number
  revision: number
  ended: boolean
  /** When it began. */
  sinceMs: number
}

/** `ahead`: Postgres was put back, and takes the entry; of all others Postgres is right. */
export const repairKinds = [
  'missing',
  'unproven',
  'differs',
  'left_over',
  'policy',
  'ahead',
] as const
export type RepairKind = (typeof repairKinds)[number]

export type Fault = {
  kind: RepairKind
  key: string
  /** The revision at which it was seen, 0 when there was none. */
  revision: number
  /** What belongs there: JSON, `null` when nothing does. */
  wanted: string
}

/**
 * Reads the bucket, then Postgres. In this order, an entry that changed in between
 * has another revision by now, and writing on the one we saw is refused.
 */
export async function findFaults(
  state: Stores,
  copy: Copy,
): Promise<{ faults: Fault[]; tenants: number; policiesInUse: ReadonlySet<string> }> {
  const held = new Map(copy.held)
  const entries = await state.store.listEntries()
  const faults: Fault[] = []
  const compare = (key: string, wanted: string, kind: RepairKind) => {
    const present = held.get(key)
    const proven = present === undefined ? null : readProven(copy, present)
    // Tenants that exist are proven again as their secrets are sealed again.
    const isCurrent = kind !== 'left_over' || proven?.byPresentKey === true
    if (proven?.text === wanted && isCurrent) return
    const unproven = present === undefined ? 'missing' : 'unproven'
    const found = proven === null ? unproven : kind
    faults.push({ kind: found, key, revision: present?.revision ?? 0, wanted })
  }
  const policiesInUse = new Set(entries.map((entry) => entry.policy_hash))
  for (const policyHash of policiesInUse) {
    const key = policyKey(policyHash)
    const present = held.get(key)
    if (isPolicy(present, policyHash)) continue
    const wanted = await createPolicyStore(state.postgres).findDocument(policyHash)
    const revision = present?.revision ?? 0
    if (wanted !== null) faults.push({ kind: 'policy', key, revision, wanted })
  }
  const known = new Set<string>()
  for (const entry of entries) {
    const key = tenantKey(entry.tenant_id)
    known.add(key)
    const ahead = findEntry(copy, held.get(key))
    if (ahead !== null && ahead.entry.epoch > entry.epoch) faults.push(ahead.fault)
    else compare(key, JSON.stringify(entry), 'differs')
  }
  faults.push(...(await findListFaults(state, copy, held)))
  for (const [key, present] of held) {
    if (!key.startsWith(tenantKey('')) || known.has(key)) continue
    const forgotten = findEntry(copy, present)
    const isForgotten =
      forgotten !== null && !(await isUndone(state.postgres, forgotten.entry.tenant_id))
    if (isForgotten) faults.push(forgotten.fault)
    else compare(key, 'null', 'left_over')
  }
  return { faults, tenants: entries.length, policiesInUse }
}

/** @returns the proven entry of a tenant, as one that Postgres does not have */
function findEntry(
  copy: Copy,
  present: KvEntry | undefined,
): { entry: TenantEntry; fault: Fault } | null {
  const proven = present === undefined ? null : readProven(copy, present)
  const parsed = tenantEntrySchema.safeParse(proven?.value)
  if (present === undefined || proven === null || !parsed.success) return null
  const { key, revision } = present
  return { entry: parsed.data, fault: { kind: 'ahead', key, revision, wanted: proven.text } }
}

/** Compares versions: one version of a shard names one content. */
async function findListFaults(
  { postgres }: Stores,
  copy: Copy,
  held: ReadonlyMap<string, KvEntry>,
): Promise<Fault[]> {
  const faults: Fault[] = []
  const known = new Set<string>()
  const add = (key: string, kind: RepairKind, wanted: string) => {
    const present = held.get(key)
    const proven = present === undefined ? null : readProven(copy, present)
    const unproven = present === undefined ? 'missing' : 'unproven'
    const found = proven === null ? unproven : kind
    faults.push({ kind: found, key, revision: present?.revision ?? 0, wanted })
  }
  for (const { tenantId, shard, version } of await listShardVersions(postgres)) {
    const key = listKey(tenantId, shard)
    known.add(key)
    const present = held.get(key)
    if (present !== undefined && readShardVersion(copy, present) === version) continue
    const wanted = await findListShard(postgres, { tenantId, shard })
    if (wanted !== null) add(key, 'differs', JSON.stringify(wanted))
  }
  for (const [key, entry] of held) {
    if (!key.startsWith(listKeyPrefix) || known.has(key)) continue
    const proven = readProven(copy, entry)
    if (proven?.text !== 'null' || !proven.byPresentKey) add(key, 'left_over', 'null')
  }
  return faults
}

/** @returns the version of a shard that is readable and proven by the present key, else null */
function readShardVersion(copy: Copy, entry: KvEntry): number | null {
  const known = copy.shardVersions.get(entry)
  if (known !== undefined) return known
  const proven = readProven(copy, entry)
  const parsed = listShardSchema.safeParse(proven?.value)
  const version = parsed.success && proven?.byPresentKey ? parsed.data.version : null
  copy.shardVersions.set(entry, version)
  return version
}

/** Whether an entry is the document of this hash. */
export function isPolicy(entry: KvEntry | undefined, policyHash: string): boolean {
  return entry?.operation === 'PUT' && isPolicyDocument(entry.string(), policyHash)
}
