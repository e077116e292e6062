/**
 * Incognia: the evidence `device_integrity` of an assessment. Its risk and its reputations are not
 * signals of the device.
 */
import type { PartialSignals } from '../telemetry.ts'
import { checkReport } from './check-report.ts'
import { mergePartial, toPartialSignals } from './merge-signals.ts'
import { fromTable, onBoth, type PlatformSignals, toMeasured } from './platform-signals.ts'

/** Fields of `device_integrity` and their signals. */
export const incogniaFields: Readonly<Record<string, PlatformSignals>> = {
  probable_root: { android: 'root.rooted', ios: 'root.jailbroken' },
  emulator: { android: 'emulator.is_emulator', ios: 'emulator.is_simulator' },
  gps_spoofing: onBoth('ecosystem.location_spoofed'),
}

/** The opposite of this field is the signal. */
export const incogniaStoreField = {
  from_official_store: 'tamper.untrusted_install_source',
} as const

export type IncogniaReport = {
  platform: 'android' | 'ios'
  /** `evidence.device_integrity`; null or absent when there was no answer. */
  deviceIntegrity?: {
    probable_root?: boolean | null
    emulator?: boolean | null
    gps_spoofing?: boolean | null
    from_official_store?: boolean | null
  } | null
}

const reportShape = {
  what: 'the platform and device_integrity of the assessment, or null for no answer',
  members: { platform: null, deviceIntegrity: 'object' as const },
}

/**
 * Maps the device's integrity to signals.
 * @throws TypeError when the report is none
 */
export function fromIncognia(report: IncogniaReport): PartialSignals {
  checkReport('fromIncognia: report', report, reportShape)
  const { platform, deviceIntegrity } = report
  const isOfficial = toMeasured(deviceIntegrity?.from_official_store)
  const isOther = isOfficial === undefined ? undefined : !isOfficial
  return mergePartial(
    fromTable(incogniaFields, deviceIntegrity, platform),
    toPartialSignals([[incogniaStoreField.from_official_store, isOther]]),
  )
}
