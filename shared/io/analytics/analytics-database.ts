/**
 * Where the views of fraud teams are: a database of their own beside the internal one. Several
 * internal databases may live on one engine, each with its views, so the name follows theirs.
 */
import { defaultDatabase } from '#shared/io/clickhouse/clickhouse.ts'

/** `analytics` beside the default database, else the internal name with `_analytics` after it. */
export function toAnalyticsDatabase(internal: string): string {
  return internal === defaultDatabase ? 'analytics' : `${internal}_analytics`
}
