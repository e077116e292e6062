/**
 * Sardine: the `signals` of a device, a list of keys and values. A level is a likelihood, so only
 * `high` counts as detected and only `low` as clean.
 */
import type { PartialSignals } from '../telemetry.ts'
import { checkReport } from './check-report.ts'
import type { Finding } from './merge-signals.ts'
import { toPartialSignals } from './merge-signals.ts'
import { onBoth, type PlatformSignals } from './platform-signals.ts'

/** Keys of signals and our signals. */
export const sardineSignals: Readonly<Record<string, PlatformSignals>> = {
  Emulator: { android: 'emulator.is_emulator', ios: 'emulator.is_simulator' },
  OSAnomaly: { android: 'tamper.device_info_spoofed' },
  RemoteSoftwareLevel: { android: 'ecosystem.remote_control_active' },
  VPN: onBoth('network.vpn_active'),
  Proxy: onBoth('network.proxy_ip'),
}

const meanings: Readonly<Record<string, boolean>> = {
  true: true,
  high: true,
  very_high: true,
  false: false,
  low: false,
}

export type SardineReport = {
  platform: 'android' | 'ios'
  /** `signals` of the device's answer; null or absent when there was none. */
  signals?: readonly { key: string; value: string }[] | null
}

const reportShape = {
  what: 'the platform and signals of the device, or null for no answer',
  members: { platform: null, signals: 'list' as const },
}

/**
 * Maps the signals of a device.
 * @throws TypeError when the report is none
 */
export function fromSardine(report: SardineReport): PartialSignals {
  checkReport('fromSardine: report', report, reportShape)
  const { platform, signals } = report
  return toPartialSignals(
    (signals ?? []).flatMap(({ key, value }): Finding[] => {
      const signal = Object.hasOwn(sardineSignals, key) ? sardineSignals[key]![platform] : undefined
      const isKnown = Object.hasOwn(meanings, value)
      return signal === undefined ? [] : [[signal, isKnown ? meanings[value] : undefined]]
    }),
  )
}
