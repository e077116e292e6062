/** A tenant's named API keys in Postgres. Only hashes are stored; removed keys stay as rows. */
import type { ApiKeyScope } from '#shared/core/tenants/api-key-scopes.ts'
import type { StoredKey } from '#shared/core/tenants/credentials.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** A named key without its secret part. Times are ISO-8601. */
export type ApiKeyView = {
  name: string
  scopes: ApiKeyScope[]
  prefix: string
  last4: string
  created_at: string
  created_by: string
  /** Recorded at most once a minute. */
  last_used_at: string | null
}

type KeyRow = Omit<ApiKeyView, 'created_at' | 'last_used_at'> & {
  created_at: Date
  last_used_at: Date | null
}

const columns = 'name, scopes, prefix, last4, created_at, created_by, last_used_at'

const toView = (row: KeyRow): ApiKeyView => ({
  ...row,
  created_at: row.created_at.toISOString(),
  last_used_at: row.last_used_at?.toISOString() ?? null,
})

/**
 * Inserts a named key. Call it in a transaction: it locks the tenant, so that no two calls pass the
 * limit together.
 * @returns null when the tenant has a key of that name, `full` when it has `most` named keys
 */
export async function insertNamedKey(
  tx: Queryable,
  key: {
    tenantId: string
    name: string
    scopes: readonly ApiKeyScope[]
    stored: StoredKey
    createdBy: string
    /** Of a key that two persons make. */
    approvedBy: string | null
    most: number
  },
): Promise<ApiKeyView | 'full' | null> {
  const { tenantId, name, scopes, stored, createdBy, approvedBy, most } = key
  await tx.query('select 1 from tenants where tenant_id = $1 for no key update', [tenantId])
  const present = await listNamedKeys(tx, tenantId)
  if (present.some((one) => one.name === name)) return null
  if (present.length >= most) return 'full'
  const { rows } = await tx.query<KeyRow>(
    `insert into api_keys
       (key_hash, tenant_id, state, prefix, last4, name, scopes, created_by, approved_by)
     values ($1, $2, 'active', $3, $4, $5, $6, $7, $8) returning ${columns}`,
    [...[stored.hash, tenantId, stored.prefix, stored.last4, name, scopes, createdBy], approvedBy],
  )
  return toView(rows[0]!)
}

/** A tenant's named keys by name. */
export async function listNamedKeys(db: Queryable, tenantId: string): Promise<ApiKeyView[]> {
  const { rows } = await db.query<KeyRow>(
    `select ${columns} from api_keys
     where tenant_id = $1 and state = 'active' and name is not null order by name`,
    [tenantId],
  )
  return rows.map(toView)
}

/**
 * Holds a key and reads whether it and its tenant are active. Until the transaction ends, the key
 * cannot be removed.
 */
export async function lockActiveKey(tx: Queryable, keyHash: Buffer): Promise<boolean> {
  const { rows } = await tx.query({
    name: 'lock-active-key',
    text: `select 1 from api_keys k join tenants t using (tenant_id)
           where k.key_hash = $1 and k.state = 'active' and t.status = 'active' for share of k`,
    values: [keyHash],
  })
  return rows.length > 0
}

/**
 * Removes a named key. The API looks a key up on every call, and a change holds it to its end, so
 * it is dead with the commit.
 * @returns the key as it was, or null when there is none of that name
 */
export async function removeNamedKey(
  tx: Queryable,
  tenantId: string,
  name: string,
): Promise<ApiKeyView | null> {
  const { rows } = await tx.query<KeyRow>(
    `update api_keys set state = 'retired', retired_at = clock_timestamp()
     where tenant_id = $1 and state = 'active' and name = $2 returning ${columns}`,
    [tenantId, name],
  )
  return rows[0] === undefined ? null : toView(rows[0])
}
