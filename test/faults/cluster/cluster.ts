/**
 * `npm run faults -- cluster [--seed S] [--seconds 300] [--rate 100]`: the service on three
 * nats-servers, configured by the very file that deploy/cluster/ ships, under load from clients
 * that never give up, while the server that leads the telemetry stream is killed or cut off, one
 * that follows is, or two are killed. Prints what clients saw and what is stored; ends with status
 * 1 when an accepted event is missing anywhere, an alert is missing or there twice, an edge was
 * slow to refuse, or the faults did not bite.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { createRandom } from '../../../services/fleet/phones/random.ts'
import { percentile } from '../../support/process/percentile.ts'
import { type ClusterFault, clusterFaults, type Suffered } from './faults.ts'
import { type ClusterRun, runCluster } from './run-cluster.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

/** What one fault, its recovery and the calm before it take, about. */
const faultSeconds = 28
const calmMs = 3_000

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      seconds: { type: 'string', default: '300' },
      rate: { type: 'string', default: '100' },
    },
  })
  const seed = Number(values.seed)
  say(`about ${values.seconds} s at ${values.rate} events/s, --seed ${seed}`)
  const faults = planFaults(Math.max(1, Math.round(Number(values.seconds) / faultSeconds)), seed)
  const result = await runCluster({
    seed,
    faults,
    calmMs,
    rate: Number(values.rate),
    onFault: (one) => say(`  ${describe(one)}`),
  })
  report(result)
  const broken = findBroken(result)
  for (const line of broken) say(`BROKEN: ${line}`)
  if (broken.length > 0) process.exitCode = 1
}

/** Each kind in turn, for eight to sixteen seconds: longer than an election takes. */
function planFaults(count: number, seed: number): { fault: ClusterFault; lastsMs: number }[] {
  const chance = createRandom(seed, 'plan')
  return Array.from({ length: count }, (_, at) => ({
    fault: clusterFaults[at % clusterFaults.length]!,
    lastsMs: chance.int(8_000, 16_000),
  }))
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

function describe({ fault, begunMs, undoneMs, endedMs, ...one }: Suffered): string {
  const leader = `leader ${one.leaderBefore} -> ${one.leaderAfter}`
  const lasted = `for ${seconds(undoneMs - begunMs)}, well again ${seconds(endedMs - undoneMs)} later`
  return `${fault} ${lasted}; ${leader}; edges on it: ${one.edgesOnIt}`
}

function report(result: ClusterRun): void {
  const { findings, tries } = result
  const counts = new Map<number, number>()
  for (const { status } of tries) counts.set(status, (counts.get(status) ?? 0) + 1)
  const answers = [...counts].sort(([a], [b]) => a - b).map(([status, n]) => `${status}: ${n}`)
  say(`events: ${result.events}, tries: ${tries.length} (${answers.join(', ')})`)
  say(`a 503 took ${toTimes(tries.filter(({ status }) => status === 503))}`)
  say(`a 200 took ${toTimes(tries.filter(({ status }) => status === 200))}`)
  for (const one of result.suffered) say(`  ${one.fault}: refused for ${toRefused(one, tries)}`)
  say(`leaders changed: ${result.leaderChanges} of ${result.suffered.length} faults`)
  say(
    `publishes tried again: ${result.retriedPublishes}, of which stored already: ` +
      `${result.duplicatePublishes}; messages delivered again: ${result.redeliveries}`,
  )
  say(`rotation afterwards: ${Math.round(result.rotationMs)} ms`)
  say(`accepted: ${findings.accepted}, never accepted: ${findings.unaccepted}`)
  say(`  not in the stream: ${findings.notInStream.length}`)
  say(`  not in ClickHouse: ${findings.notInClickhouse.length}`)
  say(`  in two messages, as sent again after no 200: ${findings.storedTwice}`)
  say(
    `alerts missing: ${findings.alertMissing.length}, twice: ${findings.alertTwice.length}, ` +
      `unknown: ${findings.alertUnknown.length}, gaps in seq: ${findings.seqGaps}`,
  )
}

function toTimes(tries: readonly { tookMs: number }[]): string {
  const took = tries.map(({ tookMs }) => tookMs)
  const [p50, p99, max] = [0.5, 0.99, 1].map((rank) => Math.round(percentile(took, rank)))
  return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms (n ${took.length})`
}

/** From the first refusal of a fault to the last, over all edges. */
function toRefused({ begunMs, endedMs }: Suffered, tries: ClusterRun['tries']): string {
  const refused = tries.filter(
    (one) => one.status !== 200 && one.begunMs >= begunMs && one.begunMs <= endedMs,
  )
  if (refused.length === 0) return 'no time'
  const first = Math.min(...refused.map((one) => one.begunMs))
  const last = Math.max(...refused.map((one) => one.begunMs + one.tookMs))
  return `${seconds(last - first)} (${refused.length} tries)`
}

/** Two seconds of publishing, and a second for a machine that has other work. */
const refusedWithinMs = 3_000

/** Every promise that a run broke, and every fault that did not bite. */
export function findBroken(result: ClusterRun): string[] {
  const { findings, suffered, tries } = result
  const refused = tries.filter(({ status }) => status === 503).map(({ tookMs }) => tookMs)
  const slowest = percentile(refused, 0.99)
  const led = suffered.filter(({ fault }) => /leader|two/.test(fault)).length
  const laws: [boolean, string][] = [
    [findings.notInStream.length > 0, `accepted and lost: ${findings.notInStream.length}`],
    [findings.notInClickhouse.length > 0, `not in ClickHouse: ${findings.notInClickhouse.length}`],
    [findings.alertMissing.length > 0, `alerts missing: ${findings.alertMissing.length}`],
    [findings.alertTwice.length > 0, `alerts twice: ${findings.alertTwice.length}`],
    [findings.alertUnknown.length > 0, `alerts of nothing: ${findings.alertUnknown.length}`],
    [findings.seqGaps > 0, `gaps in seq: ${findings.seqGaps}`],
    [findings.unaccepted > 0, `edges did not recover: ${findings.unaccepted} never accepted`],
    [slowest > refusedWithinMs, `a 503 took ${Math.round(slowest)} ms`],
    [tries.some(({ status }) => ![0, 200, 503].includes(status)), 'an answer of another kind'],
    [led > 0 && result.leaderChanges === 0, 'no leader ever changed: the faults did not bite'],
    [led > 0 && result.retriedPublishes === 0, 'no publish was ever tried again'],
    [findings.accepted === 0, 'nothing was accepted'],
  ]
  return laws.filter(([isBroken]) => isBroken).map(([, line]) => line)
}
