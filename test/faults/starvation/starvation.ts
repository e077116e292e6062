/**
 * `npm run faults -- starvation [--minutes 10] [--alone 60] [--connections 64]`: one tenant sends
 * as fast as it can beside four others at 50/s each. It must get 429; the others must get only 200,
 * and a p99 of at most twice that without the flood.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { admin, createTenant } from '../../support/http/tenant-client.ts'
import { percentile } from '../../support/process/percentile.ts'
import { startStack } from '../../support/process/stack.ts'
import { describeCounts } from '../support/counts.ts'
import { print, readOptions, reportBroken } from '../support/drill.ts'
import { startSteadyLoad } from '../support/steady-load.ts'
import { type FloodResult, startFlood } from './flood.ts'

export type StarvationResult = {
  flood: FloodResult
  /** The others, alone and beside the flood. */
  alone: { statuses: ReadonlyMap<number, number>; p50Ms: number; p99Ms: number }
  beside: { statuses: ReadonlyMap<number, number>; p50Ms: number; p99Ms: number }
}

export type StarvationOptions = {
  aloneSeconds: number
  seconds: number
  connections: number
  /** The limit of the flooding tenant; the product's default when omitted. */
  bytesPerSecond?: number
}

const others = 4
const ratePerSecond = 50 * others
/** The first seconds after a start are not measured. */
const warmSeconds = 3

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
    if (options.bytesPerSecond !== undefined) {
      const ingest_bytes = { per_second: options.bytesPerSecond, burst: options.bytesPerSecond }
      await admin(stack, 'PUT', '/tenants/flood/rates', { ingest_bytes })
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
    const flooding = startFlood({ ingestUrl, tenant, connections: options.connections })
    const beside = await measure('beside', options.seconds)
    return { flood: await flooding.stop(), alone, beside }
  } finally {
    await running.discard()
  }
}

/** @returns the broken guarantees about responses */
export function judgeStarvation({ flood, alone, beside }: StarvationResult): string[] {
  const wrong: string[] = []
  const refused = flood.statuses.get(429) ?? 0
  if (refused === 0) wrong.push('the flood was never refused')
  if ((flood.statuses.get(200) ?? 0) === 0) wrong.push('the flood was never accepted')
  if (flood.withoutRetryAfter > 0)
    wrong.push(`${flood.withoutRetryAfter} refusals of the flood without Retry-After`)
  const odd = [...flood.statuses.keys()].filter((status) => ![200, 429].includes(status))
  if (odd.length > 0) wrong.push(`the flood got ${describeCounts(flood.statuses)}`)
  for (const [when, { statuses }] of Object.entries({ alone, beside })) {
    if (statuses.size === 1 && statuses.has(200)) continue
    wrong.push(`others got ${describeCounts(statuses)} ${when}`)
  }
  return wrong
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
  const options = { seconds: 60 * minutes, aloneSeconds: alone, connections }
  print(`${minutes} minutes of a flood over ${connections} connections`)
  const result = await runStarvation(options)
  for (const when of ['alone', 'beside'] as const) {
    const { statuses, p50Ms, p99Ms } = result[when]
    const times = `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`
    print(`others ${when}: ${describeCounts(statuses)}; ${times}`)
  }
  const perSecond = (status: number) =>
    Math.round((result.flood.statuses.get(status) ?? 0) / options.seconds)
  print(`the flood: ${perSecond(200)} accepted and ${perSecond(429)} refused per second`)
  reportBroken([...judgeStarvation(result), ...judgeLatency(result)])
}
