/** Where a signal lies in the JSON columns of `telemetry` and `signal_patterns`. */
import { isServerCategory, type SignalCategory } from './signal-definition.ts'

/** @param name of the catalog or declared: letters, digits and `_` */
export const toColumnPath = (category: SignalCategory, name: string): string =>
  `${isServerCategory(category) ? 'server_signals' : 'signals'}.${category}.${name}`
