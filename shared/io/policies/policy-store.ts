/**
 * The policies of tenants in Postgres: documents by their content address, and for every tenant the
 * numbered versions that point at them. Versions are only ever added, without a gap; nothing here
 * changes or removes one. Works on the pool or inside a transaction alike.
 */
import { type Approval, claimChange } from '#shared/io/approvals/claim-change.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** A policy document as it was hashed, byte for byte. */
export type PolicyText = { hash: string; text: string }

/** One version of a tenant's policy, without its document. Times are ISO-8601. */
export type PolicyVersion = {
  version: number
  policy_hash: string
  name: string
  created_at: string
  created_by: string
  /** Why it was published; null where nobody said. */
  reason: string | null
  /** Who approved it; null where nobody had to. */
  approved_by: string | null
}

/** A version to be added. */
export type NewVersion = {
  tenantId: string
  policy: PolicyText
  createdBy: string
  reason?: string | null
  approval?: Approval | undefined
}

type PolicyStore = {
  /** The version that is in force; null when there is no such tenant. */
  findInForce: (tenantId: string) => Promise<(PolicyVersion & { text: string }) | null>
  findVersion: (key: {
    tenantId: string
    version: number
  }) => Promise<(PolicyVersion & { text: string }) | null>
  /** Versions newest first, continuing below one. */
  listVersions: (page: {
    tenantId: string
    limit: number
    before?: number | undefined
  }) => Promise<PolicyVersion[]>
  /** The exact text of a document; null when it was never stored. */
  findDocument: (policyHash: string) => Promise<string | null>
  /**
   * Adds a version and puts it in force, with the tenant's epoch raised. Call it inside a
   * transaction, under the tenant's lock.
   * @returns the version it became
   * @throws Problem approval_required where the tenant wants four eyes
   */
  insertVersion: (change: NewVersion) => Promise<number>
}

/** @param db the pool, or a transaction that the calls become part of */
export function createPolicyStore(db: Queryable): PolicyStore {
  return {
    findInForce: async (tenantId) => {
      const { rows } = await db.query<VersionRow & { text: string }>(
        `${versionSql(', d.text')} join tenants t using (tenant_id)
         where p.tenant_id = $1 and p.version = t.policy_version`,
        [tenantId],
      )
      return rows[0] === undefined ? null : { ...toVersion(rows[0]), text: rows[0].text }
    },
    findVersion: async ({ tenantId, version }) => {
      const { rows } = await db.query<VersionRow & { text: string }>(
        `${versionSql(', d.text')} where p.tenant_id = $1 and p.version = $2`,
        [tenantId, version],
      )
      return rows[0] === undefined ? null : { ...toVersion(rows[0]), text: rows[0].text }
    },
    listVersions: async ({ tenantId, limit, before }) => {
      const { rows } = await db.query<VersionRow>(
        `${versionSql()} where p.tenant_id = $1 and ($2::integer is null or p.version < $2)
         order by p.version desc limit $3`,
        [tenantId, before ?? null, limit],
      )
      return rows.map(toVersion)
    },
    findDocument: async (policyHash) => {
      const { rows } = await db.query<{ text: string }>(
        'select text from policy_documents where policy_hash = $1',
        [policyHash],
      )
      return rows[0]?.text ?? null
    },
    insertVersion: (change) => insertVersion(db, change),
  }
}

/** Stores a document unless it is stored already. */
export async function insertPolicyDocument(db: Queryable, policy: PolicyText): Promise<void> {
  // The casts keep the text as it was hashed: as jsonb it would lose the order of its keys.
  await db.query(
    `insert into policy_documents (policy_hash, document, text)
     values ($1, $2::text::jsonb, $2::text)
     on conflict (policy_hash) do nothing`,
    [policy.hash, policy.text],
  )
}

async function insertVersion(
  db: Queryable,
  { tenantId, policy, createdBy, reason = null, approval }: NewVersion,
): Promise<number> {
  await claimChange(db, { tenantId, kind: 'policy', approval, actor: createdBy })
  await insertPolicyDocument(db, policy)
  const { rows } = await db.query<{ version: number }>(
    `update tenants set policy_version = policy_version + 1, epoch = epoch + 1
     where tenant_id = $1 returning policy_version as version`,
    [tenantId],
  )
  const { version } = rows[0]!
  await db.query(
    `insert into tenant_policies
       (tenant_id, version, policy_hash, created_by, reason, approved_by)
     values ($1, $2, $3, $4, $5, $6)`,
    [tenantId, version, policy.hash, createdBy, reason, approval?.approvedBy ?? null],
  )
  return version
}

type VersionRow = Omit<PolicyVersion, 'created_at'> & { created_at: Date }

const versionSql = (more = '') => `
select p.version, p.policy_hash, coalesce(d.document->>'name', '') as name, p.created_at,
  p.created_by, p.reason, p.approved_by${more}
from tenant_policies p
join policy_documents d using (policy_hash)`

const toVersion = (row: VersionRow): PolicyVersion => ({
  version: row.version,
  policy_hash: row.policy_hash,
  name: row.name,
  created_at: row.created_at.toISOString(),
  created_by: row.created_by,
  reason: row.reason,
  approved_by: row.approved_by,
})
