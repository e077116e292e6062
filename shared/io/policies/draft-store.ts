/**
 * Drafts of policies in Postgres. Everybody of the tenant who may edit a policy shares them, so
 * each change names the revision that it began from, and one that is behind is refused.
 */
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'

/** A draft without its text. Times are ISO-8601. */
export type DraftView = {
  draft_id: string
  tenant_id: string
  comment: string
  base_version: number
  revision: number
  created_by: string
  created_at: string
  updated_by: string
  updated_at: string
}

export type StoredDraft = DraftView & { text: string }

type Row = Omit<StoredDraft, 'created_at' | 'updated_at'> & { created_at: Date; updated_at: Date }

const columns = `draft_id, tenant_id, text, comment, base_version, revision, created_by, created_at,
  updated_by, updated_at`

const toDraft = (row: Row): StoredDraft => ({
  ...row,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

type NewDraft = {
  draftId: string
  tenantId: string
  text: string
  comment: string
  baseVersion: number
  actor: string
  draftsMax: number
}

/** @returns `full` with too many, `no_version` when the tenant has no such version */
export function insertDraft(
  postgres: Postgres,
  { draftId, tenantId, text, comment, baseVersion, actor, draftsMax }: NewDraft,
): Promise<StoredDraft | 'full' | 'no_version'> {
  return postgres.transaction(async (tx) => {
    await tx.query('select 1 from tenants where tenant_id = $1 for no key update', [tenantId])
    const { rows: counts } = await tx.query<{ drafts: number; versions: number }>(
      `select (select count(*) from policy_drafts where tenant_id = $1) as drafts,
         (select count(*) from tenant_policies where tenant_id = $1 and version = $2) as versions`,
      [tenantId, baseVersion],
    )
    if (counts[0]!.versions === 0) return 'no_version'
    if (counts[0]!.drafts >= draftsMax) return 'full'
    const { rows } = await tx.query<Row>(
      `insert into policy_drafts
         (draft_id, tenant_id, text, comment, base_version, created_by, updated_by)
       values ($1, $2, $3, $4, $5, $6, $6) returning ${columns}`,
      [draftId, tenantId, text, comment, baseVersion, actor],
    )
    const after = { draft_id: draftId, base_version: baseVersion }
    await insertAudit(tx, { actor, tenantId, action: 'policy_draft.created', after })
    return toDraft(rows[0]!)
  })
}

type DraftKey = { tenantId: string; draftId: string }

/** @returns null when the tenant has no such draft */
export async function findDraft(
  db: Queryable,
  { tenantId, draftId }: DraftKey,
): Promise<StoredDraft | null> {
  const { rows } = await db.query<Row>(
    `select ${columns} from policy_drafts where tenant_id = $1 and draft_id = $2`,
    [tenantId, draftId],
  )
  return rows[0] === undefined ? null : toDraft(rows[0])
}

/** The drafts of a tenant, newest first. @param page.before continues after this one */
export async function listDrafts(
  db: Queryable,
  { tenantId, limit, before }: { tenantId: string; limit: number; before?: string | undefined },
): Promise<StoredDraft[]> {
  const { rows } = await db.query<Row>(
    `select ${columns} from policy_drafts
     where tenant_id = $1 and ($3::text is null or (created_at, draft_id) <
       (select created_at, draft_id from policy_drafts where tenant_id = $1 and draft_id = $3))
     order by created_at desc, draft_id desc limit $2`,
    [tenantId, limit, before ?? null],
  )
  return rows.map(toDraft)
}

/**
 * Changes a draft that is at this revision still.
 * @returns null when it is not, or the tenant has no such draft or version
 */
export async function updateDraft(
  db: Queryable,
  change: DraftKey & {
    revision: number
    text: string
    comment: string
    baseVersion: number
    actor: string
  },
): Promise<StoredDraft | null> {
  const { rows } = await db.query<Row>(
    `update policy_drafts set text = $4, comment = $5, base_version = $6, updated_by = $7,
       updated_at = clock_timestamp(), revision = revision + 1
     where tenant_id = $1 and draft_id = $2 and revision = $3
       and exists (select from tenant_policies where tenant_id = $1 and version = $6)
     returning ${columns}`,
    [
      ...[change.tenantId, change.draftId, change.revision],
      ...[change.text, change.comment, change.baseVersion, change.actor],
    ],
  )
  return rows[0] === undefined ? null : toDraft(rows[0])
}

/** Removes a draft. @param wanted.revision only at this one @returns whether it was there */
export async function removeDraft(
  tx: Queryable,
  { tenantId, draftId, actor, revision }: DraftKey & { actor: string; revision?: number },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `delete from policy_drafts
     where tenant_id = $1 and draft_id = $2 and ($3::integer is null or revision = $3)`,
    [tenantId, draftId, revision ?? null],
  )
  if (rowCount === 0) return false
  const before = { draft_id: draftId }
  await insertAudit(tx, { actor, tenantId, action: 'policy_draft.removed', before })
  return true
}
