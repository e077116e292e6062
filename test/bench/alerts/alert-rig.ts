/** The parts of one size of the alert benchmark. */
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { AlertCase, AlertRequest } from './alert-cases.ts'

export type Page = { data: Alert[]; total: number; next_cursor: string | null }

/** One size: a database, the api and the baseline on it, and the request cases. */
export type Rig = {
  alerts: number
  postgres: Postgres
  /** Requests a page of the api, or of the baseline. */
  list: (request: AlertRequest) => Promise<Page>
  baseline: (request: AlertRequest) => Promise<Page>
  cases: AlertCase[]
  stop: () => Promise<void>
}
