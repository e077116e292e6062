/**
 * `npm run faults -- cluster [--seed S] [--seconds 300] [--rate 100]`: the service on three
 * nats-servers with the configuration of deploy/cluster/, under load. The leader of the telemetry
 * stream or a follower is killed or cut off, or two servers are killed. Exits with 1 when an
 * accepted event or an alert is missing, an alert is duplicated, a refusal is slow, or the faults
 * had no effect.
 */
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { percentile } from '../../support/process/percentile.ts'
import { count, describeCounts } from '../support/counts.ts'
import {
  describeTimes,
  print,
  randomSeed,
  readOptions,
  reportBroken,
  seconds,
} from '../support/drill.ts'
import { type ClusterFault, clusterFaults, type InjectedFault } from './faults.ts'
import { type ClusterRun, runCluster } from './run-cluster.ts'

/** Approximate duration of one fault, its recovery and the calm before it. */
const faultSeconds = 28
const calmMs = 3_000

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { seed: randomSeed(), seconds: 300, rate: 100 })
  const { seed, rate } = options
  print(`about ${options.seconds} s at ${rate} events/s, --seed ${seed}`)
  const result = await runCluster({
    seed,
    rate,
    calmMs,
    faults: planFaults(Math.max(1, Math.round(options.seconds / faultSeconds)), seed),
    onFault: (one) => print(`  ${describe(one)}`),
  })
  report(result)
  reportBroken(findBroken(result))
}

/** Each kind in turn, for eight to sixteen seconds: longer than an election takes. */
function planFaults(count: number, seed: number): { fault: ClusterFault; lastsMs: number }[] {
  const chance = createRandom(seed, 'plan')
  return Array.from({ length: count }, (_, at) => ({
    fault: clusterFaults[at % clusterFaults.length]!,
    lastsMs: chance.int(8_000, 16_000),
  }))
}

function describe({ fault, begunMs, revertedMs, endedMs, ...one }: InjectedFault): string {
  const leader = `leader ${one.leaderBefore} -> ${one.leaderAfter}`
  const lasted = `for ${seconds(revertedMs - begunMs)}, recovered ${seconds(endedMs - revertedMs)} later`
  return `${fault} ${lasted}; ${leader}; edges on it: ${one.edgesOnIt}`
}

function report(result: ClusterRun): void {
  const { findings, tries } = result
  const statuses = new Map<number, number>()
  for (const { status } of tries) count(statuses, status)
  print(`events: ${result.events}, tries: ${tries.length} (${describeCounts(statuses)})`)
  print(`a 503 took ${toTimes(tries.filter(({ status }) => status === 503))}`)
  print(`a 200 took ${toTimes(tries.filter(({ status }) => status === 200))}`)
  for (const one of result.injected) print(`  ${one.fault}: refused for ${toRefused(one, tries)}`)
  print(`leaders changed: ${result.leaderChanges} of ${result.injected.length} faults`)
  print(
    `publishes retried: ${result.retriedPublishes}, of which already stored: ` +
      `${result.duplicatePublishes}; messages redelivered: ${result.redeliveries}`,
  )
  print(`rotation afterwards: ${Math.round(result.rotationMs)} ms`)
  print(`accepted: ${findings.accepted}, never accepted: ${findings.unaccepted}`)
  print(`  not in the stream: ${findings.notInStream.length}`)
  print(`  not in ClickHouse: ${findings.notInClickhouse.length}`)
  print(`  in two messages, because the client had no 200: ${findings.storedTwice}`)
  print(
    `alerts missing: ${findings.alertMissing.length}, twice: ${findings.alertTwice.length}, ` +
      `unknown: ${findings.alertUnknown.length}, gaps in seq: ${findings.seqGaps}`,
  )
}

function toTimes(tries: readonly { tookMs: number }[]): string {
  return `${describeTimes(tries.map(({ tookMs }) => tookMs))} (n ${tries.length})`
}

/** From the first to the last refusal during a fault, over all edges. */
function toRefused({ begunMs, endedMs }: InjectedFault, tries: ClusterRun['tries']): string {
  const refused = tries.filter(
    (one) => one.status !== 200 && one.begunMs >= begunMs && one.begunMs <= endedMs,
  )
  if (refused.length === 0) return 'no time'
  const first = Math.min(...refused.map((one) => one.begunMs))
  const last = Math.max(...refused.map((one) => one.begunMs + one.tookMs))
  return `${seconds(last - first)} (${refused.length} tries)`
}

/** Two seconds of publishing, and a second for a busy machine. */
const refusedWithinMs = 3_000

/** Every broken guarantee, and every fault without effect. */
export function findBroken(result: ClusterRun): string[] {
  const { findings, injected, tries } = result
  const refused = tries.filter(({ status }) => status === 503).map(({ tookMs }) => tookMs)
  const slowest = percentile(refused, 0.99)
  const led = injected.filter(({ fault }) => /leader|two/.test(fault)).length
  const checks: [boolean, string][] = [
    [findings.notInStream.length > 0, `accepted and lost: ${findings.notInStream.length}`],
    [findings.notInClickhouse.length > 0, `not in ClickHouse: ${findings.notInClickhouse.length}`],
    [findings.alertMissing.length > 0, `alerts missing: ${findings.alertMissing.length}`],
    [findings.alertTwice.length > 0, `alerts twice: ${findings.alertTwice.length}`],
    [findings.alertUnknown.length > 0, `alerts of no event: ${findings.alertUnknown.length}`],
    [result.putBacks > 0, 'the stream was taken for one that was put back'],
    [findings.seqGaps > 0, `gaps in seq: ${findings.seqGaps}`],
    [findings.unaccepted > 0, `edges did not recover: ${findings.unaccepted} never accepted`],
    [slowest > refusedWithinMs, `a 503 took ${Math.round(slowest)} ms`],
    [
      tries.some(({ status }) => ![0, 200, 503].includes(status)),
      'a response other than 200 and 503',
    ],
    [led > 0 && result.leaderChanges === 0, 'no leader ever changed: the faults had no effect'],
    [led > 0 && result.retriedPublishes === 0, 'no publish was ever retried'],
    [findings.accepted === 0, 'nothing was accepted'],
  ]
  return checks.filter(([isBroken]) => isBroken).map(([, line]) => line)
}
