/**
 * Versions of the parameters by which phones are recognised, in Postgres. A version is valid from
 * an hour after it was written, so every scorer has read it by then.
 */
import { LRUCache } from 'lru-cache'
import { cachedTenantsMax } from '#shared/core/base/limits/tenants.ts'
import type { IdentityParameters } from '#shared/core/identity/parameters.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { FindParameters } from './link-finder.ts'

/** How long read versions are used: far less than what passes before a new one is valid. */
const cachedMs = 60_000

type Version = { validFromMs: number; parameters: IdentityParameters }

/** @returns reads the versions of tenants, each at most once a minute */
export function createParameters(
  postgres: Queryable,
): (tenantIds: readonly string[]) => Promise<FindParameters> {
  const cached = new LRUCache<string, Version[]>({ max: cachedTenantsMax, ttl: cachedMs })
  return async (tenantIds) => {
    const versions = new Map<string, Version[]>()
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
    return (tenantId, atMs) =>
      versions.get(tenantId)?.find(({ validFromMs }) => validFromMs <= atMs)?.parameters ?? null
  }
}

type VersionRow = { tenant_id: string; valid_from: Date; parameters: IdentityParameters }

/** @returns of every tenant its versions, the latest first; a day's events need two of them */
async function readVersions(
  db: Queryable,
  tenantIds: readonly string[],
): Promise<Map<string, Version[]>> {
  const { rows } = await db.query<VersionRow>({
    name: 'identity-parameters',
    text: `select tenant_id, valid_from, parameters from identity_parameters
           where tenant_id = any($1) order by tenant_id, valid_from desc, version desc`,
    values: [tenantIds],
  })
  const versions = new Map<string, Version[]>(tenantIds.map((tenantId) => [tenantId, []]))
  for (const { tenant_id: tenantId, valid_from: validFrom, parameters } of rows) {
    versions.get(tenantId)!.push({ validFromMs: validFrom.getTime(), parameters })
  }
  return versions
}
