/**
 * The effect of hostile traffic on good traffic: phases of good traffic alone alternate with phases
 * beside all hostile traffic; each has its own p99.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { startOpenLoop } from '../../support/http/open-loop.ts'
import { exchangeRaw } from '../../support/http/raw-http.ts'
import { percentile } from '../../support/process/percentile.ts'
import type { HostileCase } from '../../support/telemetry/raw-submissions.ts'
import type { TrafficResult } from './good-traffic.ts'
import { type Breach, type HostileRig, judgeAnswer } from './rig.ts'
import { openIdle, sendSlowly } from './slow-senders.ts'

export type Pressure = {
  /** p99 in ms of each phase; `alone[n]` came just before `beside[n]`. */
  alone: number[]
  beside: number[]
  /** Good requests without a 200. */
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

/** The cases to draw from; each family is as likely as any other. */
export type HostilePool = {
  families: readonly (readonly HostileCase[])[]
  /** Cases with a connection of their own. */
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
  const waitPhase = () => pause(options.phaseMs)
  // The first phase warms the edge up.
  await measure(waitPhase)
  for (let phase = 0; phase < options.phases; phase++) {
    result.alone.push(await measure(waitPhase))
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

/** Sends hostile requests at a constant rate for the length of a phase. */
async function attack(
  rig: HostileRig,
  cases: HostilePool,
  { phaseMs, hostilePerSecond, random }: PressureOptions,
  result: Pressure,
): Promise<void> {
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
  const loop = startOpenLoop(hostilePerSecond, () => {
    result.hostile++
    return sendOne()
  })
  await pause(phaseMs)
  await loop.stop()
}
