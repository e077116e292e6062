/**
 * flutter_rasp. A full scan has a boolean for every threat; threats that arrive one by one are
 * those that were detected.
 */
import type { PartialSignals } from '../telemetry.ts'
import { checkMember, checkReport } from './check-report.ts'
import { type Finding, mergePartial, toPartialSignals, toUnknownSignals } from './merge-signals.ts'
import { onBoth, type PlatformSignals } from './platform-signals.ts'

/**
 * Every threat of flutter_rasp and its signal. Its location check looks for settings and apps that
 * could mock a location, so it does not say that one is mocked.
 */
export const flutterRaspThreats: Readonly<Record<string, Required<PlatformSignals>>> = {
  root: { android: 'root.rooted', ios: 'root.jailbroken' },
  emulator: { android: 'emulator.is_emulator', ios: 'emulator.is_simulator' },
  debug: onBoth('debugger.debugger_attached'),
  hook: onBoth('debugger.hooking_detected'),
  repackaging: onBoth('tamper.signature_mismatch'),
  trustedInstall: onBoth('tamper.untrusted_install_source'),
  vpn: onBoth('network.vpn_active'),
  developerMode: onBoth('ecosystem.developer_mode'),
  adbEnabled: onBoth('ecosystem.adb_enabled'),
  devicePasscode: onBoth('ecosystem.no_passcode'),
  secureHardwareNotAvailable: onBoth('tamper.hardware_keystore_missing'),
  obfuscationIssues: onBoth('tamper.obfuscation_missing'),
  timeSpoofing: onBoth('tamper.time_spoofed'),
  locationSpoofing: onBoth('ecosystem.mock_location_possible'),
  multiInstance: onBoth('emulator.multi_instance'),
  deviceBinding: onBoth('tamper.device_binding_changed'),
}

export type FlutterRaspReport = {
  platform: 'android' | 'ios'
  /** `RaspResult.threats` by name, or the names of the threats that were detected. */
  threats: Readonly<Record<string, boolean>> | readonly string[]
}

const reportShape = {
  what: 'the platform and the threats, with a boolean each or the names of those detected',
  members: { platform: null, threats: null },
  required: ['threats'],
}

/** Maps the threats of flutter_rasp to signals. */
export function fromFlutterRasp(report: FlutterRaspReport): PartialSignals {
  checkReport('fromFlutterRasp: report', report, reportShape)
  const { platform, threats } = report
  const name = 'fromFlutterRasp: report.threats'
  if (Array.isArray(threats)) checkMember(name, threats, 'texts')
  else {
    checkReport(name, threats, { what: 'results by name', members: {}, isOpen: true })
    for (const [threat, found] of Object.entries(threats)) {
      checkMember(`${name}.${threat.slice(0, 40)}`, found, 'boolean')
    }
  }
  const results = Array.isArray(threats)
    ? threats.map((name: string) => [name, true] as const)
    : Object.entries(threats)
  const isKnown = (name: string) => Object.hasOwn(flutterRaspThreats, name)
  const findings = results
    .filter(([name]) => isKnown(name))
    .map(([name, detected]): Finding => [flutterRaspThreats[name]![platform], detected])
  const unknown = results
    .filter(([name, detected]) => !isKnown(name) && detected && name !== 'undefined')
    .map(([name]) => name)
  return mergePartial(toPartialSignals(findings), toUnknownSignals('flutter_rasp', unknown))
}
