/**
 * `npm run faults -- starvation [--minutes 10] [--alone 60] [--connections 64]`: one tenant sends
 * as fast as it can. While nobody else sends, it gets nine tenths of what it gets with a rate that
 * never limits, and no 429. When four others come at 50/s each, it must get 429; the others must
 * get only 200 from their first submission on, and, a second later, a p99 of at most twice that
 * without the flood.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { admin, createTenant } from '../../support/http/tenant-client.ts'
import { percentile } from '../../support/process/percentile.ts'
import { startStack } from '../../support/process/stack.ts'
import { describeCounts } from '../support/counts.ts'
import { print, readOptions, reportBroken } from '../support/drill.ts'
import { startSteadyLoad } from '../support/steady-load.ts'
import { type FloodResult, startFlood } from './flood.ts'

type Measured = { statuses: ReadonlyMap<number, number>; p50Ms: number; p99Ms: number }

export type StarvationResult = {
  /** The flood while the others are there. */
  flood: FloodResult
  /** The flood with nobody else: as by default, and with a rate that never limits. */
  lone: FloodResult
  unlimited: FloodResult
  /** The others without a flood, in the first second beside it, and from then on. */
  alone: Measured
  arriving: Measured
  beside: Measured
}

export type StarvationOptions = {
  aloneSeconds: number
  seconds: number
  loneSeconds: number
  connections: number
  /** The rate of the flooding tenant beside the others; what they leave when omitted. */
  bytesPerSecond?: number
}

const others = 4
const ratePerSecond = 50 * others
/** The first seconds after a start are not measured. */
const warmSeconds = 3
/** How long the flood is alone before the others come. */
const headStartSeconds = 2
const neverLimits = 1e9

/** Runs on its own stack. */
export async function runStarvation(options: StarvationOptions): Promise<StarvationResult> {
  const running = await startStack()
  try {
    const { stack } = running
    const ingestUrl = stack.ingest
    const tenants = await Promise.all(
      Array.from({ length: others }, (_, n) => createTenant(stack, `other-${n}`)),
    )
    const tenant = await createTenant(stack, 'flood')
    const setRate = (rate: number | undefined) => {
      const ingest_bytes = rate === undefined ? null : { per_second: rate, burst: rate }
      return admin(stack, 'PUT', '/tenants/flood/rates', { ingest_bytes })
    }
    const flood = () => startFlood({ ingestUrl, tenant, connections: options.connections })
    const floodAlone = async (rate: number | undefined) => {
      await setRate(rate)
      const flooding = flood()
      await pause(1_000 * options.loneSeconds)
      return flooding.stop()
    }
    const measure = async (label: string, seconds: number) => {
      const load = startSteadyLoad({ ingestUrl, tenants, ratePerSecond, label })
      await pause(1_000 * seconds)
      await load.stop()
      const { statuses, tookMs } = load
      return { statuses, p50Ms: percentile(tookMs, 0.5), p99Ms: percentile(tookMs, 0.99) }
    }
    await measure('warm', warmSeconds)
    const alone = await measure('alone', options.aloneSeconds)
    await setRate(options.bytesPerSecond)
    const flooding = flood()
    await pause(1_000 * headStartSeconds)
    const arriving = await measure('arriving', 1)
    const beside = await measure('beside', options.seconds)
    const flooded = await flooding.stop()
    const unlimited = await floodAlone(neverLimits)
    const lone = await floodAlone(undefined)
    return { flood: flooded, lone, unlimited, alone, arriving, beside }
  } finally {
    await running.discard()
  }
}

/** @returns the broken guarantees about responses */
export function judgeStarvation(result: StarvationResult): string[] {
  const { flood, lone, unlimited, alone, arriving, beside } = result
  const wrong: string[] = []
  const refused = flood.statuses.get(429) ?? 0
  if (refused === 0) wrong.push('the flood was never refused')
  if ((flood.statuses.get(200) ?? 0) === 0) wrong.push('the flood was never accepted')
  if (flood.withoutRetryAfter > 0)
    wrong.push(`${flood.withoutRetryAfter} refusals of the flood without Retry-After`)
  const odd = [...flood.statuses.keys()].filter((status) => ![200, 429].includes(status))
  if (odd.length > 0) wrong.push(`the flood got ${describeCounts(flood.statuses)}`)
  for (const [name, { statuses }] of Object.entries({ lone, unlimited })) {
    if (statuses.size === 1 && statuses.has(200)) continue
    wrong.push(`the ${name} flood got ${describeCounts(statuses)}`)
  }
  for (const [when, { statuses }] of Object.entries({ alone, arriving, beside })) {
    if (statuses.size === 1 && statuses.has(200)) continue
    wrong.push(`others got ${describeCounts(statuses)} ${when}`)
  }
  return wrong
}

/** @returns the broken promise when a lone tenant gets less than nine tenths of what there is */
export function judgeLone({ lone, unlimited }: StarvationResult): string[] {
  const [taken, all] = [lone, unlimited].map(({ statuses }) => statuses.get(200) ?? 0)
  if (taken! >= 0.9 * all!) return []
  return [`a lone tenant got ${taken} of ${all} that the edge takes`]
}

/** @returns the broken guarantee when the others wait more than twice as long as alone */
export function judgeLatency({ alone, beside }: StarvationResult): string[] {
  if (beside.p99Ms <= 2 * alone.p99Ms) return []
  return [`p99 of others is ${beside.p99Ms.toFixed(1)} ms, alone ${alone.p99Ms.toFixed(1)} ms`]
}

/** Runs the drill at full length and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { minutes, alone, connections } = readOptions(args, {
    minutes: 10,
    alone: 60,
    connections: 64,
  })
  const loneSeconds = Math.min(alone, 20)
  const options = { seconds: 60 * minutes, aloneSeconds: alone, loneSeconds, connections }
  print(`${minutes} minutes of a flood over ${connections} connections`)
  const result = await runStarvation(options)
  for (const when of ['alone', 'arriving', 'beside'] as const) {
    const { statuses, p50Ms, p99Ms } = result[when]
    const times = `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`
    print(`others ${when}: ${describeCounts(statuses)}; ${times}`)
  }
  const floodSeconds = headStartSeconds + 1 + options.seconds
  for (const [name, seconds] of [
    ['flood', floodSeconds],
    ['lone', loneSeconds],
    ['unlimited', loneSeconds],
  ] as const) {
    const perSecond = (status: number) =>
      Math.round((result[name].statuses.get(status) ?? 0) / seconds)
    print(`the ${name}: ${perSecond(200)} accepted and ${perSecond(429)} refused per second`)
  }
  reportBroken([...judgeStarvation(result), ...judgeLatency(result), ...judgeLone(result)])
}
