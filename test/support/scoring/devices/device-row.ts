/**
 * The table of devices: what a real device sends and which action is right for it under each
 * preset, with the reason. The actions are a decision of people: a change of weights must not
 * change them by accident.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import type { PresetName } from '#shared/core/policies/presets/presets.ts'
import {
  type Category,
  categories,
  type ServerSignals,
  type SignalDefinition,
  type Signals,
} from '#shared/core/signals/signal-definition.ts'
import { findSignal, signalCatalog } from '#shared/core/signals/signals.ts'
import { readRows } from '../../process/text-tables.ts'

/** The presets in the order of a row's actions. */
export const presetOrder: readonly PresetName[] = [
  'permissive',
  'balanced',
  'strict',
  'regulated-banking',
  'mobility',
]

export type DeviceRow = {
  device: string
  /** What a healthy device of this kind sends; `nothing` for an app that measures nothing. */
  base: 'android' | 'ios' | 'nothing'
  /** What differs from it. */
  signals: Partial<Signals>
  /** What the service observed or verified. */
  server?: ServerSignals
  /** A, R or B for each preset, in their order. */
  right: string
  why: string
  /** What a tenant adds to the preset, if the row is about that. */
  policy?: Pick<Policy, 'signals' | 'trustedInstallers' | 'requiredSignals'>
}

/** The policy of a tenant that distributes its app by this installer, unknown to Google. */
export const publishesBy = (installer: string): NonNullable<DeviceRow['policy']> => ({
  trustedInstallers: {
    packages: [installer],
    silences: ['tamper.untrusted_install_source', 'tamper.pi_licensing', 'tamper.pi_app_verdict'],
  },
})

const isCategory = (name: string): name is Category =>
  (categories as readonly string[]).includes(name)

/**
 * Reads signals as `category.name`, which is true, and `category.name=JSON`, with a space between
 * two. @throws for a name that the catalog does not have
 */
export function readSignals(text: string) {
  const found: Record<'signals' | 'server', Record<string, Record<string, unknown>>> = {
    signals: {},
    server: {},
  }
  for (const word of text.split(' ').filter((one) => one !== '')) {
    const [, category, name, value = 'true'] = /^(\w+)\.(\w+)(?:=(.+))?$/.exec(word) ?? []
    if (findSignal(category as Category, name!) === undefined) throw new Error(`no signal: ${word}`)
    const values = found[isCategory(category!) ? 'signals' : 'server']
    values[category!] = { ...values[category!], [name!]: JSON.parse(value) as unknown }
  }
  return found as { signals: Partial<Signals>; server: ServerSignals }
}

/**
 * Reads a table of devices: actions and base, device, reason, and signals where any differ.
 * @param policies What the tenant of a device adds to the preset, by device.
 */
export function readDevices(
  table: string,
  policies: Record<string, NonNullable<DeviceRow['policy']>> = {},
): readonly DeviceRow[] {
  return readRows(table).map(([head, device, why, text = '']) => {
    const [right, base] = head!.split(' ') as [string, DeviceRow['base']]
    const policy = policies[device!]
    const own = { device: device!, base, right, why: why!, ...readSignals(text) }
    return policy === undefined ? own : { ...own, policy }
  })
}

/** Values of healthy phones that are neither false nor absent. */
const healthy: Record<'android' | 'ios', Partial<Signals>> = {
  android: {
    root: { verified_boot_state: 'VERIFIED', system_integrity: 'ORIGINAL' },
    tamper: {
      attestation_provider: 'play_integrity',
      installer_package: 'com.android.vending',
      pi_device_verdict: ['MEETS_DEVICE_INTEGRITY'],
      pi_app_verdict: 'PLAY_RECOGNIZED',
      pi_licensing: 'LICENSED',
      pi_play_protect: 'NO_ISSUES',
      pi_app_access_risk: ['KNOWN_INSTALLED'],
      pi_recent_activity: 'LEVEL_1',
    },
    ecosystem: { patch_age_days: 40 },
  },
  ios: { tamper: { attestation_provider: 'app_attest', app_attest_valid: true } },
}

/** Every boolean signal of the platform, clean, and what healthy phones have beside them. */
function toBase(platform: 'android' | 'ios', category: Category): Record<string, unknown> {
  const own: [string, SignalDefinition][] = Object.entries(signalCatalog[category])
  const clean = own
    .filter(([, { type, platforms }]) => type === 'boolean' && platforms.includes(platform))
    .map(([name]) => [name, false])
  return { ...Object.fromEntries(clean), ...healthy[platform][category] }
}

/** All signals that the device of a row sends. */
export function toSentSignals({ base, signals }: Pick<DeviceRow, 'base' | 'signals'>): Signals {
  return Object.fromEntries(
    categories.map((category) => [
      category,
      { ...(base === 'nothing' ? {} : toBase(base, category)), ...signals[category] },
    ]),
  ) as Signals
}
