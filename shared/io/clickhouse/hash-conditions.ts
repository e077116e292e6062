/** Conditions of queries about many hashed keys of some tenants, and their settings. */
import { parameterBytesMax } from '#shared/core/base/limits/history.ts'
import { smallQuery } from './clickhouse.ts'

/**
 * SQL: a column is one of these hashes, in decimal. The hashes are numbers in the text of the
 * query, because the client would escape a parameter digit by digit, twice.
 */
export function hashIn(column: string, hashes: ReadonlySet<string>): string {
  return hashes.size === 0 ? 'false' : `${column} in (${[...hashes].join(',')})`
}

/**
 * Settings of queries with the hashes of a batch in their text, 21 bytes each. A row has some 100
 * bytes, so blocks of the default size would hold a few thousand rows, and passing on so many
 * blocks takes a tenth of the time.
 */
export const hashesQuery = {
  ...smallQuery,
  max_query_size: String(16 * 1024 ** 2),
  preferred_block_size_bytes: String(8 * 1024 ** 2),
} as const

/** A piece of a query with its parameters. */
export type Piece = { text: string; params: Record<string, unknown> }

/** Tenants in one parameter: 63 characters each at most, two quotes and a comma. */
const tenantsPerParameter = Math.floor(parameterBytesMax / 66)

/** SQL: a row is of one of these tenants. An equality is cheaper than a set of one. */
export function tenantsIn(tenants: ReadonlySet<string>): Piece {
  const all = [...tenants]
  if (all.length === 1) {
    return { text: 'tenant_id = {tenant:String}', params: { tenant: all[0] } }
  }
  const params: Record<string, unknown> = {}
  const conditions: string[] = []
  for (let at = 0; at === 0 || at < all.length; at += tenantsPerParameter) {
    const own = `tenants_${conditions.length}`
    params[own] = all.slice(at, at + tenantsPerParameter)
    conditions.push(`tenant_id in {${own}:Array(String)}`)
  }
  return { text: `(${conditions.join(' or ')})`, params }
}
