/**
 * Adds and removes entries of allow and deny lists, and lists them, for operators and for keys. A
 * change and its audit row are one transaction. The audit log is append-only, so of what may stand
 * for one person it has the SHA-256 alone: an erasure could not remove the id.
 */
import { hash, randomBytes, randomInt } from 'node:crypto'
import { z } from 'zod'
import { isWideEntry } from '#shared/core/approvals/four-eyes.ts'
import { listEntriesMax, listedConnectionsMax, listShards } from '#shared/core/base/limits/lists.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import { invalidKey, Problem } from '#shared/core/http/problem.ts'
import { isConnectionKind } from '#shared/core/lists/list-entry.ts'
import {
  type ListEntriesQuery,
  type ListEntryBody,
  listEntryPath,
} from '#shared/core/lists/list-schemas.ts'
import { isImpersonal, parseListedId } from '#shared/core/lists/listed-ids.ts'
import { lockActiveKey } from '#shared/io/api-keys/api-key-store.ts'
import { claimByKey } from '#shared/io/approvals/claim-by-key.ts'
import { type Approval, claimChange } from '#shared/io/approvals/claim-change.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import { type ListEntryView, listEntries, putListEntry, removeListEntry } from './list-store.ts'

type Author = {
  tenantId: string
  /** For the audit log: an operator's email, `admin`, or `api-key:` and its name. */
  actor: string
  /** The API key of the change: it must be active until the change is done. */
  keyHash?: Buffer
  approval?: Approval | undefined
}

export type NewEntry = Author & {
  entry: ListEntryBody
  /** The wall clock: an expiry must be in the future. */
  nowMs: number
}

/**
 * Adds an entry. One of the same id on the same list is replaced and keeps its `entry_id`, so a
 * repeat is safe.
 * @throws Problem approval_required; invalid_body for an expiry in the past and for an id that its
 *   kind cannot have, conflict when the lists are full, unauthorized when the key is no longer
 *   active
 */
export function addListEntry(postgres: Session, wanted: NewEntry): Promise<ListEntryView> {
  const { tenantId, actor, entry, nowMs } = wanted
  const { expires_at: expiresAtMs, ...rest } = entry
  const listed = parseListedId(entry.kind, entry.id)
  if ('fault' in listed) {
    throw new Problem('invalid_body', 'The entry cannot be on a list.', {
      errors: [{ path: '$.id', message: listed.fault }],
    })
  }
  if (expiresAtMs != null && expiresAtMs <= nowMs) {
    throw new Problem('invalid_body', 'The entry would have expired already.', {
      errors: [{ path: '$.expires_at', message: 'must be in the future' }],
    })
  }
  return postgres.transaction(async (tx) => {
    await requireActiveKey(tx, wanted)
    if (isWideEntry({ kind: entry.kind, id: listed.id })) await claimWideEntry(tx, wanted)
    const put = await putListEntry(tx, {
      ...rest,
      id: listed.id,
      tenantId,
      entryId: `lst_${randomBytes(16).toString('base64url')}`,
      shard: isConnectionKind(entry.kind) ? null : randomInt(listShards),
      expiresAtMs,
      actor,
    })
    if (put === 'full' || put === 'connections_full') throw new Problem('conflict', full[put])
    await insertAudit(tx, {
      actor,
      tenantId,
      action: 'list_entry.added',
      before: put.replaced === null ? null : toAudited(put.replaced),
      after: toAudited(put.entry),
    })
    return put.entry
  })
}

async function claimWideEntry(tx: Queryable, wanted: NewEntry): Promise<void> {
  const { tenantId, actor, keyHash, approval } = wanted
  const kind = 'wide_list_entry'
  if (keyHash === undefined) await claimChange(tx, { kind, tenantId, actor, approval })
  else await claimByKey(tx, { kind, tenantId, actor, keyHash })
}

const full = {
  full: `The lists are full: a tenant has at most ${listEntriesMax} entries. Remove some.`,
  connections_full: `The lists are full: a tenant has at most ${listedConnectionsMax} entries of networks, operators and countries. Remove some. Long lists of networks can be files of NETWORK_DATA.`,
}

/**
 * Removes an entry.
 * @throws Problem list_entry_not_found, unauthorized when the key is no longer active
 */
export function dropListEntry(
  postgres: Session,
  wanted: Author & { entryId: string },
): Promise<ListEntryView> {
  const { tenantId, actor, entryId } = wanted
  return postgres.transaction(async (tx) => {
    await requireActiveKey(tx, wanted)
    const removed = await removeListEntry(tx, { tenantId, entryId })
    if (removed === null) {
      throw new Problem('list_entry_not_found', 'The tenant has no such entry on its lists.')
    }
    const before = toAudited(removed)
    await insertAudit(tx, { actor, tenantId, action: 'list_entry.removed', before })
    return removed
  })
}

/** The lists for the keys of tenants. @param nowMs the wall clock */
export function createKeyedLists(postgres: Session, nowMs: () => number) {
  return {
    listEntries: (page: { tenantId: string; query: ListEntriesQuery }) =>
      listEntriesByQuery(postgres, page.tenantId, page.query),
    addEntry: (wanted: Omit<NewEntry, 'nowMs'>) =>
      addListEntry(postgres, { ...wanted, nowMs: nowMs() }),
    removeEntry: (wanted: Author & { entryId: string }) => dropListEntry(postgres, wanted),
  }
}

async function requireActiveKey(tx: Queryable, { keyHash }: Author): Promise<void> {
  if (keyHash !== undefined && !(await lockActiveKey(tx, keyHash))) throw invalidKey()
}

const toAudited = ({
  id,
  created_at: _,
  created_by: __,
  expired: ___,
  ...entry
}: ListEntryView) => ({
  ...entry,
  ...(isImpersonal(entry.kind, id) ? { id } : {}),
  id_sha256: hash('sha256', id, 'hex'),
})

const positionSchema = z.tuple([instantMsSchema, listEntryPath.shape.entry_id])

/**
 * A page of a tenant's entries.
 * @throws Problem invalid_query for a cursor of other filters, and for an id that the kind cannot
 *   have
 */
export async function listEntriesByQuery(
  db: Queryable,
  tenantId: string,
  { limit, cursor, state, ...asked }: ListEntriesQuery,
): Promise<{ data: ListEntryView[]; total: number; limit: number; next_cursor: string | null }> {
  const filters = { ...asked, id: toSpelledId(asked) }
  const { list, kind, id, reason } = filters
  const bound = [list, kind, id, reason, state].map((value) => value ?? null)
  const scope: CursorScope = { list: 'list-entries', tenantId, filters: bound }
  const position = cursor === undefined ? null : decodeCursor(scope, cursor, positionSchema)
  const expired = state === undefined ? undefined : state === 'expired'
  const { data: found, total } = await listEntries(
    db,
    { tenantId, ...filters, expired },
    {
      limit: limit + 1,
      after: position === null ? null : { createdAtMs: position[0], entryId: position[1] },
    },
  )
  const data = found.slice(0, limit)
  const last = data.at(-1)
  const next =
    found.length > limit && last !== undefined
      ? encodeCursor(scope, [Date.parse(last.created_at), last.entry_id])
      : null
  return { data, total, limit, next_cursor: next }
}

/** Without a kind an id is looked for as it is. */
function toSpelledId({ kind, id }: Pick<ListEntriesQuery, 'kind' | 'id'>): string | undefined {
  if (kind === undefined || id === undefined || !isConnectionKind(kind)) return id
  const listed = parseListedId(kind, id)
  if ('id' in listed) return listed.id
  throw new Problem('invalid_query', 'No entry of this kind can have this id.', {
    errors: [{ path: 'id', message: listed.fault }],
  })
}
