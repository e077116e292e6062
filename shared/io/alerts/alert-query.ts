/** Which alerts of a tenant, and the parts that the statements of a list share. */
import type { AlertFilter } from '#shared/core/alerts/alert-filters.ts'
import type { Span } from '#shared/core/base/instants.ts'

/** Where a page ended: its last row. */
export type AlertPosition = { createdAtMs: number; alertId: string }

export type AlertSelection = {
  tenantId: string
  filter?: AlertFilter
  /** Only alerts among these, at most a page. */
  alertIds?: readonly string[] | undefined
}

export type AlertQuery = AlertSelection & {
  /** 1 to 500 rows. */
  limit: number
  /** Rows after this one; null begins with the newest. */
  after: AlertPosition | null
  /** Rows with a higher `seq`, ascending by it, in place of `after`. */
  afterSeq?: number | undefined
}

export const newestFirst = 'order by created_at desc, alert_id desc'

/** Adds a parameter to the statement and returns its place in the text. */
export type Bind = (value: unknown, type: string) => string

/** The rows of a page: created from an instant on, and before a position. */
export type Bounds = { span: Span; before: AlertPosition }

/** Each binds its own parameters, since a statement may have only one of them. */
export type ListParts = { toTotal: () => string; toPage: () => string }

/** One upper bound from the two: no id sorts before the empty one. */
export function toBounds({ after, filter = {} }: AlertQuery): Bounds {
  const { from: fromMs = -Infinity, to: toMs = Infinity } = filter
  const before = after !== null && after.createdAtMs < toMs ? after : null
  return { span: { fromMs, toMs }, before: before ?? { createdAtMs: toMs, alertId: '' } }
}

/** The conditions of a page's rows, whatever the filters. */
export function toPageConditions({ span, before }: Bounds, bind: Bind): string[] {
  const end = [bind(toSqlTime(before.createdAtMs), 'timestamptz'), bind(before.alertId, 'text')]
  return [
    `created_at >= ${bind(toSqlTime(span.fromMs), 'timestamptz')}`,
    `(created_at, alert_id) < (${end.join(', ')})`,
  ]
}

const latestMs = Date.UTC(9999, 11, 31)

/** No alert is older than 1970 or from beyond the year 9999, which Postgres would not read. */
export function toSqlTime(ms: number): string {
  if (ms < 0) return '-infinity'
  return ms > latestMs ? 'infinity' : new Date(ms).toISOString()
}
