/**
 * `npm run faults -- outages [--seed S] [--only NAME,NAME] [--scale 1] [--rate 250]`: the service
 * under steady load while nats-server is paused, Postgres or ClickHouse is down, the stream is
 * full, the disk under each of them is full, and two of these at once. Prints for each how it bit
 * and how all recovered, without anybody's help; ends with status 1 when a 200 was false, a refusal
 * slow, readiness not the truth, or anything lost or there twice. Full disks need root, to mount
 * them.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { createRandom } from '../../../services/fleet/phones/random.ts'
import { percentile } from '../../support/process/percentile.ts'
import { judgeFindings, judgeOutage, submissionsOf, toTruths } from './judge-outage.ts'
import type { Call } from './load.ts'
import { bothOf, type Outage, outages, pairs } from './outage-kinds.ts'
import { type OutagesResult, runOutages, type Suffered } from './run-outages.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      only: { type: 'string', default: '' },
      scale: { type: 'string', default: '1' },
      rate: { type: 'string', default: '250' },
    },
  })
  const chosen = chooseOutages(Number(values.seed), values.only.split(',').filter(Boolean))
  say(`${chosen.map(({ name }) => name).join(', ')}: scale ${values.scale}, --seed ${values.seed}`)
  const broken: string[] = []
  const result = await runOutages({
    outages: chosen,
    scale: Number(values.scale),
    ratePerSecond: Number(values.rate),
    calmMs: 6_000,
    onOutage: (suffered, seen) => {
      reportOutage(suffered, seen)
      const wrong = judgeOutage(suffered, seen)
      for (const line of wrong) say(`  BROKEN: ${line}`)
      broken.push(...wrong)
    },
  })
  reportFindings(result)
  broken.push(...judgeFindings(result.findings))
  for (const line of broken) say(`BROKEN: ${line}`)
  if (broken.length > 0) process.exitCode = 1
  else say('every promise held')
}

/** Each of them, and a pair of this seed's own; or those asked for, `two` being the pair. */
function chooseOutages(seed: number, only: readonly string[]): Outage[] {
  const chance = createRandom(seed, 'outages')
  const [first, second] = pairs[chance.int(0, pairs.length - 1)]!
  const named = (name: string) => {
    const found = outages.find((outage) => outage.name === name)
    if (found === undefined) throw new Error(`there is no outage "${name}"`)
    return found
  }
  const two = bothOf(named(first), named(second), chance.int(100, 2_000))
  if (only.length === 0) return [...outages, two]
  return only.map((name) => (name === 'two' ? two : named(name)))
}

function reportOutage(
  suffered: Suffered,
  { calls, probes }: Pick<OutagesResult, 'calls' | 'probes'>,
) {
  const { outage, begunMs, endedMs, recoveredMs, drainedMs, lag, restarts, taken } = suffered
  say(`${outage.name} for ${seconds(endedMs - begunMs)}`)
  const own = submissionsOf(suffered, calls)
  say(`  submissions: ${toOutcomes(own)}; refusals took ${toTimes(own, 'refused')}`)
  for (const kind of ['alerts', 'device'] as const) {
    const reads = calls.filter(
      (call) => call.kind === kind && call.begunMs > begunMs && call.begunMs < endedMs,
    )
    say(`  calls for ${kind}: ${toOutcomes(reads)}; refusals took ${toTimes(reads, 'refused')}`)
  }
  for (const { name, downMs, upMs } of toTruths(suffered, probes)) {
    if (downMs === null && upMs === null) continue
    const down = downMs === null ? 'ready throughout' : `not ready after ${seconds(downMs)}`
    const up = upMs === null ? 'ready as it was over' : `last not ready ${seconds(upMs)} after`
    say(`  ${name}: ${down}, ${up}`)
  }
  if (taken > 0) say(`  disk: ${Math.round(taken / 1024 ** 2)} MB taken`)
  const started = Object.entries(restarts).filter(([, times]) => times > 0)
  if (started.length > 0) {
    const times = started.map(([name, count]) => `${name} ${count}`).join(', ')
    say(`  started again by the supervisor: ${times}`)
  }
  const drained = seconds(drainedMs - recoveredMs)
  say(
    `  over ${seconds(recoveredMs - endedMs)} later; ${lag} messages waited, none after ${drained}`,
  )
}

function toOutcomes(calls: readonly Call[]): string {
  const groups = Map.groupBy(calls, ({ outcome, status }) =>
    outcome === 'refused' ? `refused (${status})` : outcome,
  )
  return [...groups].map(([outcome, of]) => `${outcome} ${of.length}`).join(', ') || 'none'
}

function toTimes(calls: readonly Call[], outcome: Call['outcome']): string {
  const took = calls.filter((call) => call.outcome === outcome).map(({ tookMs }) => tookMs)
  if (took.length === 0) return 'no time'
  const [p50, p99, max] = [0.5, 0.99, 1].map((rank) => Math.round(percentile(took, rank)))
  return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`
}

function reportFindings({ findings, calls }: OutagesResult): void {
  const again = calls.filter(({ kind }) => kind === 'again')
  say(`sent: ${findings.sent}, accepted: ${findings.accepted}`)
  say(`  sent again with the same bytes: ${again.length} (${toOutcomes(again)})`)
  say(
    `  accepted and not stored: ${findings.notStored.length}, twice: ${findings.storedTwice.length}`,
  )
  say(`  stored though not answered with a 200: ${findings.storedUnaccepted}`)
  say(`  devices with a wrong history: ${findings.wrongHistory.length}`)
  say(`alerts: ${findings.alerts}, missing: ${findings.withoutAlert.length}`)
  say(`  twice: ${findings.withTwoAlerts.length}, gaps in seq: ${findings.seqGaps}`)
  say(`webhooks: ${findings.webhooks}, alerts without: ${findings.notDelivered.length}`)
}
