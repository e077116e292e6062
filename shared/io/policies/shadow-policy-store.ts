/**
 * The shadow policies of tenants in Postgres: numbered versions, each with the instant from which
 * it decides; versions are only added. One row counts the changes of all tenants, so that a process
 * with a copy can check cheaply whether it is current.
 */
import { type ShadowVersion, shadowLeadMs } from '#shared/core/policies/shadow.ts'
import type { PolicyText } from '#shared/io/policies/policy-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { insertPolicyDocument } from './policy-store.ts'

/** One version as operators see it. Times are ISO-8601. */
export type ShadowPolicy = {
  version: number
  /** Null where it switched the shadow off, as are the two after it. */
  policy_hash: string | null
  name: string | null
  text: string | null
  effective_at: string
  created_at: string
  created_by: string
}

type Row = Omit<ShadowPolicy, 'effective_at' | 'created_at'> & {
  effective_at: Date
  created_at: Date
}

const shownSql = `
select s.version, s.policy_hash, d.document->>'name' as name, d.text, s.effective_at, s.created_at,
  s.created_by
from shadow_policies s
left join policy_documents d using (policy_hash)
where s.tenant_id = $1`

const toShown = (row: Row): ShadowPolicy => ({
  ...row,
  effective_at: row.effective_at.toISOString(),
  created_at: row.created_at.toISOString(),
})

/** The newest version of a tenant, or one of a number; null when there is none. */
export async function findShadowPolicy(
  db: Queryable,
  { tenantId, version }: { tenantId: string; version?: number | undefined },
): Promise<ShadowPolicy | null> {
  const { rows } = await db.query<Row>(
    `${shownSql} and ($2::integer is null or s.version = $2) order by s.version desc limit 1`,
    [tenantId, version ?? null],
  )
  return rows[0] === undefined ? null : toShown(rows[0])
}

/** The newest version that has a document, whether it is off by now or not. */
export async function findLastShadowDocument(
  db: Queryable,
  tenantId: string,
): Promise<ShadowPolicy | null> {
  const { rows } = await db.query<Row>(
    `${shownSql} and s.policy_hash is not null order by s.version desc limit 1`,
    [tenantId],
  )
  return rows[0] === undefined ? null : toShown(rows[0])
}

/**
 * Adds a version. Call it inside a transaction, under the tenant's lock.
 * @param change.policy null switches the shadow off
 */
export async function insertShadowVersion(
  tx: Queryable,
  change: { tenantId: string; policy: PolicyText | null; createdBy: string },
): Promise<ShadowPolicy> {
  const { tenantId, policy, createdBy } = change
  if (policy !== null) await insertPolicyDocument(tx, policy)
  // Locked until the commit: a reader of the counter sees every change that it counts, and no
  // change takes effect before it.
  await tx.query('update shadow_policy_changes set changes = changes + 1')
  const { rows } = await tx.query<{ version: number }>(
    `insert into shadow_policies (tenant_id, version, policy_hash, effective_at, created_by)
     select $1::text, coalesce(max(version), 0) + 1, $2::text,
       greatest(
         clock_timestamp() + $3::float8 * interval '1 millisecond',
         max(effective_at) + interval '1 millisecond'
       ), $4::text
     from shadow_policies where tenant_id = $1
     returning version`,
    [tenantId, policy?.hash ?? null, shadowLeadMs, createdBy],
  )
  return (await findShadowPolicy(tx, { tenantId, version: rows[0]!.version }))!
}

/** @returns the counter of changes, and the instant of the read by the clock of Postgres, in ms */
export async function readShadowChanges(db: Queryable): Promise<{ changes: number; atMs: number }> {
  const { rows } = await db.query<{ changes: number; at_ms: number }>({
    name: 'read-shadow-changes',
    text: `select changes, (extract(epoch from statement_timestamp()) * 1000)::float8 as at_ms
           from shadow_policy_changes`,
  })
  return { changes: rows[0]!.changes, atMs: rows[0]!.at_ms }
}

/** Versions per tenant in the result. Older versions decide no event. */
const versionsKept = 100

/** The latest versions of every tenant that ever had a shadow, ascending. */
export async function listShadowVersions(db: Queryable): Promise<Map<string, ShadowVersion[]>> {
  const { rows } = await db.query<{
    tenant_id: string
    version: number
    policy_hash: string | null
    effective_ms: number
  }>(
    `select s.tenant_id, s.version, s.policy_hash,
       (extract(epoch from s.effective_at) * 1000)::float8 as effective_ms
     from shadow_policies s
     join (
       select tenant_id, max(version) as newest from shadow_policies group by tenant_id
     ) as last using (tenant_id)
     where s.version > last.newest - $1
     order by s.tenant_id, s.version`,
    [versionsKept],
  )
  const versions = new Map<string, ShadowVersion[]>()
  for (const { tenant_id, version, policy_hash: policyHash, effective_ms } of rows) {
    const one = { version, policyHash, effectiveAtMs: effective_ms }
    const present = versions.get(tenant_id)
    if (present === undefined) versions.set(tenant_id, [one])
    else present.push(one)
  }
  return versions
}
