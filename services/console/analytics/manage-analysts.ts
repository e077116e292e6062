/**
 * A tenant's analysts: users who may query the tenant's analytics views. A ClickHouse server stores
 * them as its own users and keeps them to their tenant. The embedded engine stores no users and
 * separates no tenants: there an analyst is a convenience of an operator who may see all tenants,
 * and signs in at an address of the local stack. The password appears in one response only.
 */
import { hash } from 'node:crypto'
import { reservedAnalyst, toAnalystUser } from '#shared/core/analytics/analyst-access.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { TenantScope } from '#shared/core/operators/roles.ts'
import {
  guardViews,
  keepsUsers,
  prepareAccess,
  runStatements,
  toRemovalStatement,
  toUserStatements,
} from '#shared/io/analytics/analyst-access-store.ts'
import {
  type AnalystView,
  changeAnalystPassword,
  insertAnalyst,
  listAnalysts,
  removeAnalyst,
} from '#shared/io/analytics/analyst-store.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type AnalystDeps = {
  postgres: Postgres
  randomBytes: (count: number) => Uint8Array
  analysts: {
    clickhouse: Clickhouse
    /** The internal database. */
    database: string
    /** The address of ClickHouse for the service itself. */
    clickhouseUrl: string
    /** The address for analysts; the embedded engine needs one. */
    url: string | null
    /** Whether ClickHouse is the local stack's engine. */
    isEmbedded: boolean
  }
}

/** An analyst with a new password. This is the only time that it is shown. */
export type CreatedAnalyst = {
  tenant_id: string
  name: string
  url: string
  user: string
  password: string
  database: string
  /** What the analyst does not hold; missing on a server. */
  warning?: string
}

/** Of an analyst on the embedded engine. */
const noWall =
  'This user has the views of one tenant and is no wall: on the embedded ClickHouse engine its SQL ' +
  'can read the rows of every tenant. Keep it from people who are limited to some tenants.'

type AnalystChange = { tenantId: string; name: string; actor: string }

/**
 * Creates an analyst. On a server it also creates the role, the profile and the row policies that
 * are missing.
 * @throws Problem tenant_not_found, analyst_exists, analysts_not_possible
 */
export async function createAnalyst(
  deps: AnalystDeps,
  change: AnalystChange,
): Promise<CreatedAnalyst> {
  const { tenantId, name, actor } = change
  return setPassword(deps, change, async (tx, passwordHash) => {
    const inserted = await insertAnalyst(tx, { tenantId, name, passwordHash, createdBy: actor })
    if (!inserted) {
      throw new Problem('analyst_exists', `Tenant ${tenantId} has an analyst ${name} already.`)
    }
    await insertAudit(tx, { actor, tenantId, action: 'analyst.created', after: { name } })
  })
}

/**
 * Gives an analyst a new password; the old one stops working.
 * @throws Problem tenant_not_found, analyst_not_found, analysts_not_possible
 */
export async function resetAnalystPassword(
  deps: AnalystDeps,
  change: AnalystChange,
): Promise<CreatedAnalyst> {
  const { tenantId, name, actor } = change
  return setPassword(deps, change, async (tx, passwordHash) => {
    if (!(await changeAnalystPassword(tx, { tenantId, name, passwordHash }))) {
      throw analystNotFound(tenantId, name)
    }
    await insertAudit(tx, { actor, tenantId, action: 'analyst.password_reset', after: { name } })
  })
}

/** @param record writes who the analyst is; the hash is null where ClickHouse keeps it */
async function setPassword(
  deps: AnalystDeps,
  change: AnalystChange,
  record: (tx: Queryable, passwordHash: Buffer | null) => Promise<void>,
): Promise<CreatedAnalyst> {
  const { tenantId, name } = change
  await requireTenant(deps.postgres, tenantId)
  const { url, clickhouseUrl, database, isEmbedded } = deps.analysts
  await requireAnalysts(deps)
  const password = toText(deps.randomBytes(32))
  await deps.postgres.transaction(async (tx) => {
    await record(tx, isEmbedded ? hash('sha256', password, 'buffer') : null)
    // The last step: if it fails, the transaction is rolled back.
    if (!isEmbedded) await createUser(deps, change, password)
  })
  return {
    tenant_id: tenantId,
    name,
    url: url ?? new URL(clickhouseUrl).origin,
    user: toAnalystUser(tenantId, name),
    password,
    database: toAnalyticsDatabase(database),
    ...(isEmbedded ? { warning: noWall } : {}),
  }
}

/** Makes a user of ClickHouse for an analyst, or gives one that exists a new password. */
export async function createUser(
  deps: AnalystDeps,
  change: Omit<AnalystChange, 'actor'>,
  password: string,
): Promise<void> {
  const { clickhouse, database } = deps.analysts
  const { tenantId, name } = change
  const salt = toText(deps.randomBytes(16))
  const passwordSha256Hex = hash('sha256', password + salt, 'hex')
  await prepareAccess(clickhouse, database)
  await guardViews(clickhouse, database)
  await runStatements(clickhouse, toUserStatements({ tenantId, name, passwordSha256Hex, salt }))
}

/** Lists a tenant's analysts, without passwords. @throws Problem tenant_not_found */
export async function listTenantAnalysts(
  deps: AnalystDeps,
  tenantId: string,
): Promise<{ tenant_id: string; data: (AnalystView & { user: string })[] }> {
  await requireTenant(deps.postgres, tenantId)
  const analysts = await listAnalysts(deps.postgres, tenantId)
  return {
    tenant_id: tenantId,
    data: analysts
      .filter(({ name }) => name !== reservedAnalyst)
      .map((one) => ({ ...one, user: toAnalystUser(tenantId, one.name) })),
  }
}

/**
 * Removes an analyst. After it returns no query starts with the analyst's password.
 * @throws Problem tenant_not_found, analyst_not_found
 */
export async function removeTenantAnalyst(
  deps: AnalystDeps,
  change: AnalystChange,
): Promise<{ tenant_id: string; name: string }> {
  const { tenantId, name, actor } = change
  await requireTenant(deps.postgres, tenantId)
  const { clickhouse, isEmbedded } = deps.analysts
  const storedByClickhouse = !isEmbedded && (await storesUsers(clickhouse))
  await deps.postgres.transaction(async (tx) => {
    if (!(await removeAnalyst(tx, tenantId, name))) throw analystNotFound(tenantId, name)
    await insertAudit(tx, { actor, tenantId, action: 'analyst.removed', before: { name } })
    if (storedByClickhouse) await runStatements(clickhouse, [toRemovalStatement(tenantId, name)])
  })
  return { tenant_id: tenantId, name }
}

const analystNotFound = (tenantId: string, name: string) =>
  new Problem('analyst_not_found', `Tenant ${tenantId} has no analyst ${name}.`)

/**
 * Whether an operator's SQL, and analysts that the operator makes, need a ClickHouse server: its
 * own users, grants and row policies separate tenants, and the embedded engine does not.
 */
export const needsServer = ({ analysts }: Pick<AnalystDeps, 'analysts'>, scope: TenantScope) =>
  analysts.isEmbedded && scope !== 'all'

/** @throws Problem analysts_need_a_server */
export function requireServer(deps: Pick<AnalystDeps, 'analysts'>, scope: TenantScope): void {
  if (!needsServer(deps, scope)) return
  throw new Problem(
    'analysts_need_a_server',
    'SQL on the embedded ClickHouse engine can read the rows of every tenant, so only operators ' +
      'who may see all tenants run it here. Set CLICKHOUSE_URL to a ClickHouse server that keeps ' +
      "users: there each tenant's analysts are its own users (deploy/clickhouse/analysts.sql).",
  )
}

/**
 * Row policies keep an analyst to the rows of a tenant, and ClickHouse does not apply them to a
 * table of all shards. A server must also keep users.
 * @throws Problem analysts_not_possible, unavailable
 */
export async function requireAnalysts({ analysts }: Pick<AnalystDeps, 'analysts'>): Promise<void> {
  const { clickhouse, isEmbedded } = analysts
  if (clickhouse.shards.length > 0) {
    throw new Problem(
      'analysts_not_possible',
      'Analysts need ClickHouse on one node: its row policies, which keep them to the rows of ' +
        'their tenant, do not reach other shards.',
    )
  }
  if (isEmbedded || (await storesUsers(clickhouse))) return
  throw new Problem(
    'analysts_not_possible',
    'This ClickHouse stores no users: it has no writable user directory. Set access_control_path ' +
      'on the server.',
  )
}

/** @throws Problem unavailable */
async function storesUsers(clickhouse: Clickhouse): Promise<boolean> {
  return keepsUsers(clickhouse).catch(
    rejectUnavailable('ClickHouse does not answer at the moment.'),
  )
}

const toText = (random: Uint8Array) => Buffer.from(random).toString('base64url')
