/** The columns of an alert, for every statement that returns alerts from the table `alerts`. */
import { type AlertRow, alertRowColumns } from '#shared/core/alerts/alert.ts'

/** SQL: the id of the operator with the email in a column. */
export const operatorIdOf = (email: string): string =>
  `(select operator_id from operators where operators.email = ${email})`

/** Those that are not stored as such. */
const computed: Partial<Record<keyof AlertRow, string>> = {
  assignee_id: operatorIdOf('alerts.assignee'),
}

export const alertColumns = alertRowColumns
  .map((column) => (computed[column] === undefined ? column : `${computed[column]} as ${column}`))
  .join(', ')
