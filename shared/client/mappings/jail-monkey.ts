/**
 * jail-monkey for React Native. `isJailBroken` is true on Android when any check of RootBeer is, so
 * `rootedDetectionMethods` is mapped where the app sends it.
 */
import type { BooleanSignal } from '../service-types.ts'
import type { PartialSignals } from '../telemetry.ts'
import { allOf, checkReport } from './check-report.ts'
import { type Finding, mergePartial, toPartialSignals } from './merge-signals.ts'
import { fromRootBeer, type RootBeerReport, rootBeerChecks } from './rootbeer.ts'

export type JailMonkeyReport = {
  platform: 'android' | 'ios'
  isJailBroken?: boolean
  hookDetected?: boolean
  canMockLocation?: boolean
  AdbEnabled?: boolean
  isDevelopmentSettingsMode?: boolean
  isDebuggedMode?: boolean
  /** Android: results by method of RootBeer, in an object `rootBeer` or directly. */
  rootedDetectionMethods?: RootBeerReport & { rootBeer?: RootBeerReport; jailMonkey?: boolean }
}

/**
 * The functions of jail-monkey and their signals. `trustFall` and `isOnExternalStorage` are not
 * mapped: one sums up the others, and the other says nothing of the device.
 */
export const jailMonkeyCalls = {
  isJailBroken: { android: 'root.rooted', ios: 'root.jailbroken' },
  hookDetected: { android: 'debugger.hooking_detected' },
  canMockLocation: { android: 'ecosystem.mock_location_possible' },
  AdbEnabled: { android: 'ecosystem.adb_enabled' },
  isDevelopmentSettingsMode: { android: 'ecosystem.developer_mode' },
  isDebuggedMode: { android: 'debugger.app_debuggable', ios: 'debugger.debugger_attached' },
} as const

const reportShape = {
  what: 'the platform and the results of jail-monkey by name',
  members: {
    platform: null,
    ...allOf(Object.keys(jailMonkeyCalls), 'boolean'),
    rootedDetectionMethods: 'object' as const,
  },
}

/**
 * Maps the results of jail-monkey to signals. Some of its functions give promises: await them.
 * @throws TypeError when the report is none
 */
export function fromJailMonkey(report: JailMonkeyReport): PartialSignals {
  checkReport('fromJailMonkey: report', report, reportShape)
  const { platform, isJailBroken, rootedDetectionMethods } = report
  const found = toPartialSignals(
    Object.entries(jailMonkeyCalls).flatMap(([name, signals]): Finding[] => {
      const signal = (signals as PerPlatform)[platform]
      const isRoot = signal === 'root.rooted'
      return signal === undefined || isRoot ? [] : [[signal, report[name as Call]]]
    }),
  )
  if (platform === 'ios') return found
  return mergePartial(found, fromRootBeer(toRootBeer(isJailBroken, rootedDetectionMethods)))
}

type Call = keyof typeof jailMonkeyCalls
type PerPlatform = { android?: BooleanSignal; ios?: BooleanSignal }

function toRootBeer(
  isRooted: boolean | undefined,
  methods: JailMonkeyReport['rootedDetectionMethods'],
): RootBeerReport {
  const given = methods?.rootBeer ?? methods ?? {}
  const checks = Object.entries(given).filter(([name]) => Object.hasOwn(rootBeerChecks, name))
  return { ...Object.fromEntries(checks), ...(isRooted === undefined ? {} : { isRooted }) }
}
