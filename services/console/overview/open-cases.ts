/** The open cases of the overview: by age, and by queue. */
import { toIso } from '#shared/core/base/instants.ts'
import { overviewQueuesMax } from '#shared/core/base/limits/analytics.ts'
import { caseFilterSchema } from '#shared/core/cases/case-schemas.ts'
import { type CaseAge, countCasesByAge, type QueueFilter } from '#shared/io/cases/count-by-age.ts'
import { listSavedViews } from '#shared/io/operators/saved-view-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Overview } from './overview-schemas.ts'

type Queue = { name: string; query: Record<string, string> }

/** The first is of all that is open. */
const builtIn: readonly Queue[] = [
  { name: 'All', query: {} },
  { name: 'Unassigned', query: { assignee: 'none' } },
  { name: 'Mine', query: { assignee: 'me' } },
  { name: 'Blocked', query: { action: 'BLOCK' } },
]

/**
 * Counts each queue: those that every tenant has, and the saved ones of the caller.
 * @param ages bounds in ms before now, the youngest first
 */
export async function readOpenCases(
  db: Queryable,
  { tenantId, caller }: { tenantId: string; caller: string },
  ages: readonly CaseAge[],
): Promise<Overview['cases']> {
  const saved = await listSavedViews(db, { tenantId, operator: caller, kind: 'cases' })
  const queues = [...builtIn, ...saved]
    .flatMap(({ name, query }) => {
      const filter = toQueueFilter(query)
      return filter === null ? [] : [{ name, query, filter }]
    })
    .slice(0, overviewQueuesMax)
  const counted = await Promise.all(
    queues.map(({ filter }) => countCasesByAge(db, { tenantId, filter, caller }, ages)),
  )
  return {
    overdue: counted[0]!.overdue,
    ages: ages.map(({ fromMs, toMs }) => ({
      from: fromMs === null ? null : toIso(fromMs),
      to: toMs === null ? null : toIso(toMs),
    })),
    queues: queues.map(({ name, query }, at) => ({
      name,
      query,
      by_age: counted[at]!.byAge,
      overdue: counted[at]!.overdue,
    })),
  }
}

/** @returns null for a view that is not a queue of open cases, or that is not understood any more */
export function toQueueFilter(query: Readonly<Record<string, string>>): QueueFilter | null {
  const { sort: _, ...others } = query
  const ofItsOwn = ['state', 'breached', 'begun_from', 'begun_to']
  if (ofItsOwn.some((name) => others[name] !== undefined)) return null
  const { success, data } = caseFilterSchema.safeParse(others)
  return success ? data : null
}
