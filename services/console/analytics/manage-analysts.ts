/**
 * A tenant's analysts: users who may query the tenant's analytics views. A ClickHouse server stores
 * them as its own users and enforces their limits. The embedded engine stores no users, so an
 * analyst signs in at the local stack's proxy. The password appears in one response only.
 */
import { hash } from 'node:crypto'
import { reservedAnalyst, toAnalystUser } from '#shared/core/analytics/analyst-access.ts'
import { Problem } from '#shared/core/http/problem.ts'
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
  insertAnalyst,
  listAnalysts,
  removeAnalyst,
} from '#shared/io/analytics/analyst-store.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
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
    /** The address for analysts. Required for an engine that stores no users. */
    url: string | null
  }
}

/** A new analyst. This is the only time that the password is shown. */
export type CreatedAnalyst = {
  tenant_id: string
  name: string
  url: string
  user: string
  password: string
  database: string
}

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
  await requireTenant(deps.postgres, tenantId)
  const { clickhouse, url, clickhouseUrl } = deps.analysts
  requireOneNode(clickhouse)
  const storedByClickhouse = await storesUsers(clickhouse)
  if (!storedByClickhouse && url === null) throw noAnalystsPossible()
  const password = toText(deps.randomBytes(32))
  await deps.postgres.transaction(async (tx) => {
    const passwordHash = storedByClickhouse ? null : hash('sha256', password, 'buffer')
    const inserted = await insertAnalyst(tx, { tenantId, name, passwordHash, createdBy: actor })
    if (!inserted) {
      throw new Problem('analyst_exists', `Tenant ${tenantId} has an analyst ${name} already.`)
    }
    await insertAudit(tx, { actor, tenantId, action: 'analyst.created', after: { name } })
    // The last step: if it fails, the transaction is rolled back.
    if (storedByClickhouse) await createUser(deps, change, password)
  })
  return {
    tenant_id: tenantId,
    name,
    url: url ?? new URL(clickhouseUrl).origin,
    user: toAnalystUser(tenantId, name),
    password,
    database: toAnalyticsDatabase(deps.analysts.database),
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
  const { clickhouse } = deps.analysts
  const storedByClickhouse = await storesUsers(clickhouse)
  await deps.postgres.transaction(async (tx) => {
    if (!(await removeAnalyst(tx, tenantId, name))) {
      throw new Problem('analyst_not_found', `Tenant ${tenantId} has no analyst ${name}.`)
    }
    await insertAudit(tx, { actor, tenantId, action: 'analyst.removed', before: { name } })
    if (storedByClickhouse) await runStatements(clickhouse, [toRemovalStatement(tenantId, name)])
  })
  return { tenant_id: tenantId, name }
}

/** @throws Problem unavailable */
async function storesUsers(clickhouse: Clickhouse): Promise<boolean> {
  return keepsUsers(clickhouse).catch(
    rejectUnavailable('ClickHouse does not answer at the moment.'),
  )
}

/**
 * Row policies keep an analyst to the rows of a tenant, and ClickHouse does not apply them to a
 * table of all shards.
 * @throws Problem analysts_not_possible
 */
export function requireOneNode(clickhouse: Clickhouse): void {
  if (clickhouse.shards.length === 0) return
  throw new Problem(
    'analysts_not_possible',
    'Analysts need ClickHouse on one node: its row policies, which keep them to the rows of their ' +
      'tenant, do not reach other shards.',
  )
}

/** @returns Problem analysts_not_possible */
export const noAnalystsPossible = () =>
  new Problem(
    'analysts_not_possible',
    'This ClickHouse stores no users: it has no writable user directory. Set access_control_path ' +
      'on the server, or start the local stack (npm start), which has its own address for analysts.',
  )

const toText = (random: Uint8Array) => Buffer.from(random).toString('base64url')
