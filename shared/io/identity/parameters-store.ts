/**
 * Versions of the parameters by which phones are recognised, in Postgres. A version is valid from
 * an hour after it was written, so every scorer has read it by then.
 */
import { LRUCache } from 'lru-cache'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { parametersKeptDays } from '#shared/core/base/limits/entities.ts'
import { cachedTenantsMax } from '#shared/core/base/limits/tenants.ts'
import {
  chooseVersion,
  type IdentityParameters,
  type ParametersVersion,
} from '#shared/core/identity/parameters.ts'
import { type Queryable, type Session, toTime } from '#shared/io/postgres/postgres.ts'
import type { FindParameters } from './link-finder.ts'

/** How long read versions are used: far less than what passes before a new one is valid. */
const cachedMs = 60_000

/** @returns reads the versions of tenants, each at most once a minute */
export function createParameters(
  postgres: Queryable,
): (tenantIds: readonly string[]) => Promise<FindParameters> {
  const cached = new LRUCache<string, ParametersVersion[]>({ max: cachedTenantsMax, ttl: cachedMs })
  return async (tenantIds) => {
    const versions = new Map<string, ParametersVersion[]>()
    const unknown: string[] = []
    for (const tenantId of tenantIds) {
      const known = cached.get(tenantId)
      if (known === undefined) unknown.push(tenantId)
      else versions.set(tenantId, known)
    }
    if (unknown.length > 0) {
      for (const [tenantId, found] of await readVersions(postgres, unknown)) {
        versions.set(tenantId, found)
        cached.set(tenantId, found)
      }
    }
    return (tenantId, atMs) => chooseVersion(versions.get(tenantId) ?? [], atMs)
  }
}

type VersionRow = { tenant_id: string; valid_from: Date; parameters: IdentityParameters }

/** @returns of every tenant its versions, the latest first; a day's events need two of them */
async function readVersions(
  db: Queryable,
  tenantIds: readonly string[],
): Promise<Map<string, ParametersVersion[]>> {
  const { rows } = await db.query<VersionRow>({
    name: 'identity-parameters',
    text: `select tenant_id, valid_from, parameters from identity_parameters
           where tenant_id = any($1) order by tenant_id, valid_from desc, version desc`,
    values: [tenantIds],
  })
  const versions = new Map<string, ParametersVersion[]>(tenantIds.map((tenantId) => [tenantId, []]))
  for (const { tenant_id: tenantId, valid_from: validFrom, parameters } of rows) {
    versions.get(tenantId)!.push({ validFromMs: validFrom.getTime(), parameters })
  }
  return versions
}

/** How far ahead a version holds when it is written. */
const validAfterMs = hourMs

/** @returns tenants without a version that was written since an instant */
export async function listWithoutVersion(db: Queryable, sinceMs: number): Promise<string[]> {
  const { rows } = await db.query<{ tenant_id: string }>(
    `select tenant_id from tenants where not exists (
       select from identity_parameters as p
       where p.tenant_id = tenants.tenant_id and p.created_at >= $1)
     order by tenant_id`,
    [toTime(sinceMs)],
  )
  return rows.map((row) => row.tenant_id)
}

/** @returns the latest version of a tenant, valid or not yet; null without one */
export async function findLatestParameters(
  db: Queryable,
  tenantId: string,
): Promise<IdentityParameters | null> {
  const versions = await readVersions(db, [tenantId])
  return versions.get(tenantId)![0]?.parameters ?? null
}

/**
 * Writes a version that holds an hour from now, by the clock of Postgres, and removes those that
 * none of the kept events is decided by.
 * @returns false when the tenant has one of this number already, or is gone
 */
export function addParameters(
  session: Session,
  { tenantId, parameters }: { tenantId: string; parameters: IdentityParameters },
): Promise<boolean> {
  return session.transaction(async (tx) => {
    const { rowCount } = await tx.query(
      `insert into identity_parameters (tenant_id, version, valid_from, parameters)
       select tenant_id, $2, clock_timestamp() + $3 * interval '1 ms', $4
       from tenants where tenant_id = $1
       on conflict do nothing`,
      [tenantId, parameters.version, validAfterMs, JSON.stringify(parameters)],
    )
    await tx.query(
      `delete from identity_parameters as old using identity_parameters as next
       where old.tenant_id = $1 and next.tenant_id = $1 and next.version = old.version + 1
         and next.valid_from < clock_timestamp() - $2 * interval '1 ms'`,
      [tenantId, parametersKeptDays * dayMs],
    )
    return rowCount === 1
  })
}
