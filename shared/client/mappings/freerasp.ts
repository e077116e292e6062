/**
 * Talsec freeRASP. It reports a threat by a callback and says nothing of a check that found
 * nothing, so a threat that was not reported counts as clean only once all checks have finished.
 */
import type { PartialSignals } from '../telemetry.ts'
import { checkReport } from './check-report.ts'
import { mergePartial, toPartialSignals, toUnknownSignals } from './merge-signals.ts'
import { onBoth, type PlatformSignals } from './platform-signals.ts'

type Threat = PlatformSignals & {
  /** The callback in React Native, Cordova and Capacitor. Flutter puts `on` before it. */
  name: string
  /** Other names: callbacks of the Android library, cases of the iOS enumeration. */
  aliases: readonly string[]
  /** Something that happens at a moment, so its absence says nothing. */
  event?: true
  /** Where only newer libraries report it: Android SDK 19.2, iOS SDK 6.14. */
  newer?: readonly ('android' | 'ios')[]
}

const threat = (
  name: string,
  signals: PlatformSignals & Pick<Threat, 'event' | 'newer'>,
  ...aliases: string[]
): Threat => ({ name, aliases, ...signals })

/** Every callback of freeRASP and its signal. */
export const freeRaspThreats: readonly Threat[] = [
  threat(
    'privilegedAccess',
    { android: 'root.rooted', ios: 'root.jailbroken' },
    'onRootDetected',
    'jailbreak',
  ),
  threat('debug', onBoth('debugger.debugger_attached'), 'onDebuggerDetected', 'debugger'),
  threat(
    'simulator',
    { android: 'emulator.is_emulator', ios: 'emulator.is_simulator' },
    'onEmulatorDetected',
  ),
  threat('appIntegrity', onBoth('tamper.signature_mismatch'), 'onTamperDetected', 'signature'),
  threat(
    'unofficialStore',
    onBoth('tamper.untrusted_install_source'),
    'onUntrustedInstallationSourceDetected',
  ),
  threat('hooks', onBoth('debugger.hooking_detected'), 'onHookDetected', 'runtimeManipulation'),
  threat(
    'deviceBinding',
    onBoth('tamper.device_binding_changed'),
    'onDeviceBindingDetected',
    'deviceChange',
  ),
  threat('deviceID', { ios: 'tamper.device_binding_changed' }),
  threat('passcode', onBoth('ecosystem.no_passcode'), 'onUnlockedDeviceDetected'),
  threat(
    'secureHardwareNotAvailable',
    onBoth('tamper.hardware_keystore_missing'),
    'onHardwareBackedKeystoreNotAvailableDetected',
    'missingSecureEnclave',
  ),
  threat(
    'obfuscationIssues',
    { android: 'tamper.obfuscation_missing' },
    'onObfuscationIssuesDetected',
  ),
  threat('devMode', { android: 'ecosystem.developer_mode' }, 'onDeveloperModeDetected'),
  threat('systemVPN', onBoth('network.vpn_active'), 'onSystemVPNDetected'),
  threat('malware', { android: 'ecosystem.malware_detected' }, 'onMalwareDetected'),
  threat('adbEnabled', { android: 'ecosystem.adb_enabled' }, 'onADBEnabledDetected'),
  threat('screenshot', { ...onBoth('ecosystem.screenshot_taken'), event: true }),
  threat('screenRecording', { ...onBoth('ecosystem.screen_recording'), event: true }),
  threat('multiInstance', { android: 'emulator.multi_instance' }),
  threat('timeSpoofing', { ...onBoth('tamper.time_spoofed'), newer: ['ios'] }),
  threat('locationSpoofing', { android: 'ecosystem.location_spoofed' }),
  threat('unsecureWifi', { android: 'network.unsecure_wifi' }),
  threat('automation', { android: 'debugger.automation_detected' }),
  threat(
    'bootloader',
    { android: 'root.bootloader_unlocked', newer: ['android'] },
    'unlockedBootloader',
    'bootloaderUnlocked',
  ),
  threat('passcodeChange', { ios: 'ecosystem.passcode_changed', event: true }, 'passcodeChanged'),
]

/** Callbacks that are no finding about the device. */
const ignored = new Set(['allchecksfinished', 'allchecksdone'])

/** One spelling of `privilegedAccess`, `onPrivilegedAccess` and `onPrivilegedAccessDetected`. */
const toKey = (name: string) =>
  name
    .replace(/^on(?=[A-Z])/, '')
    .replace(/Detected$/, '')
    .toLowerCase()

const threatsByKey = new Map(
  freeRaspThreats.flatMap((one) => [one.name, ...one.aliases].map((name) => [toKey(name), one])),
)

export type FreeRaspReport = {
  platform: 'android' | 'ios'
  /** The callbacks that were called, by any of their names. */
  threats: readonly string[]
  /** Whether `allChecksFinished` was called: then what was not reported is clean. */
  finished?: boolean
  /**
   * All callbacks that the app has given to the library, as `Object.keys(actions)`. Left out, a
   * callback that older libraries do not have is never clean.
   */
  callbacks?: readonly string[]
  /** How many apps the callback `malware` listed. */
  suspiciousApps?: number
}

const reportShape = {
  what: 'the platform and the names of the callbacks that were called',
  members: {
    platform: null,
    threats: 'texts' as const,
    finished: 'boolean' as const,
    suspiciousApps: 'number' as const,
    callbacks: 'texts' as const,
  },
  required: ['threats'],
}

/**
 * Maps the callbacks of freeRASP to signals.
 * @throws TypeError when the report is none
 */
export function fromFreeRasp(report: FreeRaspReport): PartialSignals {
  checkReport('fromFreeRasp: report', report, reportShape)
  const { platform, threats, finished = false, suspiciousApps, callbacks } = report
  const keys = threats.map(toKey)
  const listened = callbacks && new Set(callbacks.map((name) => threatsByKey.get(toKey(name))))
  const reported = new Set(keys.map((key) => threatsByKey.get(key)))
  const findings = freeRaspThreats.flatMap((one) => {
    // The library of a phone calls what the app listens to, and older ones have not all callbacks.
    const isCalled = listened?.has(one) ?? one.newer?.includes(platform) !== true
    const clean = finished && isCalled && one.event === undefined && one[platform] !== undefined
    if (!reported.has(one) && !clean) return []
    // A newer SDK may report it on the other platform too.
    const signal = one[platform] ?? one.android ?? one.ios
    return signal === undefined ? [] : [[signal, reported.has(one)] as const]
  })
  const unknown = threats.filter((_, at) => {
    const key = keys[at]!
    return !threatsByKey.has(key) && !ignored.has(key)
  })
  const counted: PartialSignals =
    typeof suspiciousApps !== 'number'
      ? {}
      : { ecosystem: { suspicious_apps_count: suspiciousApps } }
  return mergePartial(toPartialSignals(findings), counted, toUnknownSignals('freerasp', unknown))
}
