/**
 * The cost of scoring an event, by kind of event and preset, beside the minimum of reading each
 * value of its signals once. Rounds interleaved, medians, CPU time of the process.
 */
import { parseArgs } from 'node:util'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { type Figure, publishReport } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'

const rounds = 9
const eventsPerRound = 40_000
const context = { sdkVersion: '4.2.0', platform: 'android', receivedAtMs: 1_790_000_000_000 }

/** Seven boolean signals of each category, all clean: what an honest phone sends. */
function clean(): Signals {
  const signals = Object.fromEntries(categories.map((name) => [name, {}])) as Signals
  for (const category of categories) {
    const booleans = Object.entries(signalCatalog[category])
      .filter(([name, { type }]) => type === 'boolean' && name !== 'app_attest_valid')
      .slice(0, 7)
    for (const [name] of booleans) signals[category][name] = false
  }
  return signals
}

function paint(...paths: string[]): Signals {
  const signals = clean()
  for (const path of paths) {
    const [category, name] = path.split('.') as [keyof Signals, string]
    signals[category][name] = true
  }
  return signals
}

function everything(): Signals {
  const signals = clean()
  for (const category of categories) {
    for (const name of Object.keys(signals[category])) signals[category][name] = true
  }
  return signals
}

const events: Record<string, Signals> = {
  clean: clean(),
  rooted: paint('root.su_binary', 'root.magisk_detected', 'ecosystem.developer_mode'),
  emulator: paint('emulator.is_emulator', 'emulator.emulator_files', 'root.su_binary'),
  'everything lit': everything(),
}

/** The baseline: each value is read once. */
function walk(signals: Signals): number {
  let detected = 0
  for (const category of categories) {
    const own = signals[category]
    for (const name in own) if (own[name] === true) detected++
  }
  return detected
}

/** @returns µs of CPU per event */
function measure(work: () => unknown): number {
  const before = process.cpuUsage()
  for (let n = 0; n < eventsPerRound; n++) work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / eventsPerRound
}

/** @throws on any option: it has none */
export function run(args: string[]): void {
  parseArgs({ args, options: {} })
  const figures: Figure[] = []
  for (const [preset, policy] of Object.entries(presets)) {
    const score = compilePolicy(policy)
    for (const [name, signals] of Object.entries(events)) {
      const scored: number[] = []
      const baseline: number[] = []
      for (let round = -2; round < rounds; round++) {
        const one = measure(() => score(signals, context))
        const two = measure(() => walk(signals))
        if (round < 0) continue
        scored.push(one)
        baseline.push(two)
      }
      figures.push({
        name: `${preset}, ${name}, 42 signals`,
        unit: 'µs',
        value: toSpread(scored),
        baseline: { name: 'each value read', value: toSpread(baseline) },
        ratio: toRatios(scored, baseline),
      })
    }
  }
  publishReport({
    part: 'scoring',
    command: 'npm run bench -- scoring',
    versions: {},
    durability: 'nothing is stored',
    figures,
    checks: [],
  })
}
