/**
 * Compares the tenant directory in NATS with Postgres, and names the entries that differ.
 */
import type { KvEntry, QueuedIterator } from 'nats'
import {
  connectionListKey,
  connectionListKeyPrefix,
  connectionListSchema,
  listKey,
  listKeyPrefix,
  listShardSchema,
  parseListKey,
  policyKey,
  type TenantEntry,
  tenantEntrySchema,
  tenantKey,
} from '#shared/core/tenants/directory-entries.ts'
import { splitProof } from '#shared/io/keys/proofs.ts'
import {
  findConnectionList,
  listConnectionVersions,
} from '#shared/io/lists/connection-list-store.ts'
import { findListShard, listShardVersions } from '#shared/io/lists/list-store.ts'
import { createPolicyStore } from '#shared/io/policies/policy-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import type { TenantStore } from '#shared/io/tenants/tenant-store.ts'
import { isUndone } from '#shared/io/tenants/undone-creations.ts'
import { type Directory, type ProvenEntry, readProven } from './directory-entries.ts'
import { isPolicyDocument } from './tenant-directory.ts'

/** What is known of an entry that a console wrote; the version is that of its lists. */
type Checked = Omit<ProvenEntry, 'value'> & { version: number | null }

type Stores = { store: TenantStore; postgres: Postgres }

/** The bucket as a watch has brought it. */
export type Copy = Directory & {
  watch: QueuedIterator<KvEntry>
  held: Map<string, KvEntry>
  /** What was checked before, and under which key: a signature takes 0.1 ms. */
  proofs: WeakMap<KvEntry, { keyId: string; checked: Checked | null }>
  /** Rises with every change of a tenant or policy. */
  changes: number
  revision: number
  ended: boolean
  /** When it began. */
  sinceMs: number
}

/** Of what differs Postgres is right. An entry that is ahead of it is no fault: see `Ahead`. */
export const repairKinds = ['missing', 'unproven', 'differs', 'left_over', 'policy'] as const
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
 * A tenant of which the directory knows more than Postgres, which was put back to an earlier state.
 * Nothing is written for it before an operator has confirmed what is to be recovered.
 */
export type Ahead = { entry: TenantEntry; revision: number }

/**
 * Reads the bucket, then Postgres. In this order, an entry that changed in between
 * has another revision by now, and writing on the one we saw is refused.
 */
export async function findFaults(
  state: Stores,
  copy: Copy,
): Promise<{
  faults: Fault[]
  ahead: Ahead[]
  tenants: number
  policiesInUse: ReadonlySet<string>
}> {
  const held = new Map(copy.held)
  const entries = await state.store.listEntries()
  const faults: Fault[] = []
  const compare = (key: string, wanted: string, kind: RepairKind) => {
    const present = held.get(key)
    const proven = present === undefined ? null : readHeld(copy, present)
    // Tenants that exist are proven again as their secrets are sealed again.
    const isCurrent = kind !== 'left_over' || proven?.byPresentKey === true
    if (proven?.text === wanted && isCurrent) return
    const unproven = present === undefined ? 'missing' : 'unproven'
    const found = proven === null ? unproven : kind
    faults.push({ kind: found, key, revision: present?.revision ?? 0, wanted })
  }
  const ahead = await findAhead(state, copy, held, entries)
  const isAhead = new Set(ahead.map(({ entry }) => entry.tenant_id))
  const policiesInUse = new Set(
    [...entries, ...ahead.map(({ entry }) => entry)].map((entry) => entry.policy_hash),
  )
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
    if (!isAhead.has(entry.tenant_id)) compare(key, JSON.stringify(entry), 'differs')
  }
  faults.push(...(await findListFaults(state, copy, held)))
  for (const key of held.keys()) {
    if (!key.startsWith(tenantKey('')) || known.has(key)) continue
    if (!isAhead.has(key.slice(tenantKey('').length))) compare(key, 'null', 'left_over')
  }
  const isOfAhead = ({ key }: Fault) => isAhead.has(parseListKey(key)?.tenantId ?? '')
  return {
    faults: faults.filter((fault) => !isOfAhead(fault)),
    ahead,
    tenants: entries.length,
    policiesInUse,
  }
}

/**
 * Tenants whose proven entry has an epoch that Postgres has not reached, or that Postgres does not
 * have at all, in the order of their ids.
 * @param held the entries of the bucket by key, read before those of Postgres
 * @param entries what Postgres has
 */
export async function findAhead(
  { postgres }: Pick<Stores, 'postgres'>,
  directory: Pick<Directory, 'entries' | 'createdAt'>,
  held: ReadonlyMap<string, KvEntry>,
  entries: readonly TenantEntry[],
): Promise<Ahead[]> {
  const epochs = new Map(entries.map(({ tenant_id, epoch }) => [tenant_id, epoch]))
  const ahead: Ahead[] = []
  for (const [key, present] of held) {
    if (!key.startsWith(tenantKey('')) || present.operation !== 'PUT') continue
    const entry = readUnchecked(present)
    const epoch = epochs.get(entry?.tenant_id ?? '')
    if (entry === null || key !== tenantKey(entry.tenant_id)) continue
    if (epoch !== undefined && epoch >= entry.epoch) continue
    // Only what is ahead has its signature checked: those are few.
    if (readProven(directory, present) === null) continue
    if (epoch === undefined && (await isUndone(postgres, entry.tenant_id))) continue
    ahead.push({ entry, revision: present.revision })
  }
  return ahead.sort((a, b) => (a.entry.tenant_id < b.entry.tenant_id ? -1 : 1))
}

/** What a tenant's entry says, whoever wrote it. */
function readUnchecked(present: KvEntry): TenantEntry | null {
  try {
    const value: unknown = JSON.parse(splitProof(present.string()).text)
    return tenantEntrySchema.safeParse(value).data ?? null
  } catch {
    return null
  }
}

/** Compares versions: one version of a shard, or of a list of connections, names one content. */
async function findListFaults(
  { postgres }: Stores,
  copy: Copy,
  held: ReadonlyMap<string, KvEntry>,
): Promise<Fault[]> {
  const faults: Fault[] = []
  const known = new Set<string>()
  const add = (key: string, kind: RepairKind, wanted: string) => {
    const present = held.get(key)
    const proven = present === undefined ? null : readHeld(copy, present)
    const unproven = present === undefined ? 'missing' : 'unproven'
    const found = proven === null ? unproven : kind
    faults.push({ kind: found, key, revision: present?.revision ?? 0, wanted })
  }
  for (const { key, version, read } of await listWantedLists(postgres)) {
    known.add(key)
    const present = held.get(key)
    if (present !== undefined && readListVersion(copy, present) === version) continue
    const wanted = await read()
    if (wanted !== null) add(key, 'differs', JSON.stringify(wanted))
  }
  for (const [key, entry] of held) {
    const isList = key.startsWith(listKeyPrefix) || key.startsWith(connectionListKeyPrefix)
    if (!isList || known.has(key)) continue
    const proven = readHeld(copy, entry)
    if (proven?.text !== 'null' || !proven.byPresentKey) add(key, 'left_over', 'null')
  }
  return faults
}

/** What Postgres has for the edges, by key and version. */
async function listWantedLists(
  db: Queryable,
): Promise<{ key: string; version: number; read: () => Promise<object | null> }[]> {
  const shards = await listShardVersions(db)
  const connections = await listConnectionVersions(db)
  return [
    ...shards.map(({ tenantId, shard, version }) => ({
      key: listKey(tenantId, shard),
      version,
      read: () => findListShard(db, { tenantId, shard }),
    })),
    ...connections.map(({ tenantId, version }) => ({
      key: connectionListKey(tenantId),
      version,
      read: () => findConnectionList(db, tenantId),
    })),
  ]
}

/** @returns the version of lists that are readable and proven by the present key, else null */
function readListVersion(copy: Copy, entry: KvEntry): number | null {
  const checked = readHeld(copy, entry)
  return checked?.byPresentKey ? checked.version : null
}

/** Checks an entry of the copy, once for each key that may prove it. */
function readHeld(copy: Copy, entry: KvEntry): Checked | null {
  const { keyId } = copy.entries
  const known = copy.proofs.get(entry)
  if (known?.keyId === keyId) return known.checked
  const proven = readProven(copy, entry)
  const schema = parseListKey(entry.key)?.shard === null ? connectionListSchema : listShardSchema
  const { data } = schema.safeParse(proven?.value)
  // Of lists only the version is kept: all of them together are megabytes.
  const toChecked = ({ text, byPresentKey }: ProvenEntry): Checked =>
    data === undefined
      ? { text, byPresentKey, version: null }
      : { text: '', byPresentKey, version: data.version }
  const checked = proven === null ? null : toChecked(proven)
  copy.proofs.set(entry, { keyId, checked })
  return checked
}

/** Whether an entry is the document of this hash. */
export function isPolicy(entry: KvEntry | undefined, policyHash: string): boolean {
  return entry?.operation === 'PUT' && isPolicyDocument(entry.string(), policyHash)
}
