/**
 * Trusted installers: the signals that say where an app came from score nothing when the installer
 * that the app names is on the policy's list.
 */
import type { TrustedInstallers } from '#shared/core/policies/policy.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'

/** Where an app names its installer. */
export const installerSignal = { category: 'tamper', name: 'installer_package' } as const

const silencedByDefault = ['tamper.untrusted_install_source']

export type Trust = { packages: ReadonlySet<string>; silences: ReadonlySet<string> }

/** @returns null when no installer is trusted */
export function compileTrust(trusted: TrustedInstallers | undefined): Trust | null {
  if (trusted === undefined) return null
  const { packages, silences = silencedByDefault } = trusted
  return { packages: new Set(packages), silences: new Set(silences) }
}

/** The trusted installer that an event names, or null. */
export function findTrustedInstaller(trust: Trust | null, signals: Signals): string | null {
  if (trust === null) return null
  const named = signals[installerSignal.category][installerSignal.name]
  return typeof named === 'string' && trust.packages.has(named) ? named : null
}
