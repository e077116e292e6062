/**
 * Counts the alerts of a filter by a value that they have, as a menu shows it that chooses one: for
 * each value the length of the list that choosing it alone opens. A filter by the same name is left
 * out, since the menu changes it. It reads the index of the whole list for flags, and each alert of
 * the filter for versions, so callers bound it per tenant.
 */
import type { AlertFilter, CountedBy } from '#shared/core/alerts/alert-filters.ts'
import { alertValuesMax } from '#shared/core/base/limits/alerts.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { toMatchingSql } from './filtered-alerts-sql.ts'

export type ValueCount = { value: string; alerts: number }

/** Of each: the column, and how the values of a row are found in it. */
const values: Record<CountedBy, { column: string; from: string }> = {
  flag: { column: 'flags', from: 'cross join lateral jsonb_array_elements_text(flags) as value' },
  sdk_version: {
    column: 'sdk_version',
    from: 'cross join lateral (select sdk_version as value) as own',
  },
}

/**
 * Most alerts first; at most `alertValuesMax`, since a client may invent versions.
 * @throws PostgresUnavailableError
 */
export async function countAlertsBy(
  db: Queryable,
  { tenantId, filter, by }: { tenantId: string; filter: AlertFilter; by: CountedBy },
): Promise<ValueCount[]> {
  const bound: unknown[] = [tenantId]
  const bind = (value: unknown, type: string): string => `$${bound.push(value)}::${type}`
  const { column, from } = values[by]
  const matching = toMatchingSql({ tenantId, filter: { ...filter, [by]: undefined } }, column, bind)
  const { rows } = await db.query<ValueCount>(
    `select value, count(*) as alerts from (${matching}) as matching ${from}
     where value is not null group by value order by alerts desc, value limit ${alertValuesMax}`,
    bound,
  )
  return rows
}
