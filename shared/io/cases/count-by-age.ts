/** How many open cases a queue has by age, and how many are overdue. */
import type { CaseFilter } from '#shared/core/cases/case-schemas.ts'
import { type Queryable, toTime } from '#shared/io/postgres/postgres.ts'
import { type CaseSelection, createBind, toCaseConditions } from './case-columns.ts'
import { isSnoozed } from './list-cases.ts'

/** Of cases that began at `fromMs` or later and before `toMs`; null is any time. */
export type CaseAge = { fromMs: number | null; toMs: number | null }

/** What a queue says of state and of age is not looked at. */
export type QueueFilter = Omit<CaseFilter, 'state' | 'breached' | 'begun_from' | 'begun_to'>

/**
 * Counts in one pass. By age those that are open and not snoozed, as the list without a state has
 * them; overdue are those that are open, snoozed or not.
 */
export async function countCasesByAge(
  db: Queryable,
  { filter, ...selection }: CaseSelection & { filter: QueueFilter },
  ages: readonly CaseAge[],
): Promise<{ byAge: number[]; overdue: number }> {
  const { bind, values } = createBind()
  const conditions = toCaseConditions({ ...selection, filter }, bind)
  const toInstant = (ms: number) => bind(toTime(ms), 'timestamptz')
  const counts = ages.map(({ fromMs, toMs }) => {
    const isOfAge = [
      `not ${isSnoozed}`,
      ...(fromMs === null ? [] : [`c.first_alert_at >= ${toInstant(fromMs)}`]),
      ...(toMs === null ? [] : [`c.first_alert_at < ${toInstant(toMs)}`]),
    ]
    return `(count(*) filter (where ${isOfAge.join(' and ')}))::integer`
  })
  const { rows } = await db.query<{ by_age: number[]; overdue: number }>(
    `select array[${counts.join(', ')}] as by_age,
       count(*) filter (where c.due_at <= now()) as overdue
     from cases as c where c.closed_at is null and ${conditions.join(' and ')}`,
    values,
  )
  return { byAge: rows[0]!.by_age, overdue: rows[0]!.overdue }
}
