/**
 * Tenants in Postgres, the source of truth for their settings. The edges have a projection of them;
 * every change of it raises the tenant's epoch in the same statement, so an epoch identifies one
 * content. It works on the pool or in a transaction.
 */
import { Problem } from '#shared/core/http/problem.ts'
import type { Rate } from '#shared/core/http/rate-limit.ts'
import type { AppEntry } from '#shared/core/installs/tenant-apps.ts'
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import type { ApiKeyScope } from '#shared/core/tenants/api-key-scopes.ts'
import type { ClientAddress } from '#shared/core/tenants/client-address.ts'
import type { Environment } from '#shared/core/tenants/credentials.ts'
import type { TenantEntry } from '#shared/core/tenants/directory-entries.ts'
import type { IngestAnswer } from '#shared/core/tenants/ingest-answer.ts'
import { resetHealth } from '#shared/io/deliveries/webhook-store.ts'
import { insertPolicyDocument, type PolicyText } from '#shared/io/policies/policy-store.ts'
import { isSqlState, type Queryable, sqlStates } from '#shared/io/postgres/postgres.ts'
import { appEntriesSql } from './tenant-app-store.ts'
import { type TenantStatus, type TenantView, toView, type ViewRow, viewSql } from './tenant-view.ts'

/** The holder of a bearer key. */
export type KeyHolder = {
  tenantId: string
  environment: Environment
  status: TenantStatus
  /** The tenant's own REST rate, or null for the product's default. */
  restRate: Rate | null
  /** The name of a named key; null for the key that came with the tenant. */
  keyName: string | null
  scopes: readonly ApiKeyScope[]
  /** When the key was last used, as recorded. */
  lastUsedMs: number | null
}

type NewTenant = {
  tenantId: string
  name: string
  environment: Environment
  webhookUrl: string | null
  policy: PolicyText
  createdBy: string
  /** The number of its telemetry stream, for good; 1 by default. */
  telemetryStream?: number
}

export type Projection = { entry: TenantEntry; policy: PolicyText }

/** What edges follow of a tenant, each a column of this name. */
export type TenantSettings = {
  status: TenantStatus
  shared_secret_off: boolean
  ingest_answer: IngestAnswer
  client_address: ClientAddress
  store_client_address: boolean
}

export type TenantStore = {
  /**
   * Inserts a tenant with its first policy and its webhook; its credentials follow.
   * @throws Problem tenant_exists
   */
  insertTenant: (tenant: NewTenant) => Promise<void>
  /** The holder of the key with this SHA-256; null for unknown and retired keys. */
  findTenantByApiKey: (keyHash: Buffer) => Promise<KeyHolder | null>
  /** Which of these are the hashes of API keys in use. */
  findExistingApiKeys: (keyHashes: readonly Buffer[]) => Promise<Buffer[]>
  /** Records the use of a key, at most once a minute and never an earlier time. */
  recordApiKeyUse: (keyHash: Buffer, atMs: number) => Promise<void>
  findTenant: (tenantId: string) => Promise<TenantView | null>
  /** Tenants by id, continuing after one. */
  listTenants: (page: {
    limit: number
    after?: string | undefined
    scope?: TenantScope
  }) => Promise<TenantView[]>
  countTenants: (scope?: TenantScope) => Promise<number>
  /** The HMAC secret that the last rotation replaced; null before the first. */
  findRetiredHmac: (tenantId: string) => Promise<{ last4: string; retiredAt: string } | null>
  /**
   * Changes a setting. The epoch goes up, so the edges learn of it.
   * @returns false when the tenant has it already
   */
  setSetting: <Name extends keyof TenantSettings>(
    tenantId: string,
    name: Name,
    value: TenantSettings[Name],
  ) => Promise<boolean>
  /** Removes a tenant with its dependent rows; its audit rows stay. */
  removeTenant: (tenantId: string) => Promise<void>
  /** Switches the webhook on with a URL, or off with null. */
  setWebhook: (tenantId: string, url: string | null) => Promise<void>
  /** The projection of one tenant for the edges. */
  findProjection: (tenantId: string) => Promise<Projection | null>
  /** The projections of all tenants, without policy documents. */
  listEntries: () => Promise<TenantEntry[]>
  /** Changes with every entry; cheap to read. */
  readMarker: () => Promise<string>
}

/** @param db the pool, or a transaction that the calls become part of */
export function createTenantStore(db: Queryable): TenantStore {
  return {
    insertTenant: (tenant) => insertTenant(db, tenant),
    findTenantByApiKey: (keyHash) => findTenantByApiKey(db, keyHash),
    findExistingApiKeys: async (keyHashes) => {
      const { rows } = await db.query<{ key_hash: Buffer }>({
        name: 'find-existing-api-keys',
        text: `select key_hash from api_keys
               where key_hash = any($1::bytea[]) and state = 'active'`,
        values: [keyHashes],
      })
      return rows.map(({ key_hash }) => key_hash)
    },
    recordApiKeyUse: (keyHash, atMs) => recordApiKeyUse(db, keyHash, atMs),
    findTenant: async (tenantId) => {
      const { rows } = await db.query<ViewRow>(`${viewSql} where t.tenant_id = $1`, [tenantId])
      return rows[0] === undefined ? null : toView(rows[0])
    },
    listTenants: async ({ limit, after, scope = 'all' }) => {
      const page = `${viewSql} where t.tenant_id > $1 and ($3::text[] is null or t.tenant_id = any($3))
        order by t.tenant_id limit $2`
      const { rows } = await db.query<ViewRow>(page, [after ?? '', limit, toSlugs(scope)])
      return rows.map(toView)
    },
    countTenants: async (scope = 'all') => {
      const { rows } = await db.query<{ tenants: number }>(
        'select count(*) as tenants from tenants where $1::text[] is null or tenant_id = any($1)',
        [toSlugs(scope)],
      )
      return rows[0]!.tenants
    },
    findRetiredHmac: async (tenantId) => {
      const { rows } = await db.query<{ last4: string; retired_at: Date }>(
        `select last4, retired_at from tenant_secrets
         where tenant_id = $1 and kind = 'hmac' and state = 'retired'
         order by secret_id desc limit 1`,
        [tenantId],
      )
      const row = rows[0]
      return row === undefined
        ? null
        : { last4: row.last4, retiredAt: row.retired_at.toISOString() }
    },
    setSetting: async (tenantId, name, value) => {
      const { rowCount } = await db.query(
        `update tenants set ${name} = $2, epoch = epoch + 1 where tenant_id = $1 and ${name} <> $2`,
        [tenantId, value],
      )
      return rowCount === 1
    },
    removeTenant: async (tenantId) => {
      await db.query('delete from tenants where tenant_id = $1', [tenantId])
    },
    setWebhook: async (tenantId, url) => {
      await db.query(
        `insert into webhooks (tenant_id, url, state, off_reason)
         values ($1, $2, case when $2::text is null then 'off' else 'on' end,
           case when $2::text is null then 'operator' end)
         on conflict (tenant_id) do update set url = excluded.url, state = excluded.state,
           off_reason = excluded.off_reason, ${resetHealth}, changed_at = clock_timestamp()`,
        [tenantId, url],
      )
    },
    ...createProjectionReads(db),
  }
}

function createProjectionReads(
  db: Queryable,
): Pick<TenantStore, 'findProjection' | 'listEntries' | 'readMarker'> {
  return {
    findProjection: async (tenantId) => {
      const { rows } = await db.query<EntryRow & { text: string }>(
        `${entrySql(', d.text')} where t.tenant_id = $1`,
        [tenantId],
      )
      const row = rows[0]
      if (row === undefined) return null
      return { entry: toEntry(row), policy: { hash: row.policy_hash, text: row.text } }
    },
    listEntries: async () => {
      const { rows } = await db.query<EntryRow>(`${entrySql()} order by t.tenant_id`)
      return rows.map(toEntry)
    },
    readMarker: async () => {
      const { rows } = await db.query<{ marker: string }>(
        "select count(*) || ':' || coalesce(sum(epoch), 0) as marker from tenants",
      )
      return rows[0]!.marker
    },
  }
}

async function insertTenant(db: Queryable, tenant: NewTenant): Promise<void> {
  const { tenantId, policy } = tenant
  await insertPolicyDocument(db, policy)
  try {
    await db.query(
      `with tenant as (
         insert into tenants (tenant_id, name, environment, telemetry_stream)
         values ($1, $2, $3, $6)
         returning tenant_id
       )
       insert into tenant_policies (tenant_id, version, policy_hash, created_by)
       select tenant_id, 1, $4, $5 from tenant`,
      [
        tenantId,
        tenant.name,
        tenant.environment,
        policy.hash,
        tenant.createdBy,
        tenant.telemetryStream ?? 1,
      ],
    )
  } catch (error) {
    if (!isSqlState(error, sqlStates.uniqueViolation, 'tenants_pkey')) throw error
    throw new Problem('tenant_exists', `There is a tenant ${tenantId} already.`)
  }
  await db.query('insert into alert_sequences (tenant_id) values ($1)', [tenantId])
  await createTenantStore(db).setWebhook(tenantId, tenant.webhookUrl)
}

type KeyHolderRow = RateColumns & {
  tenant_id: string
  environment: Environment
  status: TenantStatus
  last_used_at: Date | null
  name: string | null
  scopes: ApiKeyScope[]
}

async function findTenantByApiKey(db: Queryable, keyHash: Buffer): Promise<KeyHolder | null> {
  const { rows } = await db.query<KeyHolderRow>({
    name: 'find-tenant-by-api-key',
    text: `select t.tenant_id, t.environment, t.status, k.last_used_at, k.name, k.scopes,
             t.rest_rate_per_second as per_second, t.rest_burst as burst
           from api_keys k join tenants t using (tenant_id)
           where k.key_hash = $1 and k.state = 'active'`,
    values: [keyHash],
  })
  const row = rows[0]
  if (row === undefined) return null
  return {
    tenantId: row.tenant_id,
    environment: row.environment,
    status: row.status,
    restRate: toRate(row),
    keyName: row.name,
    scopes: row.scopes,
    lastUsedMs: row.last_used_at?.getTime() ?? null,
  }
}

async function recordApiKeyUse(db: Queryable, keyHash: Buffer, atMs: number): Promise<void> {
  await db.query({
    name: 'record-api-key-use',
    text: `update api_keys set last_used_at = $2 where key_hash = $1
           and (last_used_at is null or last_used_at < $2::timestamptz - interval '1 minute')`,
    values: [keyHash, new Date(atMs)],
  })
}

type RateColumns = { per_second: number | null; burst: number | null }

const toRate = ({ per_second, burst }: RateColumns): Rate | null =>
  per_second === null || burst === null ? null : { perSecond: per_second, burst }

type EntryRow = RateColumns & {
  tenant_id: string
  environment: Environment
  status: TenantStatus
  epoch: number
  sealed: string | null
  retired_sealed: string | null
  policy_version: number
  policy_hash: string
  bytes_per_second: number | null
  bytes_burst: number | null
  ingest_share: number | null
  list_shards: number
  connection_list: boolean
  telemetry_stream: number
  install_roots: { epoch: number; sealed: string }[] | null
  shared_secret_off: boolean
  apps: AppEntry[] | null
  ingest_answer: IngestAnswer
  client_address: ClientAddress
  store_client_address: boolean
  address_key_sealed: string | null
}

const entrySql = (more = '') => `
select t.tenant_id, t.environment, t.status, t.epoch, t.policy_version, p.policy_hash, s.sealed,
  r.sealed as retired_sealed,
  t.ingest_rate_per_second as per_second, t.ingest_burst as burst,
  t.ingest_bytes_per_second as bytes_per_second, t.ingest_bytes_burst as bytes_burst,
  t.ingest_share, t.telemetry_stream, t.shared_secret_off, t.ingest_answer,
  t.client_address, t.store_client_address,
  (select k.sealed from address_keys k where k.tenant_id = t.tenant_id) as address_key_sealed,
  (select jsonb_agg(jsonb_build_object('epoch', i.epoch, 'sealed', i.sealed)
     order by i.state <> 'current')
   from install_roots i
   where i.tenant_id = t.tenant_id and i.state <> 'retired') as install_roots,
  (select count(*) from list_shards l
   where l.tenant_id = t.tenant_id and l.projected_version > 0) as list_shards,
  exists (select from connection_lists c
   where c.tenant_id = t.tenant_id and c.projected_version > 0) as connection_list,
  ${appEntriesSql} as apps${more}
from tenants t
join tenant_policies p on p.tenant_id = t.tenant_id and p.version = t.policy_version
join policy_documents d using (policy_hash)
left join tenant_secrets s
  on s.tenant_id = t.tenant_id and s.kind = 'hmac' and s.state = 'active'
left join lateral (
  select sealed from tenant_secrets
  where tenant_id = t.tenant_id and kind = 'hmac' and state = 'retired'
  order by secret_id desc limit 1) r on true`

function toEntry(row: EntryRow): TenantEntry {
  return {
    tenant_id: row.tenant_id,
    environment: row.environment,
    status: row.status,
    epoch: row.epoch,
    hmac_secret_sealed: row.sealed,
    ...(row.retired_sealed === null ? {} : { hmac_secret_retired_sealed: row.retired_sealed }),
    policy_version: row.policy_version,
    policy_hash: row.policy_hash,
    ingest_rate: toRate(row),
    ingest_bytes: toRate({ per_second: row.bytes_per_second, burst: row.bytes_burst }),
    ingest_share: row.ingest_share,
    ...(row.list_shards === 0 ? {} : { list_shards: row.list_shards }),
    ...(row.connection_list ? { connection_list: true as const } : {}),
    ...(row.telemetry_stream === 1 ? {} : { telemetry_stream: row.telemetry_stream }),
    ...(row.install_roots === null ? {} : { install_roots: row.install_roots.map(toRoot) }),
    ...(row.shared_secret_off ? { shared_secret_off: true as const } : {}),
    ...(row.apps === null ? {} : { apps: row.apps }),
    ...(row.ingest_answer === 'full' ? {} : { ingest_answer: row.ingest_answer }),
    ...(row.client_address === 'connection' ? {} : { client_address: row.client_address }),
    ...(row.store_client_address ? { store_client_address: true as const } : {}),
    ...(row.address_key_sealed === null ? {} : { address_key_sealed: row.address_key_sealed }),
  }
}

/** Members in one order: jsonb has its own, and entries are compared as text. */
const toRoot = ({ epoch, sealed }: { epoch: number; sealed: string }) => ({ epoch, sealed })
