/**
 * RootBeer. `isRooted` is true when any check is, and stock phones fail single weak checks. So the
 * checks are mapped, and the general verdict only where no check says why.
 */
import type { BooleanSignal } from '../service-types.ts'
import type { PartialSignals } from '../telemetry.ts'
import { allOf, checkReport } from './check-report.ts'
import { type Finding, toPartialSignals } from './merge-signals.ts'

/** Every check of RootBeer and its signal. */
export const rootBeerChecks = {
  detectRootManagementApps: 'root.root_management_app',
  detectPotentiallyDangerousApps: 'root.dangerous_apps',
  detectRootCloakingApps: 'root.root_hiding',
  detectTestKeys: 'root.test_keys',
  checkForSuBinary: 'root.su_binary',
  checkSuExists: 'root.su_binary',
  checkForRootNative: 'root.su_binary',
  checkForMagiskBinary: 'root.magisk_detected',
  checkForBusyBoxBinary: 'root.busybox_binary',
  checkForDangerousProps: 'root.dangerous_props',
  checkForRWPaths: 'root.rw_system_paths',
} as const satisfies Record<string, BooleanSignal>

/** The results of RootBeer by method name; a method that was not called is absent. */
export type RootBeerReport = Partial<
  Record<
    | keyof typeof rootBeerChecks
    | 'isRooted'
    | 'isRootedWithBusyBoxCheck'
    | 'isRootedWithoutBusyBoxCheck',
    boolean
  >
>

const generals = ['isRooted', 'isRootedWithBusyBoxCheck', 'isRootedWithoutBusyBoxCheck']
const reportShape = {
  what: "the results of RootBeer's methods by name",
  members: allOf([...Object.keys(rootBeerChecks), ...generals], 'boolean'),
}

/**
 * Maps the results of RootBeer to signals.
 * @throws TypeError when the report is none
 */
export function fromRootBeer(report: RootBeerReport): PartialSignals {
  checkReport('fromRootBeer: report', report, reportShape)
  const checks = Object.entries(rootBeerChecks).map(
    ([name, signal]): Finding => [signal, report[name as keyof typeof rootBeerChecks]],
  )
  const general =
    report.isRooted ?? report.isRootedWithBusyBoxCheck ?? report.isRootedWithoutBusyBoxCheck
  return toPartialSignals([...checks, ['root.rooted', withoutDetail(general, checks)]])
}

/** A general verdict where no check was detected that explains it; undefined otherwise. */
function withoutDetail(
  general: boolean | undefined,
  checks: readonly Finding[],
): boolean | undefined {
  const explained = checks.some(([, detected]) => detected === true)
  return general === true && explained ? undefined : general
}
