/** What a size of the alert benchmark consists of. */
import type { Alert } from '#shared/core/alerts/alert-rules.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { AlertCase, Ask } from './alert-cases.ts'

export type Page = { data: Alert[]; total: number; next_cursor: string | null }

/** One size: a database, the api and the floor on it, and what is asked of them. */
export type Rig = {
  alerts: number
  postgres: Postgres
  /** Asks the api, or the floor. */
  list: (ask: Ask) => Promise<Page>
  floor: (ask: Ask) => Promise<Page>
  cases: AlertCase[]
  stop: () => Promise<void>
}
