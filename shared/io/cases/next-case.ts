/**
 * Hands out the next case of a queue, with a lease: two operators never get the same one. Rows that
 * another call looks at are passed over, so calls do not wait for one another.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { caseLeaseMs } from '#shared/core/base/limits/alerts.ts'
import type { CaseFilter, CaseListRow, CaseSort } from '#shared/core/cases/case-schemas.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import {
  caseOrders,
  createBind,
  type FoundCase,
  foundCaseColumns,
  toCaseConditions,
} from './case-columns.ts'
import { isHere, leaveCase } from './case-presence.ts'
import { withReads } from './list-cases.ts'

/** A row that is locked is being handed out, raised to or judged: the last of these is soon over. */
const triesMax = 10
const pauseMs = 20

export type NextCase = {
  tenantId: string
  operator: string
  filter: Omit<CaseFilter, 'state'>
  sort: CaseSort
  /** The case that the operator leaves; its lease ends after the next one is found. */
  leave?: string | undefined
}

/**
 * @returns null when nothing of the queue is free: each case is leased, the caller's own leases
 *   included, open on another operator's page, snoozed, or assigned to someone else
 */
export async function takeNextCase(db: Session, wanted: NextCase): Promise<CaseListRow | null> {
  let row: FoundCase | null = null
  for (let tries = 0; row === null && tries < triesMax; tries++) {
    row = await leaseFirst(db, wanted)
    if (row !== null || !(await isAnyFree(db, wanted))) break
    await sleep(pauseMs)
  }
  const { leave, operator, tenantId } = wanted
  if (leave !== undefined) await leaveCase(db, { caseId: leave, operator })
  return row === null ? null : (await withReads(db, tenantId, [row]))[0]!
}

/** The condition of cases that may be handed out, with its parameters. */
function toFree({ tenantId, operator, filter }: NextCase) {
  const { bind, values } = createBind()
  const me = bind(operator, 'text')
  const selection = { tenantId, caller: operator, filter: { ...filter, state: ['OPEN' as const] } }
  const where = [
    ...toCaseConditions(selection, bind),
    'coalesce(c.leased_until <= now(), true)',
    ...(filter.assignee === undefined ? [`coalesce(c.assignee = ${me}, true)`] : []),
    `not exists (
       select from case_presence as p
       where p.case_id = c.case_id and p.operator <> ${me} and p.${isHere})`,
  ]
  return { me, bind, values, where: where.join(' and ') }
}

async function leaseFirst(db: Queryable, wanted: NextCase): Promise<FoundCase | null> {
  const { me, bind, values, where } = toFree(wanted)
  const { rows } = await db.query<FoundCase>(
    `update cases as c set leased_by = ${me},
       leased_until = clock_timestamp() + ${bind(caseLeaseMs, 'float8')} * interval '1 millisecond'
     where c.case_id = (
       select c.case_id from cases as c where ${where}
       order by ${caseOrders[wanted.sort].orderBy} limit 1 for update skip locked
     ) returning ${foundCaseColumns}`,
    values,
  )
  return rows[0] ?? null
}

/** Whether a case is free as far as committed rows tell: one that was passed over is locked. */
async function isAnyFree(db: Queryable, wanted: NextCase): Promise<boolean> {
  const { values, where } = toFree(wanted)
  const { rows } = await db.query(`select from cases as c where ${where} limit 1`, values)
  return rows.length > 0
}
