/**
 * Limits and settings of each process's sessions in PostgreSQL. Its role has the same settings, so
 * behind a pooler a single statement needs no transaction to set them.
 */
import type { ProcessName } from '#shared/core/permissions/process-permissions.ts'
import { listingSession } from '#shared/io/alerts/list-alerts.ts'
import { deliverySession } from '#shared/io/deliveries/claim-deliveries.ts'
import { type PostgresOptions, toSettings } from '#shared/io/postgres/postgres.ts'
import type { SessionSettings } from '#shared/io/postgres/session-settings.ts'

type SessionOptions = Pick<
  PostgresOptions,
  'connectTimeoutMs' | 'statementTimeoutMs' | 'lockTimeoutMs' | 'connectionsMax' | 'settings'
>

export const processSessions = {
  scorer: {},
  // A caller gets a 503 when the database does not answer in time. Every query but a list finds its
  // rows by a key.
  api: {
    connectTimeoutMs: 1_000,
    statementTimeoutMs: 2_000,
    connectionsMax: 20,
    settings: listingSession,
  },
  delivery: { settings: deliverySession },
  console: {},
} as const satisfies Partial<Record<ProcessName, SessionOptions>>

/** The settings of each role. */
export const roleSettings: Partial<Record<ProcessName, SessionSettings>> = Object.fromEntries(
  Object.entries(processSessions).map(([process, options]) => [process, toSettings(options)]),
)
