/**
 * Appdome Threat-Events. An app gets an event when a protection found something and hears nothing
 * otherwise, so what was not reported is not measured.
 */
import type { PartialSignals } from '../telemetry.ts'
import { checkReport } from './check-report.ts'
import { type Finding, mergePartial, toPartialSignals, toUnknownSignals } from './merge-signals.ts'
import { onBoth, type PlatformSignals } from './platform-signals.ts'

const rooted: PlatformSignals = { android: 'root.rooted', ios: 'root.jailbroken' }
const emulated: PlatformSignals = { android: 'emulator.is_emulator', ios: 'emulator.is_simulator' }
const frida = onBoth('debugger.frida_detected')
const clicked: PlatformSignals = { android: 'debugger.auto_clicker' }
const spoofedLocation = onBoth('ecosystem.location_spoofed')
const weakTls = onBoth('network.ssl_downgrade')

/** Events that say something of the device, and their signals. */
export const appdomeEvents: Readonly<Record<string, PlatformSignals>> = {
  RootedDevice: rooted,
  JailbrokenDevice: rooted,
  MagiskManagerDetected: { android: 'root.magisk_detected' },
  KernelSUDetected: { android: 'root.kernelsu_detected' },
  ZygiskDetected: { android: 'root.zygisk_detected' },
  OsRemountDetected: { android: 'root.rw_system_paths' },
  DetectUnlockedBootloader: { android: 'root.bootloader_unlocked' },
  DetectCustomRom: { android: 'root.custom_rom' },
  EmulatorFound: emulated,
  GoogleEmulatorDetected: emulated,
  CorelliumFileFound: emulated,
  RunningInVirtualSpace: { android: 'emulator.app_cloned' },
  BlockSecondSpace: { android: 'emulator.work_profile_or_secondary_user' },
  DebuggerThreatDetected: onBoth('debugger.debugger_attached'),
  ActiveDebuggerThreatDetected: onBoth('debugger.debugger_attached'),
  AppIsDebuggable: { android: 'debugger.app_debuggable' },
  FridaDetected: frida,
  FridaCustomDetected: frida,
  FridaAttachDetected: frida,
  FridaSpawnDetected: frida,
  HookFrameworkDetected: onBoth('debugger.hooking_detected'),
  ClickBotDetected: clicked,
  ClickBotDetectedVirtualFinger: clicked,
  KeyInjectionDetected: onBoth('debugger.automation_detected'),
  IllegalAccessibilityServiceEvent: { android: 'debugger.accessibility_abuse' },
  AbusiveAccessibilityServiceDetected: { android: 'debugger.accessibility_abuse' },
  AppIntegrityError: onBoth('tamper.signature_mismatch'),
  RuntimeBundleValidationViolation: onBoth('tamper.code_integrity_failed'),
  CodeInjectionDetected: onBoth('tamper.library_injected'),
  NotInstalledFromOfficialStore: onBoth('tamper.untrusted_install_source'),
  UnknownSourcesEnabled: { android: 'ecosystem.unknown_sources_enabled' },
  DeveloperOptionsEnabled: { android: 'ecosystem.developer_mode' },
  ActiveADBDetected: { android: 'ecosystem.adb_enabled' },
  OverlayDetected: { android: 'ecosystem.overlay_or_interfering_apps' },
  IllegalDisplayEvent: onBoth('ecosystem.screen_mirrored'),
  StalkerSpywareDetected: { android: 'ecosystem.malware_detected' },
  ActivePhoneCallDetected: onBoth('ecosystem.active_call'),
  GeoLocationSpoofingDetected: spoofedLocation,
  GeoLocationMockByAppDetected: spoofedLocation,
  NoSimPresent: onBoth('ecosystem.no_sim'),
  ActiveVpnDetected: onBoth('network.vpn_active'),
  NetworkProxyConfigured: onBoth('network.proxy_configured'),
  SslCertificateValidationFailed: onBoth('network.mitm_detected'),
  SslInvalidCertificateChain: onBoth('network.mitm_detected'),
  SslServerCertificatePinningFailed: onBoth('network.pinning_failed'),
  SslIncompatibleVersion: weakTls,
  SslIncompatibleCipher: weakTls,
  SslNonSslConnection: weakTls,
}

/** Events that are no finding of the device: bot defence, rules of the app, what was blocked. */
export const appdomeIgnored: ReadonlySet<string> = new Set([
  'MobileBotDefenseCheck',
  'MobileBotDefenseRateLimitReached',
  'UpdateMBDMap',
  'ConditionalEnforcementEvent',
  'SimStateInfo',
  'BlockedKeyboardEvent',
  'BlockedClipboardEvent',
  'BlockedScreenCaptureEvent',
  'BlockedATSModification',
  'BannedManufacturer',
  'GeoFencingUnauthorizedLocation',
  'UACPresented',
])

export type AppdomeReport = {
  platform: 'android' | 'ios'
  /** The names of the events that the app received (`externalID`). */
  events: readonly string[]
}

const reportShape = {
  what: 'the platform and the names of the events that the app received',
  members: { platform: null, events: 'texts' as const },
  required: ['events'],
}

/**
 * Maps the events that an app received to signals.
 * @throws TypeError when the report is none
 */
export function fromAppdome(report: AppdomeReport): PartialSignals {
  checkReport('fromAppdome: report', report, reportShape)
  const { platform, events } = report
  const known = events.filter((name) => Object.hasOwn(appdomeEvents, name))
  const findings = known.flatMap((name): Finding[] => {
    const signals = appdomeEvents[name]!
    // A newer version may report it on the other platform too.
    const signal = signals[platform] ?? signals.android ?? signals.ios
    return signal === undefined ? [] : [[signal, true]]
  })
  const unknown = events.filter((name) => !known.includes(name) && !appdomeIgnored.has(name))
  return mergePartial(toPartialSignals(findings), toUnknownSignals('appdome', unknown))
}
