/**
 * IOSSecuritySuite. Its jailbreak verdict is true when any check fails, so the failed checks are
 * mapped where the app used `amIJailbrokenWithFailedChecks`.
 */
import type { BooleanSignal } from '../service-types.ts'
import type { PartialSignals } from '../telemetry.ts'
import { allOf, checkReport } from './check-report.ts'
import { type Finding, mergePartial, toPartialSignals, toUnknownSignals } from './merge-signals.ts'

/** The checks of `amIJailbrokenWithFailedChecks`. */
export const jailbreakChecks = {
  urlSchemes: 'root.jb_url_scheme',
  existenceOfSuspiciousFiles: 'root.jb_suspicious_files',
  suspiciousFilesCanBeOpened: 'root.jb_files_openable',
  restrictedDirectoriesWriteable: 'root.jb_restricted_writable',
  fork: 'root.jb_fork_allowed',
  symbolicLinks: 'root.jb_symlinks',
  dyld: 'root.jb_dylib_injected',
  suspiciousObjCClasses: 'root.root_hiding',
} as const satisfies Record<string, BooleanSignal>

/** The checks of `amIReverseEngineeredWithFailedChecks`. */
export const reverseEngineeringChecks = {
  dyld: 'debugger.frida_maps',
  existenceOfSuspiciousFiles: 'debugger.hooking_detected',
  openedPorts: 'debugger.frida_port_open',
  pSelectFlag: 'debugger.ptrace_detected',
} as const satisfies Record<string, BooleanSignal>

/** The integrity checks that `amITampered` names in `hitChecks`. */
export const integrityChecks = {
  bundleID: 'tamper.bundle_id_mismatch',
  mobileProvision: 'tamper.signature_mismatch',
  machO: 'tamper.code_integrity_failed',
} as const satisfies Record<string, BooleanSignal>

/** Calls with one boolean result. */
export const plainCalls = {
  amIDebugged: 'debugger.debugger_attached',
  amIRunInEmulator: 'emulator.is_simulator',
  amIRuntimeHooked: 'debugger.symbol_or_runtime_hook',
  amIMSHooked: 'debugger.symbol_or_runtime_hook',
  hasBreakpointAt: 'debugger.breakpoint_detected',
  hasWatchpoint: 'debugger.watchpoint_detected',
  amIProxied: 'network.proxy_configured',
} as const satisfies Record<string, BooleanSignal>

export type FailedCheck = { check: string; failMessage?: string }

export type IosSecuritySuiteReport = Partial<Record<keyof typeof plainCalls, boolean>> & {
  /** Of `amIJailbroken` alone: `failedChecks` is absent. */
  jailbreak?: { jailbroken: boolean; failedChecks?: readonly FailedCheck[] }
  reverseEngineering?: { reverseEngineered: boolean; failedChecks?: readonly FailedCheck[] }
  /** `hitChecks` by case name. Give only the checks that the app asked for as `checked`. */
  tampering?: { checked: readonly (keyof typeof integrityChecks)[]; hitChecks: readonly string[] }
}

const reportShape = {
  what: 'the results of IOSSecuritySuite by name',
  members: {
    ...allOf(Object.keys(plainCalls), 'boolean'),
    ...allOf(['jailbreak', 'reverseEngineering', 'tampering'], 'object'),
  },
}
const partShapes = {
  jailbreak: {
    what: 'jailbroken and failedChecks',
    members: { jailbroken: 'boolean', failedChecks: 'list' },
    required: ['jailbroken'],
  },
  reverseEngineering: {
    what: 'reverseEngineered and failedChecks',
    members: { reverseEngineered: 'boolean', failedChecks: 'list' },
    required: ['reverseEngineered'],
  },
  tampering: {
    what: 'checked and hitChecks, names of checks',
    members: { checked: 'texts', hitChecks: 'texts' },
    required: ['checked', 'hitChecks'],
  },
} as const
type PartName = keyof typeof partShapes

/**
 * Maps the results of IOSSecuritySuite to signals.
 * @throws TypeError when the report is none
 */
export function fromIosSecuritySuite(report: IosSecuritySuiteReport): PartialSignals {
  checkReport('fromIosSecuritySuite: report', report, reportShape)
  const { jailbreak, reverseEngineering: reverse, tampering } = report
  for (const [name, part] of Object.entries({
    jailbreak,
    reverseEngineering: reverse,
    tampering,
  })) {
    if (part === undefined || part === null) continue
    checkReport(`fromIosSecuritySuite: report.${name}`, part, partShapes[name as PartName])
  }
  const plain = Object.entries(plainCalls).map(
    ([name, signal]): Finding => [signal, report[name as keyof typeof plainCalls]],
  )
  const tampered = (tampering?.checked ?? []).map(
    (name): Finding => [integrityChecks[name], tampering!.hitChecks.includes(name)],
  )
  return mergePartial(
    toPartialSignals([...plain, ...tampered]),
    fromChecks('root.jailbroken', jailbreak?.jailbroken, jailbreak?.failedChecks, jailbreakChecks),
    fromChecks(
      'debugger.hooking_detected',
      reverse?.reverseEngineered,
      reverse?.failedChecks,
      reverseEngineeringChecks,
    ),
  )
}

/**
 * Maps one verdict and its failed checks. All checks ran, so one that did not fail is clean.
 * @param general the signal of the verdict, for a report without checks
 */
function fromChecks(
  general: BooleanSignal,
  verdict: boolean | undefined,
  failedChecks: readonly FailedCheck[] | undefined,
  signals: Record<string, BooleanSignal>,
): PartialSignals {
  if (verdict === undefined) return {}
  if (failedChecks === undefined || (verdict && failedChecks.length === 0)) {
    return toPartialSignals([[general, verdict]])
  }
  const failed = new Map(failedChecks.map((one) => [one.check, one]))
  const findings = Object.entries(signals).map(
    ([name, signal]): Finding => [signal, toDetected(failed.get(name))],
  )
  const unknown = [...failed.keys()].filter((name) => !Object.hasOwn(signals, name))
  return mergePartial(toPartialSignals(findings), toUnknownSignals('iss', unknown))
}

/** @returns undefined for a check whose failure says nothing */
function toDetected(failed: FailedCheck | undefined): boolean | undefined {
  if (failed === undefined) return false
  return isStoreAppScheme(failed) ? undefined : true
}

/** Apps of the App Store register these two schemes, so stock phones fail the check. */
function isStoreAppScheme({ check, failMessage = '' }: FailedCheck): boolean {
  return check === 'urlSchemes' && /^(cydia|activator):/.test(failMessage)
}
