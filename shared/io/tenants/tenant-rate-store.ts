/** Writes a tenant's rates. Each change raises the epoch, since edges enforce most of them. */
import type { Rate } from '#shared/core/http/rate-limit.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** A tenant's rates; null is the product's default, and an omitted rate does not change. */
export type TenantRates = {
  /** Submissions. */
  ingest?: Rate | null
  /** Bytes of submissions. */
  ingestBytes?: Rate | null
  /** Share of the telemetry stream that may wait undecided, up to `undecidedShareMax`. */
  ingestShare?: number | null
  /** REST calls. */
  rest?: Rate | null
}

const rateColumns = {
  ingest: ['ingest_rate_per_second', 'ingest_burst'],
  ingestBytes: ['ingest_bytes_per_second', 'ingest_bytes_burst'],
  rest: ['rest_rate_per_second', 'rest_burst'],
} as const

/** Sets the rates that are given. */
export async function setRates(
  db: Queryable,
  tenantId: string,
  { ingestShare, ...rates }: TenantRates,
): Promise<void> {
  const sets: string[] = []
  const values: (string | number | null)[] = [tenantId]
  const set = (column: string, value: number | null) => {
    sets.push(`${column} = $${values.push(value)}`)
  }
  for (const name of ['ingest', 'ingestBytes', 'rest'] as const) {
    const rate = rates[name]
    if (rate === undefined) continue
    const [perSecond, burst] = rateColumns[name]
    set(perSecond, rate?.perSecond ?? null)
    set(burst, rate?.burst ?? null)
  }
  if (ingestShare !== undefined) set('ingest_share', ingestShare)
  if (sets.length === 0) return
  const text = `update tenants set ${sets.join(', ')}, epoch = epoch + 1 where tenant_id = $1`
  await db.query(text, values)
}
