/**
 * The signals of a healthy phone: a value for every signal that the SDK and its version measure.
 * The other kinds of phone change some of them.
 */

import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { drawInstaller, type Hardware, type Platform, type Sdk } from './hardware.ts'
import { hashToUnit, type Random } from './random.ts'

/** Signals that only a server can measure, not an SDK on a phone. */
const serverSide = new Set([
  'public_vpn_ip',
  'relay_ip',
  'datacenter_ip',
  'tor_ip',
  'proxy_ip',
  'vpn_confidence',
  'proxy_type',
  'forged_request',
  'replayed_request',
  'ip_country',
  'asn',
  'asn_type',
])

/** The share of the catalog that each SDK measures in its newest version. */
const coverage: Record<Sdk['name'], number> = {
  android: 0.96,
  ios: 0.98,
  flutter: 0.62,
  'react-native': 0.45,
  server: 0.8,
}

/** Whether an SDK measures a signal: its own share of the catalog, less in older versions. */
function isMeasured(path: string, sdk: Sdk): boolean {
  const share = coverage[sdk.name] * (0.75 + 0.25 * sdk.age)
  return hashToUnit(`${sdk.name}/${path}`) < share
}

/** Healthy signals in all six categories, at least one in each, so that no category is empty. */
export function cleanSignals(
  phone: { platform: Platform; hardware: Hardware; sdk: Sdk },
  random: Random,
): Signals {
  const values = healthyValues(phone, random)
  // By name, so that a new signal in the catalog changes nothing else of a simulated history.
  const seed = random.int(0, 1_000_000_000)
  const signals = Object.fromEntries(categories.map((one) => [one, {}])) as Signals
  for (const category of categories) {
    let measured = false
    for (const [name, definition] of Object.entries(signalCatalog[category])) {
      if (!definition.platforms.includes(phone.platform)) continue
      if (serverSide.has(name) && phone.sdk.name !== 'server') continue
      if (!isMeasured(`${category}.${name}`, phone.sdk)) continue
      const value = name in values ? values[name] : definition.type === 'boolean' ? false : null
      // A check that timed out or lacked a permission: inconclusive, which is not "false".
      const inconclusive = hashToUnit(`${seed}/${category}.${name}`) < 0.015 && measured
      if (value === undefined) continue
      signals[category][name] = inconclusive ? null : value
      measured ||= value !== null
    }
  }
  return signals
}

function healthyValues(
  phone: { platform: Platform; hardware: Hardware },
  random: Random,
): Record<string, unknown> {
  const patchAgeDays = random.int(3, 420)
  const shared = {
    suspicious_apps_count: 0,
    factory_reset_at: random.chance(0.3) ? 0 : 1_650_000_000_000 + random.int(0, 99_000_000) * 1000,
    os_outdated: patchAgeDays > 365,
    patch_age_days: patchAgeDays,
    no_passcode: random.chance(0.06),
    no_sim: random.chance(0.03),
    developer_mode: random.chance(phone.platform === 'android' ? 0.04 : 0.005),
    ip_country: random.pick(['DE', 'FR', 'GB', 'US', 'BR', 'IN', 'VN', 'PL']),
    asn: `AS${random.pick([3320, 3215, 2856, 7922, 26599, 55836, 45899, 5617])}`,
    asn_type: random.pick(['isp', 'isp', 'isp', 'mobile', 'business']),
    vpn_confidence: undefined,
    proxy_type: undefined,
    proxy_address: undefined,
    remote_control_provider: undefined,
  }
  if (phone.platform === 'ios') {
    return { ...shared, attestation_provider: 'app_attest', app_attest_valid: true }
  }
  return {
    ...shared,
    verified_boot_state: 'VERIFIED',
    system_integrity: 'ORIGINAL',
    rom_name: undefined,
    oem_unlock_allowed: random.chance(0.02),
    emulator_vendor: undefined,
    qemu_prop_count: 0,
    sensor_count: random.int(14, 44),
    tracer_pid: 0,
    hook_framework: undefined,
    installer_package: drawInstaller(phone.hardware.brand, random),
    attestation_provider: 'play_integrity',
    pi_device_verdict: drawDeviceVerdict(random),
    pi_app_verdict: 'PLAY_RECOGNIZED',
    pi_licensing: random.chance(0.97) ? 'LICENSED' : 'UNEVALUATED',
    pi_play_protect: random.chance(0.93) ? 'NO_ISSUES' : 'NO_DATA',
    pi_app_access_risk: random.chance(0.4) ? ['KNOWN_INSTALLED'] : [],
    pi_recent_activity: random.chance(0.9) ? 'LEVEL_1' : 'LEVEL_2',
    pi_device_recall_bits: 0,
    pi_account_activity: 'UNEVALUATED',
    unknown_sources_enabled: random.chance(0.08),
  }
}

// By default Play Integrity returns the device label alone; apps that opted in get every label met.
function drawDeviceVerdict(random: Random): string[] {
  return random.weighted([
    [['MEETS_DEVICE_INTEGRITY'], 70],
    [['MEETS_BASIC_INTEGRITY', 'MEETS_DEVICE_INTEGRITY', 'MEETS_STRONG_INTEGRITY'], 24],
    [['MEETS_BASIC_INTEGRITY', 'MEETS_DEVICE_INTEGRITY'], 6],
  ])
}

/** Overwrites signals of one category. */
export function paint(
  signals: Signals,
  category: Category,
  values: Record<string, unknown>,
): Signals {
  Object.assign(signals[category], values)
  return signals
}
