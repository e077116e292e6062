/**
 * `npm run faults -- stops [--each 50] [--seed S]`: each of the five processes is asked to end so
 * many times under load, with requests that lack their last byte. Prints how they ended and what
 * became of everything; ends with status 1 when a request that was begun got no answer, a process
 * did not end in order within ten seconds, or anything accepted is lost or there twice.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { percentile } from '../../support/process/percentile.ts'
import { serviceNames } from './rig.ts'
import { judgeFindings, judgeStop, type StopsResult, stopUnderLoad } from './run-stops.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      each: { type: 'string', default: '50' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    },
  })
  const each = Number(values.each)
  say(`${each} stops of each process, --seed ${values.seed}`)
  let done = 0
  const result = await stopUnderLoad({
    each,
    ratePerSecond: 60,
    receiverMs: 1_500,
    silentShare: 0.25,
    seed: Number(values.seed),
    onStop: (stop) => {
      done++
      for (const wrong of judgeStop(stop)) say(`  stop ${done}: ${wrong}`)
      if (done % 25 === 0) say(`  ${done} stops`)
    },
  })
  reportStops(result)
  const broken = [...result.stops.flatMap(judgeStop), ...judgeFindings(result.findings)]
  for (const wrong of broken) say(`BROKEN: ${wrong}`)
  if (broken.length > 0) process.exitCode = 1
  else say('every promise held')
}

const describe = (counts: ReadonlyMap<string, number>) =>
  [...counts].map(([outcome, times]) => `${outcome}: ${times}`).join(', ')

function reportStops({ stops, findings, load, webhooks, created }: StopsResult): void {
  for (const name of serviceNames) {
    const own = stops.filter((stop) => stop.name === name)
    const took = own.map(({ ended }) => ended.tookMs)
    const [median, most] = [percentile(took, 0.5), percentile(took, 1)].map(Math.round)
    const held = own.flatMap(({ answers }) => answers)
    const statuses = [...Map.groupBy(held, ({ status }) => String(status))]
    const silent = own.filter((stop) => stop.silent).length
    const codes = [...new Set(own.map(({ ended }) => ended.code ?? ended.signal))]
    say(`${name}: ${own.length} stops, exit ${codes.join(', ')}, median ${median} ms, at most`)
    say(`  ${most} ms; ${held.length} requests whose last byte came after the signal, answered`)
    say(`  ${describe(new Map(statuses.map(([status, of]) => [status, of.length])))}`)
    say(`  beside ${silent} requests that were never finished`)
  }
  // A reset one had a connection, but as far as anybody knows no process had read any of it: the
  // kernel accepts for a process that closes its listener. All were sent again and taken.
  say(`submissions: ${describe(load.outcomes)}`)
  say(`reads: ${describe(load.reads)}`)
  say(`accepted: ${load.accepted.size}, not stored: ${findings.notStored.length}`)
  say(`  stored without an answer that arrived: ${findings.unanswered}`)
  say(`alerts: ${findings.alerts}, sessions with none: ${findings.withoutAlert.length}`)
  say(`  with two: ${findings.withTwoAlerts.length}; gaps in seq: ${findings.seqGaps}`)
  say(`webhooks: ${webhooks}; alerts without: ${findings.notDelivered.length}`)
  say(`  sent twice: ${findings.deliveredTwice.length}; not at once: ${findings.retried}`)
  say(`tenants created: ${created}, of these missing: ${findings.tenantsLost.length}`)
}
