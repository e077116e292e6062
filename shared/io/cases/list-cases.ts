/** The queue: pages of cases, how many there are by state, and one case with all about it. */
import { z } from 'zod'
import { caseHistoryMax, caseSubjectsMax } from '#shared/core/base/limits/alerts.ts'
import { type ShownCase, toCase } from '#shared/core/cases/case.ts'
import type {
  CaseCounts,
  CaseDetail,
  CaseFilter,
  CaseListRow,
  CasesQuery,
} from '#shared/core/cases/case-schemas.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import {
  type CasePosition,
  type CaseSelection,
  caseOrders,
  createBind,
  type FoundCase,
  foundCaseColumns,
  toCaseConditions,
} from './case-columns.ts'
import { readCaseMoney } from './case-money.ts'
import { readPresence } from './case-presence.ts'

export const caseNotFound = (caseId: string) =>
  new Problem('case_not_found', `There is no case ${caseId}.`)

/** Of a case without due time: later than all instants. */
const neverMs = 8_640_000_000_000_000
const positionSchema = z.tuple([
  instantMsSchema,
  z.int().min(0).max(100),
  instantMsSchema,
  instantMsSchema,
  z.string().max(26),
])

/**
 * A page of the queue.
 * @throws Problem invalid_query for a cursor of other filters or another sort
 */
export async function listCases(
  db: Queryable,
  { tenantId, query, caller }: { tenantId: string; query: CasesQuery; caller: string },
): Promise<{ data: CaseListRow[]; limit: number; next_cursor: string | null }> {
  const { limit, cursor, sort, ...filter } = query
  const scope: CursorScope = { list: 'cases', tenantId, filters: [sort, caller, toBound(filter)] }
  const after =
    cursor === undefined ? null : toPosition(decodeCursor(scope, cursor, positionSchema))
  const { bind, values } = createBind()
  const order = caseOrders[sort]
  const where = [
    ...toCaseConditions({ tenantId, filter, caller }, bind),
    ...(after === null ? [] : [order.after(after, bind)]),
  ]
  const found = await db.query<FoundCase>(
    `select ${foundCaseColumns} from cases as c where ${where.join(' and ')}
     order by ${order.orderBy} limit ${limit + 1}`,
    values,
  )
  const rows = found.rows.slice(0, limit)
  const last = rows.at(-1)
  return {
    data: await withReads(db, tenantId, rows),
    limit,
    next_cursor:
      found.rows.length > limit && last !== undefined ? encodeCursor(scope, toEnd(last)) : null,
  }
}

const filterNames = [
  ...(['state', 'action', 'min_risk', 'flag', 'assignee'] as const),
  ...(['subject_kind', 'breached', 'begun_from', 'begun_to', 'q'] as const),
] satisfies (keyof CaseFilter)[]

const toBound = (filter: CaseFilter) => filterNames.map((name) => filter[name] ?? null)

const toEnd = (row: FoundCase) => [
  row.due_at?.getTime() ?? neverMs,
  row.risk_score,
  row.first_alert_at.getTime(),
  row.latest_alert_at.getTime(),
  row.case_id,
]

const toPosition = ([dueMs, risk, firstMs, latestMs, caseId]: z.output<
  typeof positionSchema
>): CasePosition => ({ dueMs: dueMs === neverMs ? null : dueMs, risk, firstMs, latestMs, caseId })

/** Cases with what is read beside them. */
export async function withReads(
  db: Queryable,
  tenantId: string,
  rows: readonly FoundCase[],
): Promise<CaseListRow[]> {
  const caseIds = rows.map((row) => row.case_id)
  const money = await readCaseMoney(db, tenantId, caseIds)
  const here = await readPresence(db, caseIds)
  return rows.map((row) => ({
    ...toCase(row, row.now_ms),
    money: money.get(row.case_id) ?? [],
    here: (here.get(row.case_id) ?? []).map(({ operator }) => operator),
  }))
}

/** How many cases match, whatever the filter says of their state. */
export async function countCases(
  db: Queryable,
  { filter: { state: _, breached: __, ...filter }, ...selection }: CaseSelection,
): Promise<CaseCounts> {
  const { bind, values } = createBind()
  const { rows } = await db.query<CaseCounts>(
    `select count(*) filter (where c.closed_at is null and not ${isSnoozed}) as open,
       count(*) filter (where c.closed_at is null and ${isSnoozed}) as snoozed,
       count(*) filter (where c.closed_at is not null) as closed,
       count(*) filter (where c.due_at <= now()) as breached
     from cases as c where ${toCaseConditions({ ...selection, filter }, bind).join(' and ')}`,
    values,
  )
  return rows[0]!
}

export const isSnoozed = 'coalesce(c.snoozed_until > now(), false)'

/** One case of the tenants in a scope. @returns null when there is none */
export async function findCase(
  db: Queryable,
  { caseId, scope }: { caseId: string; scope: TenantScope },
): Promise<FoundCase | null> {
  const { rows } = await db.query<FoundCase>(
    `select ${foundCaseColumns} from cases as c
     where c.case_id = $1 and ($2::text[] is null or c.tenant_id = any($2))`,
    [caseId, toSlugs(scope)],
  )
  return rows[0] ?? null
}

/** A case that there is, as operators see it. */
export async function readCase(db: Queryable, caseId: string): Promise<ShownCase> {
  const row = await findCase(db, { caseId, scope: 'all' })
  if (row === null) throw caseNotFound(caseId)
  return toCase(row, row.now_ms)
}

/**
 * One case with all about it, without its alerts.
 * @throws Problem case_not_found
 */
export async function showCase(
  db: Queryable,
  wanted: { caseId: string; scope: TenantScope },
): Promise<CaseDetail> {
  const row = await findCase(db, wanted)
  if (row === null) throw caseNotFound(wanted.caseId)
  const [shown] = await withReads(db, row.tenant_id, [row])
  const { devices, users } = await readEntities(db, row.tenant_id, row.case_id, caseSubjectsMax)
  return {
    case: shown!,
    devices,
    users,
    notes: await listCaseNotes(db, row.case_id),
    history: await listCaseEvents(db, row.case_id),
  }
}

/** The devices and users of a case's alerts, by id; of each at most so many. */
export async function readEntities(
  db: Queryable,
  tenantId: string,
  caseId: string,
  most: number,
): Promise<{ devices: string[]; users: string[] }> {
  const { rows } = await db.query<{ kind: 'device' | 'user'; id: string }>(
    `with of_case as materialized (
       select device_id, user_id from alerts where tenant_id = $1 and case_id = $2)
     (select distinct 'device' as kind, device_id as id from of_case order by id limit $3)
     union all
     (select distinct 'user' as kind, user_id as id from of_case where user_id is not null
      order by id limit $3)`,
    [tenantId, caseId, most],
  )
  const toIds = (kind: string) => rows.filter((row) => row.kind === kind).map(({ id }) => id)
  return { devices: toIds('device'), users: toIds('user') }
}

async function listCaseNotes(db: Queryable, caseId: string): Promise<CaseDetail['notes']> {
  const { rows } = await db.query<{ note_id: number; author: string; note: string; at: Date }>(
    'select note_id, author, note, at from case_notes where case_id = $1 order by note_id',
    [caseId],
  )
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }))
}

type EventRow = Omit<CaseDetail['history'][number], 'at'> & { at: Date }

async function listCaseEvents(db: Queryable, caseId: string): Promise<CaseDetail['history']> {
  const { rows } = await db.query<EventRow>(
    `select at, actor, kind, details from (
       select * from case_events where case_id = $1 order by event_id desc limit ${caseHistoryMax}
     ) as newest order by event_id`,
    [caseId],
  )
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }))
}
