/**
 * Fleets whose truth is known: the log odds of fraud are a sum of planted weights. Beside the
 * signals that say something there are useless ones, ones that only go with a signal that says
 * something, and labels that are late, wrong or missing. A suggestion must find the planted weights
 * again, and the oracle, which knows them, says how well anything could do.
 */
import { createSeededRandom, drawPoisson } from '#shared/core/base/seeded-random.ts'
import { toShare } from '#shared/core/outcomes/suggest/fit-logistic.ts'
import type {
  OutcomeEvent,
  OutcomeRow,
  OutcomeTable,
  Period,
} from '#shared/core/outcomes/suggest/outcome-table.ts'
import { periods } from '#shared/core/outcomes/suggest/outcome-table.ts'
import { isServerCategory, type Signals } from '#shared/core/signals/signal-definition.ts'

/** How often a signal is seen among all sessions, and what it adds to the log odds of fraud. */
type Planted = readonly [share: number, logOdds: number]

/** Signals and counts of velocity (`metric:windowSeconds`) that say something. */
export const plantedWeights: Readonly<Record<string, Planted>> = {
  'root.rooted': [0.03, 0.8],
  'root.magisk_detected': [0.008, 1.2],
  'root.root_hiding': [0.003, 2.5],
  'root.bootloader_unlocked': [0.02, 0.5],
  'emulator.is_emulator': [0.008, 3],
  'emulator.device_farm_suspected': [0.003, 3.5],
  'emulator.app_cloned': [0.01, 2.2],
  'emulator.multi_instance': [0.01, 1.2],
  'debugger.frida_detected': [0.002, 4],
  'debugger.hooking_detected': [0.003, 2.5],
  'debugger.automation_detected': [0.004, 3],
  'debugger.auto_clicker': [0.006, 2],
  'tamper.signature_mismatch': [0.001, 4],
  'tamper.untrusted_install_source': [0.02, 1],
  'tamper.device_info_spoofed': [0.003, 3],
  'tamper.device_binding_changed': [0.02, 1.4],
  'ecosystem.location_spoofed': [0.01, 2],
  'ecosystem.remote_control_active': [0.005, 2.8],
  'ecosystem.active_call': [0.02, 0.6],
  'ecosystem.virtual_camera': [0.002, 3.2],
  'network.datacenter_ip': [0.03, 1.3],
  'network.tor_ip': [0.003, 2],
  'network.proxy_ip': [0.015, 1.2],
  'attestation.revoked': [0.002, 2.5],
  'users_per_device:86400': [0.005, 2.5],
}

/** Those that say nothing, and how often they are seen. Presets give each of them points. */
export const uselessSignals: Readonly<Record<string, number>> = {
  'ecosystem.developer_mode': 0.08,
  'ecosystem.adb_enabled': 0.05,
  'ecosystem.no_passcode': 0.06,
  'ecosystem.unknown_sources_enabled': 0.03,
  'ecosystem.recent_factory_reset': 0.015,
  'ecosystem.boot_count_low': 0.02,
  'ecosystem.wireless_adb': 0.008,
  'network.vpn_active': 0.12,
  'network.user_ca_installed': 0.015,
  'network.timezone_mismatch': 0.03,
  'network.public_vpn_ip': 0.04,
  'network.pinning_failed': 0.008,
  'tamper.time_spoofed': 0.01,
  'tamper.hardware_keystore_missing': 0.01,
  'emulator.battery_anomaly': 0.02,
  'emulator.telephony_defaults': 0.01,
  'root.custom_rom': 0.015,
  'root.test_keys': 0.008,
  'root.dangerous_props': 0.008,
  'debugger.app_debuggable': 0.008,
  'platforms_per_device:2592000': 0.01,
}

/** Those that go with another one and say nothing of their own. */
const companions: Readonly<Record<string, { of: string; share: number; alone: number }>> = {
  'root.su_binary': { of: 'root.magisk_detected', share: 0.85, alone: 0.001 },
  'root.zygisk_detected': { of: 'root.magisk_detected', share: 0.6, alone: 0.0005 },
  'root.root_management_app': { of: 'root.rooted', share: 0.7, alone: 0.002 },
  'emulator.qemu_props': { of: 'emulator.is_emulator', share: 0.9, alone: 0.001 },
  'emulator.emulator_files': { of: 'emulator.is_emulator', share: 0.7, alone: 0.001 },
  'emulator.emulator_sensors': { of: 'emulator.is_emulator', share: 0.6, alone: 0.0005 },
  'debugger.frida_threads': { of: 'debugger.frida_detected', share: 0.7, alone: 0.001 },
  'network.relay_ip': { of: 'network.datacenter_ip', share: 0.4, alone: 0.01 },
}

export const companionSignals: readonly string[] = Object.keys(companions)

export type FleetOptions = {
  seed: number
  /** All sessions; four events each. */
  sessions: number
  /** Labels of all sessions. */
  labels: number
  /** The share of fraud. */
  fraud?: number
  /** The share of labels that say the opposite. */
  wrong?: number
  /** The share of the newer fraud's labels that have not come yet. */
  late?: number
  /** How many times as frequent some signals are in the newer period. */
  drift?: number
  /** Useless signals beside those above. */
  moreUseless?: Readonly<Record<string, number>>
  /** Draws of what a session shows; fewer make fewer rows. */
  draws?: number
}

export type PlantedFleet = {
  table: OutcomeTable
  /** Of each row of the table. */
  truths: { fraud: number; all: number; logOdds: number }[]
}

/** They become more frequent: a VPN that is sold with phones, and clouds that phones browse by. */
const drifting = ['network.vpn_active', 'network.datacenter_ip', 'network.tor_ip']
/** Of the labels, those of fraud: investigated cases and a sample of honest users. */
const fraudOfLabels = 0.25
const olderShare = 0.7

/** Money and users are not planted. */
const noStakes = { losses: {}, honestUsers: [] }

/** Makes a fleet. */
export function makePlantedFleet(options: FleetOptions): PlantedFleet {
  const { seed, sessions, fraud = 0.01, draws = 20_000, drift = 1, moreUseless = {} } = options
  const random = createSeededRandom(seed)
  const shown = { older: drawShown(draws, random, 1, moreUseless), newer: [] as string[][] }
  shown.newer = drift === 1 ? shown.older : drawShown(draws, random, drift, moreUseless)
  const intercept = findIntercept(shown.older, fraud)
  const events = new Map<string, number>()
  const kinds: OutcomeEvent[] = []
  const placeOf = (paths: readonly string[]): number => {
    const key = paths.join()
    const present = events.get(key)
    if (present !== undefined) return present
    events.set(key, kinds.length)
    kinds.push(toEvent(paths))
    return kinds.length - 1
  }
  const rows: OutcomeRow[] = []
  const truths: PlantedFleet['truths'] = []
  for (const period of periods) {
    const share = period === 'older' ? olderShare : 1 - olderShare
    for (const [paths, drawn] of countEqual(shown[period])) {
      const all = drawPoisson((sessions * share * drawn) / draws, random)
      if (all === 0) continue
      const logOdds = toLogOddsOf(paths, intercept)
      const trueFraud = drawBinomial(all, toShare(logOdds), random)
      // A third of sessions begins before all is known.
      const first = paths.slice(0, Math.floor(paths.length / 2))
      const seen = random() < 1 / 3 ? [placeOf(first), placeOf(paths)] : [placeOf(paths)]
      const labelled = drawLabels({ all, trueFraud, period }, options, random)
      rows.push({ events: [...new Set(seen)], period, judged: 0, ...labelled, ...noStakes })
      truths.push({ fraud: trueFraud, all, logOdds })
    }
  }
  return { table: { events: kinds, rows, days: { older: 63, newer: 27 } }, truths }
}

function drawShown(
  draws: number,
  random: () => number,
  drift: number,
  moreUseless: Readonly<Record<string, number>>,
): string[][] {
  const shares: [string, number][] = [
    ...Object.entries(plantedWeights).map(([path, [share]]) => [path, share] as [string, number]),
    ...Object.entries(uselessSignals),
    ...Object.entries(moreUseless),
  ]
  return Array.from({ length: draws }, () => {
    const paths = new Set<string>()
    for (const [path, share] of shares) {
      if (random() < share * (drifting.includes(path) ? drift : 1)) paths.add(path)
    }
    for (const [path, { of, share, alone }] of Object.entries(companions)) {
      if (random() < (paths.has(of) ? share : alone)) paths.add(path)
    }
    return [...paths].sort()
  })
}

function countEqual(shown: readonly string[][]): [string[], number][] {
  const counts = new Map<string, [string[], number]>()
  for (const paths of shown) {
    const key = paths.join()
    const present = counts.get(key)
    if (present === undefined) counts.set(key, [paths, 1])
    else present[1]++
  }
  return [...counts.values()]
}

const toLogOddsOf = (paths: readonly string[], intercept: number): number =>
  paths.reduce((sum, path) => sum + (plantedWeights[path]?.[1] ?? 0), intercept)

/** The log odds of a session without a signal, for a share of fraud. */
function findIntercept(shown: readonly string[][], fraud: number): number {
  let [low, high] = [-20, 0]
  for (let n = 0; n < 50; n++) {
    const middle = (low + high) / 2
    const sum = shown.reduce((total, paths) => total + toShare(toLogOddsOf(paths, middle)), 0)
    if (sum / shown.length > fraud) high = middle
    else low = middle
  }
  return low
}

function drawLabels(
  { all, trueFraud, period }: { all: number; trueFraud: number; period: Period },
  { sessions, labels, fraud = 0.01, wrong = 0, late = 0 }: FleetOptions,
  random: () => number,
): Pick<OutcomeRow, 'fraud' | 'legitimate' | 'unlabelled'> {
  const come = period === 'newer' ? 1 - late : 1
  const ofFraud = Math.min(1, (fraudOfLabels * labels) / (sessions * fraud)) * come
  const ofHonest = Math.min(1, ((1 - fraudOfLabels) * labels) / (sessions * (1 - fraud)))
  // A session has one label at most: drawn by Poisson, labels would vary more than they can.
  const draw = (from: number, share: number) => drawBinomial(from, share, random)
  const [known, cleared] = [draw(trueFraud, ofFraud), draw(all - trueFraud, ofHonest)]
  const [excused, accused] = [draw(known, wrong), draw(cleared, wrong)]
  return {
    fraud: known - excused + accused,
    legitimate: cleared - accused + excused,
    unlabelled: all - known - cleared,
  }
}

/** How many of `cases` are so, each with this `share`. */
function drawBinomial(cases: number, share: number, random: () => number): number {
  if (cases <= 0 || share <= 0) return 0
  if (share > 0.5) return cases - drawBinomial(cases, 1 - share, random)
  const mean = cases * share
  if (mean >= 50) {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
    const drawn = Math.round(mean + Math.sqrt(mean * (1 - share)) * normal)
    return Math.min(cases, Math.max(0, drawn))
  }
  // Steps over those that are not so to the next that is, until all are passed.
  const perCase = Math.log1p(-share)
  const toNext = () => 1 + Math.floor(Math.log(1 - random()) / perCase)
  let count = 0
  for (let at = toNext(); at <= cases; at += toNext()) count++
  return count
}

function toEvent(paths: readonly string[]): OutcomeEvent {
  const signals = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }
  const server: OutcomeEvent['server'] = {}
  const counts = new Map<string, number>()
  for (const path of paths) {
    // Above the thresholds and below the steps of every preset's rules.
    if (path.includes(':')) counts.set(path, path.startsWith('users') ? 6 : 2)
    else {
      const [category, name] = path.split('.') as [string, string]
      if (isServerCategory(category)) server[category] = { ...server[category], [name]: true }
      else (signals as Signals)[category as keyof Signals][name] = true
    }
  }
  const context = { sdkVersion: '4.2.0', platform: 'android', receivedAtMs: 0 }
  return { signals, server, context, counts, others: [] }
}

/** What share of all fraud the oracle finds with a number of alerts, by the planted weights. */
export function toOracleRecall(
  { table, truths }: PlantedFleet,
  { alerts, period }: { alerts: number; period: Period },
): number {
  const mine = truths.filter((_, at) => table.rows[at]!.period === period)
  const sorted = mine.sort((a, b) => b.logOdds - a.logOdds)
  let left = alerts
  let caught = 0
  for (const { all, fraud } of sorted) {
    caught += fraud * Math.min(1, Math.max(0, left) / all)
    left -= all
  }
  return caught / mine.reduce((sum, { fraud }) => sum + fraud, 0)
}

/** The table with every label as it truly is, and no session without one. */
export function toTrueTable({ table, truths }: PlantedFleet): OutcomeTable {
  const rows = table.rows.map((row, at) => {
    const { fraud, all } = truths[at]!
    return { ...row, fraud, legitimate: all - fraud, unlabelled: 0 }
  })
  return { ...table, rows }
}
