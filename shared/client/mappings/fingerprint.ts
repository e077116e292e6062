/**
 * Fingerprint: an event of Server API v4. An event has signals of every platform, and those of
 * another platform are false, so only those of the device's own platform are read.
 */
import type { PartialSignals } from '../telemetry.ts'
import { checkReport } from './check-report.ts'
import { type Finding, mergePartial, toPartialSignals } from './merge-signals.ts'
import { fromTable, onBoth, type PlatformSignals, toMeasured } from './platform-signals.ts'

/** Fields of an event and their signals. */
export const fingerprintFields: Readonly<Record<string, PlatformSignals>> = {
  root_apps: { android: 'root.root_management_app' },
  jailbroken: { ios: 'root.jailbroken' },
  emulator: { android: 'emulator.is_emulator' },
  simulator: { ios: 'emulator.is_simulator' },
  cloned_app: { android: 'emulator.app_cloned' },
  frida: onBoth('debugger.frida_detected'),
  // An iOS request is always called genuine.
  tampering: { android: 'tamper.device_info_spoofed' },
  location_spoofing: onBoth('ecosystem.location_spoofed'),
  developer_tools: onBoth('ecosystem.developer_mode'),
  active_call: onBoth('ecosystem.active_call'),
  mitm_attack: onBoth('network.mitm_detected'),
  replayed: onBoth('network.forged_request'),
  vpn: onBoth('network.vpn_active'),
  proxy: onBoth('network.proxy_ip'),
}

/** Fields inside of others. */
export const fingerprintDetails = {
  'vpn_methods.timezone_mismatch': 'network.timezone_mismatch',
  'vpn_methods.public_vpn': 'network.public_vpn_ip',
  'vpn_methods.relay': 'network.relay_ip',
  'ip_blocklist.tor_node': 'network.tor_ip',
  'ip_info.v4.datacenter_result': 'network.datacenter_ip',
  'ip_info.v6.datacenter_result': 'network.datacenter_ip',
} as const

/** What is no boolean. */
export const fingerprintTimes = {
  factory_reset_timestamp: ['ecosystem.factory_reset_at', 'ecosystem.recent_factory_reset'],
} as const

/** The event as the Server API returns it; what was not bought or did not run is absent. */
export type FingerprintEvent = Readonly<Record<string, unknown>>

export type FingerprintReport = {
  platform: 'android' | 'ios'
  /** Null when the event could not be had. */
  event: FingerprintEvent | null
}

const reportShape = {
  what: 'the platform and the event of the Server API, or null for no event',
  members: { platform: null, event: 'object' as const },
  required: ['event'],
  mayBeNull: true,
}

/**
 * Maps an event to signals.
 * @throws TypeError when the report is none
 */
export function fromFingerprint(report: FingerprintReport): PartialSignals {
  checkReport('fromFingerprint: report', report, reportShape)
  const { platform, event } = report
  const details = Object.entries(fingerprintDetails).map(
    ([path, signal]): Finding => [signal, toMeasured(readPath(event, path))],
  )
  return mergePartial(
    fromTable(fingerprintFields, event, platform),
    toPartialSignals(details),
    toReset(event),
  )
}

function readPath(event: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => {
    const isObject = typeof value === 'object' && value !== null
    return isObject ? (value as Record<string, unknown>)[name] : undefined
  }, event)
}

/** Times below this are seconds, since in ms it is a day of 1973. */
const msMin = 1e11
const dayMs = 86_400_000

/** 0 says that the reset is not known, which is not measured. */
function toReset(event: FingerprintEvent | null): PartialSignals {
  const resetMs = toMs(event?.factory_reset_timestamp)
  if (resetMs === undefined) return {}
  const eventMs = toMs(event?.timestamp)
  const recent: PartialSignals =
    eventMs === undefined
      ? {}
      : { ecosystem: { recent_factory_reset: Math.abs(eventMs - resetMs) < dayMs } }
  return mergePartial({ ecosystem: { factory_reset_at: resetMs } }, recent)
}

function toMs(time: unknown): number | undefined {
  if (typeof time !== 'number' || !Number.isSafeInteger(time) || time <= 0) return undefined
  return time < msMin ? time * 1000 : time
}
