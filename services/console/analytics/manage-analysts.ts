/**
 * A tenant's analysts: users of ClickHouse that may query the tenant's analytics views. On a
 * ClickHouse that keeps users an analyst is one of them, made so that ClickHouse itself confines
 * it; beside the embedded engine, which keeps none, an analyst signs in at the local stack's own
 * address. The password is in one answer and nowhere else.
 */
import { hash } from 'node:crypto'
import { toAnalystUser } from '#shared/core/analytics/analyst-access.ts'
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
import { type Clickhouse, toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
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
    /** How the service itself reaches ClickHouse. */
    clickhouseUrl: string
    /** The address for analysts. An engine without users of its own has only this one. */
    url: string | null
  }
}

/** The only time that the password is shown. */
export type CreatedAnalyst = {
  tenant_id: string
  name: string
  url: string
  user: string
  password: string
  database: string
}

type Wanted = { tenantId: string; name: string; actor: string }

/**
 * Makes an analyst; on a server also the role, the profile and the policies when they are missing.
 * @throws Problem tenant_not_found, analyst_exists, analysts_not_possible
 */
export async function createAnalyst(deps: AnalystDeps, wanted: Wanted): Promise<CreatedAnalyst> {
  const { tenantId, name, actor } = wanted
  await requireTenant(deps.postgres, tenantId)
  const { clickhouse, url, clickhouseUrl } = deps.analysts
  const keptByClickhouse = await asksUsers(clickhouse)
  if (!keptByClickhouse && url === null) throw notPossible()
  const password = toText(deps.randomBytes(32))
  await deps.postgres.transaction(async (tx) => {
    const passwordHash = keptByClickhouse ? null : hash('sha256', password, 'buffer')
    const made = await insertAnalyst(tx, { tenantId, name, passwordHash, createdBy: actor })
    if (!made) {
      throw new Problem('analyst_exists', `Tenant ${tenantId} has an analyst ${name} already.`)
    }
    await insertAudit(tx, { actor, tenantId, action: 'analyst.created', after: { name } })
    // Last: when it fails, nothing else has happened.
    if (keptByClickhouse) await createUser(deps, wanted, password)
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

async function createUser(deps: AnalystDeps, wanted: Wanted, password: string): Promise<void> {
  const { clickhouse, database } = deps.analysts
  const { tenantId, name } = wanted
  const salt = toText(deps.randomBytes(16))
  const passwordSha256Hex = hash('sha256', password + salt, 'hex')
  await prepareAccess(clickhouse, database)
  await guardViews(clickhouse, database)
  await runStatements(clickhouse, toUserStatements({ tenantId, name, passwordSha256Hex, salt }))
}

/** @throws Problem tenant_not_found */
export async function listTenantAnalysts(
  deps: AnalystDeps,
  tenantId: string,
): Promise<{ tenant_id: string; data: (AnalystView & { user: string })[] }> {
  await requireTenant(deps.postgres, tenantId)
  const analysts = await listAnalysts(deps.postgres, tenantId)
  return {
    tenant_id: tenantId,
    data: analysts.map((one) => ({ ...one, user: toAnalystUser(tenantId, one.name) })),
  }
}

/**
 * Removes an analyst: no query begins with its password once this has returned.
 * @throws Problem tenant_not_found, analyst_not_found
 */
export async function removeTenantAnalyst(
  deps: AnalystDeps,
  wanted: Wanted,
): Promise<{ tenant_id: string; name: string }> {
  const { tenantId, name, actor } = wanted
  await requireTenant(deps.postgres, tenantId)
  const { clickhouse } = deps.analysts
  const keptByClickhouse = await asksUsers(clickhouse)
  await deps.postgres.transaction(async (tx) => {
    if (!(await removeAnalyst(tx, tenantId, name))) {
      throw new Problem('analyst_not_found', `Tenant ${tenantId} has no analyst ${name}.`)
    }
    await insertAudit(tx, { actor, tenantId, action: 'analyst.removed', before: { name } })
    if (keptByClickhouse) await runStatements(clickhouse, [toRemovalStatement(tenantId, name)])
  })
  return { tenant_id: tenantId, name }
}

/** @throws Problem unavailable */
async function asksUsers(clickhouse: Clickhouse): Promise<boolean> {
  return keepsUsers(clickhouse).catch((error: unknown) => {
    throw unavailable('ClickHouse cannot be asked at the moment.', toLoggable(error))
  })
}

const notPossible = () =>
  new Problem(
    'analysts_not_possible',
    'This ClickHouse keeps no users: it has no writable user directory, as an embedded engine. ' +
      'Give the server an access_control_path, or start the local stack (npm start), which has ' +
      'an address of its own for analysts.',
  )

const toText = (random: Uint8Array) => Buffer.from(random).toString('base64url')
