/**
 * `npm run faults -- outages [--seed S] [--only NAME,NAME] [--scale 1] [--rate 250]`: the service
 * under steady load while nats-server hangs, Postgres or ClickHouse is down, the stream or the disk
 * of a server is full, and two of these at once. Prints the effect of each outage and the recovery.
 * Exits with 1 when a 200 was false, a refusal slow, readiness wrong, or anything lost or
 * duplicated. Full disks need root.
 */
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import {
  describeTimes,
  print,
  randomSeed,
  readOptions,
  reportBroken,
  seconds,
} from '../support/drill.ts'
import {
  judgeFindings,
  judgeOutage,
  quietBounds,
  submissionsOf,
  toReadinessTimes,
} from './judge-outage.ts'
import type { Call } from './load.ts'
import { bothOf, type Outage, outages, pairs } from './outage-kinds.ts'
import { type InjectedOutage, type OutagesResult, runOutages } from './run-outages.ts'

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { seed: randomSeed(), only: '', scale: 1, rate: 250 })
  const { seed, scale } = options
  const chosen = chooseOutages(seed, options.only.split(',').filter(Boolean))
  print(`${chosen.map(({ name }) => name).join(', ')}: scale ${scale}, --seed ${seed}`)
  const broken: string[] = []
  const result = await runOutages({
    outages: chosen,
    scale,
    ratePerSecond: options.rate,
    calmMs: 6_000,
    readyWithinMs: quietBounds.truthMs,
    onOutage: (injected, seen) => {
      reportOutage(injected, seen)
      const wrong = judgeOutage(injected, seen, quietBounds)
      for (const line of wrong) print(`  BROKEN: ${line}`)
      broken.push(...wrong)
    },
  })
  reportFindings(result)
  broken.push(...judgeFindings(result.findings))
  reportBroken(broken)
}

/** All outages and a random pair, or those of `--only`, where `two` is the pair. */
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
  injected: InjectedOutage,
  { calls, probes }: Pick<OutagesResult, 'calls' | 'probes'>,
) {
  const { outage, begunMs, endedMs, recoveredMs, drainedMs, lag, restarts, filledBytes } = injected
  print(`${outage.name} for ${seconds(endedMs - begunMs)}`)
  const own = submissionsOf(injected, calls)
  print(`  submissions: ${toOutcomes(own)}; refusals took ${toTimes(own, 'refused')}`)
  for (const kind of ['alerts', 'device'] as const) {
    const reads = calls.filter(
      (call) => call.kind === kind && call.begunMs > begunMs && call.begunMs < endedMs,
    )
    print(`  calls for ${kind}: ${toOutcomes(reads)}; refusals took ${toTimes(reads, 'refused')}`)
  }
  for (const { name, downMs, upMs } of toReadinessTimes(injected, probes)) {
    if (downMs === null && upMs === null) continue
    const down = downMs === null ? 'ready throughout' : `not ready after ${seconds(downMs)}`
    const up = upMs === null ? 'ready at the recovery' : `last not ready ${seconds(upMs)} after`
    print(`  ${name}: ${down}, ${up}`)
  }
  if (filledBytes > 0) print(`  disk: filled by ${Math.round(filledBytes / 1024 ** 2)} MB`)
  const started = Object.entries(restarts).filter(([, times]) => times > 0)
  if (started.length > 0) {
    const times = started.map(([name, count]) => `${name} ${count}`).join(', ')
    print(`  restarted by the supervisor: ${times}`)
  }
  const drained = seconds(drainedMs - recoveredMs)
  print(
    `  recovered ${seconds(recoveredMs - endedMs)} later; ${lag} messages waited, none after ${drained}`,
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
  return took.length === 0 ? 'no time' : describeTimes(took)
}

function reportFindings({ findings, calls }: OutagesResult): void {
  const again = calls.filter(({ kind }) => kind === 'again')
  print(`sent: ${findings.sent}, accepted: ${findings.accepted}`)
  print(`  sent again with the same bytes: ${again.length} (${toOutcomes(again)})`)
  print(
    `  accepted and not stored: ${findings.notStored.length}, twice: ${findings.storedTwice.length}`,
  )
  print(`  stored without a 200: ${findings.storedUnaccepted}`)
  print(`  devices with a wrong history: ${findings.wrongHistory.length}`)
  print(`alerts: ${findings.alerts}, missing: ${findings.withoutAlert.length}`)
  print(`  twice: ${findings.withTwoAlerts.length}, gaps in seq: ${findings.seqGaps}`)
  print(`webhooks: ${findings.webhooks}, alerts without: ${findings.notDelivered.length}`)
}
