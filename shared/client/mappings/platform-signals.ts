/** Tables of fields that mean a signal of their own on each platform, as device services have. */
import type { BooleanSignal } from '../service-types.ts'
import type { PartialSignals } from '../telemetry.ts'
import { checkReport } from './check-report.ts'
import { type Finding, toPartialSignals } from './merge-signals.ts'

/** The signal of a field on each platform; absent where the platform has no such check. */
export type PlatformSignals = { android?: BooleanSignal; ios?: BooleanSignal }

/** The same signal on both platforms. */
export const onBoth = (signal: BooleanSignal): Required<PlatformSignals> => ({
  android: signal,
  ios: signal,
})

/** A boolean as it is; undefined, "not measured", for everything else. */
export const toMeasured = (value: unknown): boolean | undefined =>
  typeof value === 'boolean' ? value : undefined

/**
 * Maps booleans by a table.
 * @param report what a service answered; null when it could not be asked, which is not measured
 */
export function fromTable(
  table: Readonly<Record<string, PlatformSignals>>,
  report: object | null | undefined,
  platform: 'android' | 'ios',
): PartialSignals {
  const values = (report ?? {}) as Record<string, unknown>
  return toPartialSignals(
    Object.entries(table).flatMap(([field, signals]): Finding[] => {
      const signal = signals[platform]
      return signal === undefined ? [] : [[signal, toMeasured(values[field])]]
    }),
  )
}

/**
 * Maps the booleans of any report by a table of your own, for an SDK without an adapter here. A
 * field that is absent or no boolean is not measured.
 * @param fields names of fields with their signals, such as `{ isRooted: 'root.rooted' }`
 * @throws TypeError when one of them is no object
 */
export function fromFields(
  report: object | null | undefined,
  fields: Readonly<Record<string, BooleanSignal>>,
): PartialSignals {
  const open = { members: {}, isOpen: true }
  if (report !== null && report !== undefined) {
    checkReport('fromFields: report', report, { what: 'fields by name', ...open })
  }
  checkReport('fromFields: fields', fields, { what: 'names of fields with their signals', ...open })
  const table = Object.entries(fields).map(([name, signal]) => [name, onBoth(signal)])
  return fromTable(Object.fromEntries(table), report, 'android')
}
