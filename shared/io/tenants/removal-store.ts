/** What must stay gone, as Postgres has it, and how a Postgres that was put back takes it. */
import { dayMs } from '#shared/core/base/instants.ts'
import { erasuresKeptDays } from '#shared/core/base/limits/tenants.ts'
import { pauseWebhook } from '#shared/io/deliveries/webhook-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import { type Erased, isNewer, type Removal, toRemovalKey } from './removal-list.ts'

/**
 * Retired API keys, the newest webhook secret of each tenant, and the erasures that are done or
 * that an operator has taken from the list.
 */
export async function listRemovals(db: Queryable, nowMs: number): Promise<Removal[]> {
  const keys = await db.query<{ tenant_id: string; sha256: string }>(
    `select tenant_id, encode(key_hash, 'hex') as sha256 from api_keys where state = 'retired'`,
  )
  const secrets = await db.query<{ tenant_id: string; secret_id: number }>(
    `select tenant_id, max(secret_id) as secret_id from tenant_secrets
     where kind = 'webhook' group by tenant_id`,
  )
  return [
    ...keys.rows.map((row): Removal => ({ kind: 'api_key', ...row })),
    ...secrets.rows.map((row): Removal => ({ kind: 'webhook', ...row })),
    ...(await listErased(db, nowMs)),
  ]
}

const keptFrom = (nowMs: number) => new Date(nowMs - erasuresKeptDays * dayMs)

type ErasedRow = Omit<Erased, 'started_at' | 'kind'> & { started_at: Date }

const toErased = ({ tenant_id, subject, sha256, started_at }: ErasedRow): Erased => ({
  kind: 'erasure',
  tenant_id,
  subject,
  sha256,
  started_at: started_at.toISOString(),
})

async function listErased(db: Queryable, nowMs: number): Promise<Erased[]> {
  const { rows } = await db.query<ErasedRow>(
    `select tenant_id, subject, sha256, max(started_at) as started_at from (
       select tenant_id, kind as subject, subject_sha256 as sha256, started_at
       from erasures where state = 'done' and ended_at > $1
       union all
       select tenant_id, kind, subject_sha256, started_at from recovered_erasures
       where started_at > $1) as known
     group by tenant_id, subject, sha256`,
    [keptFrom(nowMs)],
  )
  return rows.map(toErased)
}

/** What the list knows that Postgres has forgotten: each waits for an operator. */
export type LostRemovals = {
  /** Active, although they were retired. */
  api_keys: { tenant_id: string; sha256: string; last4: string }[]
  /** Of tenants whose webhook is on, with a secret that is older than the last one. */
  webhooks: { tenant_id: string; secret_id: number }[]
  erasures: Erased[]
}

/**
 * @param listed the list by key
 * @param present what Postgres has, read after the list
 */
export async function findLostRemovals(
  db: Queryable,
  {
    listed,
    present,
    nowMs,
  }: {
    listed: ReadonlyMap<string, Removal>
    present: readonly Removal[]
    nowMs: number
  },
): Promise<LostRemovals> {
  const known = new Map(present.map((removal) => [toRemovalKey(removal), removal]))
  const lost = [...listed.entries()]
    .filter(([key, removal]) => isNewer(removal, known.get(key)))
    .map(([, removal]) => removal)
  const ofKind = <Kind extends Removal['kind']>(kind: Kind) =>
    lost.filter((removal) => removal.kind === kind) as Extract<Removal, { kind: Kind }>[]
  if (lost.length === 0) return { api_keys: [], webhooks: [], erasures: [] }
  const secretIds = new Map(ofKind('webhook').map((one) => [one.tenant_id, one.secret_id]))
  const active = await db.query<{ tenant_id: string; sha256: string; last4: string }>(
    `select tenant_id, encode(key_hash, 'hex') as sha256, last4 from api_keys
     where state = 'active' and encode(key_hash, 'hex') = any($1) order by tenant_id, sha256`,
    [ofKind('api_key').map(({ sha256 }) => sha256)],
  )
  const on = await db.query<{ tenant_id: string }>(
    `select tenant_id from webhooks where state = 'on' and tenant_id = any($1) order by tenant_id`,
    [[...secretIds.keys()]],
  )
  const erasures = ofKind('erasure')
  const tenants = await db.query<{ tenant_id: string }>(
    'select tenant_id from tenants where tenant_id = any($1)',
    [erasures.map(({ tenant_id }) => tenant_id)],
  )
  const exists = new Set(tenants.rows.map(({ tenant_id }) => tenant_id))
  // Postgres forgets an erasure when it is this old; the list may have it for longer.
  const from = keptFrom(nowMs).toISOString()
  return {
    api_keys: active.rows,
    webhooks: on.rows.map((row) => ({ ...row, secret_id: secretIds.get(row.tenant_id)! })),
    erasures: erasures
      .filter((one) => exists.has(one.tenant_id) && one.started_at > from)
      .sort((a, b) => (toRemovalKey(a) < toRemovalKey(b) ? -1 : 1)),
  }
}

/**
 * Webhooks that are not on, of which the list knows a newer secret than Postgres: they are dealt
 * with, and the present secret is the newest from here on.
 */
export async function listDealtWith(
  db: Queryable,
  { listed, present }: { listed: ReadonlyMap<string, Removal>; present: readonly Removal[] },
): Promise<Removal[]> {
  const behind = present.filter((removal) => {
    const other = listed.get(toRemovalKey(removal))
    return removal.kind === 'webhook' && other !== undefined && isNewer(other, removal)
  })
  if (behind.length === 0) return []
  const { rows } = await db.query<{ tenant_id: string }>(
    `select tenant_id from webhooks where state <> 'on' and tenant_id = any($1)`,
    [behind.map(({ tenant_id }) => tenant_id)],
  )
  const off = new Set(rows.map(({ tenant_id }) => tenant_id))
  return behind.filter(({ tenant_id }) => off.has(tenant_id))
}

/** Retires a key that is active although it was retired. @returns false when it is not active */
export function retireRevivedKey(
  postgres: Postgres,
  { tenant_id: tenantId, sha256 }: { tenant_id: string; sha256: string },
  actor: string,
): Promise<boolean> {
  return postgres.transaction(async (tx) => {
    const { rows } = await tx.query<{ last4: string }>(
      `update api_keys set state = 'retired', retired_at = clock_timestamp()
       where key_hash = decode($2, 'hex') and tenant_id = $1 and state = 'active' returning last4`,
      [tenantId, sha256],
    )
    const [key] = rows
    if (key === undefined) return false
    await insertAudit(tx, {
      actor,
      tenantId,
      action: 'tenant.recovered',
      before: { api_key: { last4: key.last4, state: 'active' } },
      after: { api_key: { last4: key.last4, state: 'retired' } },
    })
    return true
  })
}

/**
 * Pauses a webhook whose secret is older than one that was in use: its deliveries wait until an
 * operator has rotated the secret and resumes it.
 * @returns false when it is not on
 */
export function pauseRevivedWebhook(
  postgres: Postgres,
  tenantId: string,
  actor: string,
): Promise<boolean> {
  return postgres.transaction(async (tx) => {
    if (!(await pauseWebhook(tx, tenantId))) return false
    await insertAudit(tx, {
      actor,
      tenantId,
      action: 'tenant.recovered',
      before: { webhook: 'on' },
      after: { webhook: 'paused', webhook_secret: 'older than the last one' },
    })
    return true
  })
}

/**
 * Makes an erasure that only the list knew one of Postgres' own: its subject is searched and erased
 * again.
 * @returns false when Postgres has it by now
 */
export function recoverErasure(
  postgres: Postgres,
  { tenant_id: tenantId, subject, sha256, started_at: startedAt }: Erased,
  actor: string,
): Promise<boolean> {
  return postgres.transaction(async (tx) => {
    const { rowCount } = await tx.query(
      `insert into recovered_erasures as present
         (tenant_id, kind, subject_sha256, started_at, recovered_by)
       values ($1, $2, $3, $4, $5)
       on conflict (tenant_id, kind, subject_sha256) do update
         set started_at = excluded.started_at, recovered_by = excluded.recovered_by,
           recovered_at = clock_timestamp(), searched_at = null
         where present.started_at < excluded.started_at`,
      [tenantId, subject, sha256, startedAt, actor],
    )
    if (rowCount === 0) return false
    const after = { erasure: { subject, sha256, started_at: startedAt } }
    await insertAudit(tx, { actor, tenantId, action: 'tenant.recovered', after })
    return true
  })
}

/** Recovered erasures whose subjects were not searched yet, with who confirmed each. */
export async function listUnsearched(db: Queryable): Promise<(Erased & { actor: string })[]> {
  const { rows } = await db.query<ErasedRow & { actor: string }>(
    `select tenant_id, kind as subject, subject_sha256 as sha256, started_at, recovered_by as actor
     from recovered_erasures where searched_at is null`,
  )
  return rows.map((row) => ({ ...toErased(row), actor: row.actor }))
}

/** Records that they are searched, and forgets those that Postgres keeps no longer. */
export async function endSearch(
  db: Queryable,
  searched: readonly Erased[],
  nowMs: number,
): Promise<void> {
  for (const { tenant_id, subject, sha256, started_at } of searched) {
    await db.query(
      `update recovered_erasures set searched_at = clock_timestamp()
       where tenant_id = $1 and kind = $2 and subject_sha256 = $3 and started_at = $4`,
      [tenant_id, subject, sha256, started_at],
    )
  }
  await db.query('delete from recovered_erasures where started_at <= $1', [keptFrom(nowMs)])
}
