/**
 * Types that follow from the service's own tables and schemas: the catalog of signals, flags and
 * the answers of the REST API. `npm run build:client` writes them out, so that the package needs
 * neither the schemas nor their library.
 */
import type { z } from 'zod'
import type { alertPageSchema, alertSchema } from '#shared/core/alerts/alert-schema.ts'
import type { deviceSchema } from '#shared/core/http/api-schemas.ts'
import type { Action } from '#shared/core/scoring/score.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'
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

/** An alert, in a webhook and from `GET /v1/di/alerts`. */
export type Alert = z.infer<typeof alertSchema>
/** The answer of `GET /v1/di/alerts`. */
export type AlertPage = z.infer<typeof alertPageSchema>
/** The answer of `GET /v1/di/devices/{device_id}`. */
export type Device = z.infer<typeof deviceSchema>
