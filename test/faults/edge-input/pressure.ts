/**
 * What hostile traffic costs good traffic: phases of good traffic alone and of the same beside
 * everything hostile at once, in turn, each with its own percentile.
 */

import { exchangeRaw } from '../../support/http/raw-http.ts'
import { percentile } from '../../support/process/percentile.ts'
import type { HostileCase } from '../../support/telemetry/raw-submissions.ts'
import type { TrafficResult } from './good-traffic.ts'
import { type Breach, type HostileRig, judgeAnswer } from './rig.ts'
import { openIdle, sendSlowly } from './slow-senders.ts'

export type Pressure = {
  /** p99 in ms of each phase; of one place the two followed one another. */
  alone: number[]
  beside: number[]
  /** Of good traffic that was not answered with a 200. */
  unwell: number
  hostile: number
  breaches: Breach[]
}

export type PressureOptions = {
  phases: number
  phaseMs: number
  goodPerSecond: number
  hostilePerSecond: number
  idleConnections: number
  /** Of each kind of slow sender. */
  slowEach: number
  random: () => number
}

/** What is drawn from at random: every family as often as any other. */
export type HostilePool = {
  families: readonly (readonly HostileCase[])[]
  /** What needs a connection of its own. */
  singles: readonly HostileCase[]
}

export async function measurePressure(
  rig: HostileRig,
  cases: HostilePool,
  options: PressureOptions,
): Promise<Pressure> {
  const result: Pressure = { alone: [], beside: [], unwell: 0, hostile: 0, breaches: [] }
  const measure = async (during: () => Promise<unknown>): Promise<number> => {
    rig.traffic.start(options.goodPerSecond)
    await during()
    const seen: TrafficResult = rig.note(await rig.traffic.stop())
    result.unwell += seen.latencies.length - (seen.statuses[200] ?? 0)
    return percentile(seen.latencies, 0.99)
  }
  const pause = () => new Promise((resolve) => setTimeout(resolve, options.phaseMs))
  // The first phase of an edge is not like the others.
  await measure(pause)
  for (let phase = 0; phase < options.phases; phase++) {
    result.alone.push(await measure(pause))
    const idle = await openIdle(rig.port, options.idleConnections)
    const over = new AbortController()
    const slowly = { each: options.slowEach, signal: over.signal }
    const slow = sendSlowly(rig.port, rig.tenants.acme, slowly)
    result.beside.push(await measure(() => attack(rig, cases, options, result)))
    idle.close()
    over.abort()
    await slow
  }
  return result
}

/** At its rate for the length of a phase, whatever comes back. */
async function attack(
  rig: HostileRig,
  cases: HostilePool,
  { phaseMs, hostilePerSecond, random }: PressureOptions,
  result: Pressure,
): Promise<void> {
  const open = new Set<Promise<void>>()
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]!
  const sendOne = async () => {
    if (random() < 0.1) {
      const one = pick(cases.singles)
      const { statuses } = await exchangeRaw(rig.port, [one.request], 1_000)
      if (statuses.includes(200) || statuses.includes(500)) {
        result.breaches.push({ family: one.family, name: one.name, got: statuses.join() })
      }
      return
    }
    const one = pick(pick(cases.families))
    const breach = judgeAnswer(one, await rig.client.send(one.request))
    if (breach !== null) result.breaches.push(breach)
  }
  const startMs = performance.now()
  for (let sent = 0; performance.now() - startMs < phaseMs; ) {
    while (startMs + (sent * 1_000) / hostilePerSecond <= performance.now()) {
      sent++
      result.hostile++
      const one: Promise<void> = sendOne().finally(() => open.delete(one))
      open.add(one)
    }
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await Promise.all(open)
}
