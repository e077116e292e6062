/** One alert of a tenant with what people did to it, in one statement: of one snapshot. */
import { type AlertRow, toAlert } from '#shared/core/alerts/alert.ts'
import { toActor } from '#shared/core/alerts/alert-actors.ts'
import type { AlertDetail, AlertDetails } from '#shared/core/alerts/alert-schema.ts'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { alertHistoryMax } from '#shared/core/base/limits/rest-api.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { alertColumns, operatorIdOf } from './alert-columns.ts'
import { canBeStored } from './find-alert.ts'

/** SQL: the newest rows of a table about the alert, oldest first, as JSON. */
const newestOf = (table: string, key: string, columns: string) => `(
  select coalesce(json_agg(rows order by rows.${key}), '[]') from (
    select ${key}, at, ${columns} from ${table} as rows
    where rows.tenant_id = alerts.tenant_id and rows.alert_id = alerts.alert_id
    order by rows.${key} desc limit ${alertHistoryMax}
  ) as rows)`

const detailSql = `
select ${alertColumns},
  ${newestOf(
    'alert_dispositions',
    'disposition_id',
    `actor, ${operatorIdOf('rows.actor')} as actor_id, from_disposition, to_disposition, note`,
  )} as history,
  ${newestOf(
    'alert_assignments',
    'assignment_id',
    `actor, ${operatorIdOf('rows.actor')} as actor_id,
     from_assignee, ${operatorIdOf('rows.from_assignee')} as from_id,
     to_assignee, ${operatorIdOf('rows.to_assignee')} as to_id`,
  )} as assignments,
  ${newestOf(
    'alert_notes',
    'note_id',
    `author as actor, ${operatorIdOf('rows.author')} as actor_id, note`,
  )} as notes
from alerts where tenant_id = $1 and alert_id = $2`

type Act = { at: string; actor: string; actor_id: string | null }

type DetailRow = AlertRow & {
  history: (Act & {
    from_disposition: Disposition
    to_disposition: Disposition
    note: string | null
  })[]
  assignments: (Act & {
    from_assignee: string | null
    from_id: string | null
    to_assignee: string | null
    to_id: string | null
  })[]
  notes: (Act & { note: string })[]
}

/** @returns null when the tenant has no such alert @throws PostgresUnavailableError */
export async function findAlertDetail(
  db: Queryable,
  { tenantId, alertId }: { tenantId: string; alertId: string },
): Promise<AlertDetail | null> {
  if (!canBeStored(alertId)) return null
  const { rows } = await db.query<DetailRow>(detailSql, [tenantId, alertId])
  const row = rows[0]
  if (row === undefined) return null
  const details: AlertDetails = {
    history: row.history.map((one) => ({
      ...toAct(one),
      from: one.from_disposition,
      to: one.to_disposition,
      note: one.note,
    })),
    assignments: row.assignments.map((one) => ({
      ...toAct(one),
      from: toAssignee(one.from_assignee, one.from_id),
      to: toAssignee(one.to_assignee, one.to_id),
    })),
    notes: row.notes.map((one) => ({ ...toAct(one), note: one.note })),
  }
  return { ...toAlert(row), details }
}

const toAct = ({ at, actor, actor_id }: Act) => ({
  at: new Date(at).toISOString(),
  by: toActor(actor, actor_id),
})

const toAssignee = (email: string | null, id: string | null) =>
  email === null ? null : toActor(email, id)
