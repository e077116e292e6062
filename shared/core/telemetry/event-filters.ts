/** The filters of lists of events, as parsed from a query. Several flags or actions mean any. */
import type { NetworkKind } from '#shared/core/network/network-list.ts'
import type { Action } from '#shared/core/scoring/score.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'

export type EventFilter = {
  /** Received at this instant or later, in ms since 1970. */
  from?: number | undefined
  /** Received before this instant. */
  to?: number | undefined
  device_id?: string | undefined
  /** A user or an account. */
  user_id?: string | undefined
  session_id?: string | undefined
  /** Of the decided reasons. */
  flag?: Flag[] | undefined
  /** Decided. */
  action?: Action[] | undefined
  /** `category.signal` of a boolean signal that was detected, or of another one that has a value. */
  signal?: string | undefined
  /** The signal has this value, as text; then `signal` says which. */
  signal_value?: string | undefined
  platform?: string | undefined
  app_version?: string | undefined
  sdk_version?: string | undefined
  /** Of the connection: ISO 3166-1 alpha-2. */
  country?: string | undefined
  asn?: number | undefined
  /** In CIDR notation, no narrower than what is stored. */
  network?: string | undefined
  network_kind?: NetworkKind[] | undefined
  /** The risk score, at least and at most. */
  min_score?: number | undefined
  max_score?: number | undefined
}

/**
 * A place in a list of events, newest first: events received before it, or at the same instant with
 * a lower id, come after it. Without an id it lies before every event of its instant.
 */
export type EventPosition = { receivedAtMs: number; eventId: string }
