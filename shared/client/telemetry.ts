/**
 * What a client sends and gets, as types: telemetry with the signals of the catalog, the answer of
 * ingest, alerts, and the answers of the REST API. They come from the same schemas as the service.
 */
import type { z } from 'zod'
import type { alertPageSchema, alertSchema } from '#shared/core/alerts/alert-schema.ts'
import type { deviceSchema } from '#shared/core/http/api-schemas.ts'
import type { Action } from '#shared/core/scoring/score.ts'
import type { Flag } from '#shared/core/signals/flags.ts'
import type { Category, SignalType } from '#shared/core/signals/signal-definition.ts'
import type { signalCatalog } from '#shared/core/signals/signals.ts'
import type { SignalWarning } from '#shared/core/telemetry/signal-warnings.ts'

export type { Action, Category, Flag, SignalWarning }

type SignalValues = { boolean: boolean; number: number; string: string; strings: string[] }
type Catalog = typeof signalCatalog
type ValueOf<Definition> = Definition extends { type: infer Type extends SignalType }
  ? SignalValues[Type]
  : never

/** The boolean signals as `category.signal`. */
export type BooleanSignal = {
  [Name in Category]: {
    [Signal in keyof Catalog[Name]]: Catalog[Name][Signal] extends { type: 'boolean' }
      ? `${Name}.${Signal & string}`
      : never
  }[keyof Catalog[Name]]
}[Category]

/** The known signals of a category. `null` and absence are "not measured". */
export type CategorySignals<Name extends Category> = {
  [Signal in keyof Catalog[Name]]?: ValueOf<Catalog[Name][Signal]> | null
}

/**
 * The `signals` of a submission. A name that the catalog lacks is a type error, since it scores
 * nothing. Declare signals of your own as `Signals & { root: { own_check?: boolean } }`.
 */
export type Signals = { [Name in Category]: CategorySignals<Name> }

/** What one SDK or check reports: some categories. `mergeSignals` makes `Signals` of several. */
export type PartialSignals = Partial<Signals>

/** The body of `POST /v1/rasp/ingest`. */
export type Telemetry = {
  /** The tenant slug. */
  tenant_id: string
  /** Persisted, scoped to an install: 1 to 256 characters. */
  device_id: string
  /** Fresh for each app launch: 1 to 256 characters. */
  session_id: string
  user_id?: string | null
  account_id?: string | null
  /** ISO-8601 with an offset. Kept, never trusted for ordering. */
  occurred_at?: string
  sdk_meta: { sdk_version: string; platform: string; batch_type: string }
  /** What the client computed. Advisory: the service scores `signals`. */
  scorer: { rasp_score: number; rasp_action: string; rasp_flags: string[] }
  signals: Signals
}

/** The answer to accepted telemetry. */
export type IngestResult = {
  status: 'accepted'
  /** 0 to 100. */
  rasp_score: number
  /** The authoritative action. */
  rasp_action: Action
  /** The same for the same bytes. */
  event_id: string
  flags: Flag[]
  /** In a sandbox tenant: signals and values that the catalog does not know. */
  warnings?: { path: string; message: string; nearest: string | null }[]
}

/** An alert, in a webhook and from `GET /v1/di/alerts`. */
export type Alert = z.infer<typeof alertSchema>
/** The answer of `GET /v1/di/alerts`. */
export type AlertPage = z.infer<typeof alertPageSchema>
/** The answer of `GET /v1/di/devices/{device_id}`. */
export type Device = z.infer<typeof deviceSchema>
