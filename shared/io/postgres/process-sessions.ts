/**
 * How each process uses PostgreSQL: limits and settings of its sessions. Its role has the same
 * settings, so that behind a pooler a lone statement needs no transaction to set them.
 */
import type { ProcessName } from '#shared/core/permissions/process-permissions.ts'
import { listingSession } from '#shared/io/alerts/list-alerts.ts'
import { deliverySession } from '#shared/io/deliveries/claim-deliveries.ts'
import { type PostgresOptions, toSettings } from './postgres.ts'
import type { SessionSettings } from './postgres-session.ts'

type SessionOptions = Pick<
  PostgresOptions,
  'connectTimeoutMs' | 'statementTimeoutMs' | 'lockTimeoutMs' | 'connectionsMax' | 'settings'
>

export const processSessions = {
  scorer: {},
  // A caller waits this long at most for a database that does not answer, then gets a 503. Whatever
  // else it asks than lists is found by a key.
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
