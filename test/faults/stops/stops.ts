/**
 * `npm run faults -- stops [--each 50] [--seed S]`: each of the five processes gets `each` SIGTERMs
 * under load, while requests lack their last byte. Exits with 1 when such a request got no
 * response, a process did not stop in order within ten seconds, or anything accepted is lost or
 * duplicated.
 */
import { SERVICE_NAMES } from '../../../deploy/local/stack/settings.ts'
import { percentile } from '../../support/process/percentile.ts'
import { describeCounts } from '../support/counts.ts'
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'
import { judgeFindings, judgeStop, type StopsResult, stopUnderLoad } from './run-stops.ts'

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { each, seed } = readOptions(args, { each: 50, seed: randomSeed() })
  print(`${each} stops of each process, --seed ${seed}`)
  let done = 0
  const result = await stopUnderLoad({
    each,
    ratePerSecond: 60,
    receiverMs: 1_500,
    silentShare: 0.25,
    seed,
    onStop: (stop) => {
      done++
      for (const wrong of judgeStop(stop)) print(`  stop ${done}: ${wrong}`)
      if (done % 25 === 0) print(`  ${done} stops`)
    },
  })
  reportStops(result)
  reportBroken([...result.stops.flatMap(judgeStop), ...judgeFindings(result.findings)])
}

function reportStops({ stops, findings, load, webhooks, created }: StopsResult): void {
  for (const name of SERVICE_NAMES) {
    const own = stops.filter((stop) => stop.name === name)
    const took = own.map(({ ended }) => ended.tookMs)
    const [median, most] = [percentile(took, 0.5), percentile(took, 1)].map(Math.round)
    const unfinished = own.flatMap(({ answers }) => answers)
    const statuses = [...Map.groupBy(unfinished, ({ status }) => String(status))]
    const silent = own.filter((stop) => stop.silent).length
    const codes = [...new Set(own.map(({ ended }) => ended.code ?? ended.signal))]
    print(`${name}: ${own.length} stops, exit ${codes.join(', ')}, median ${median} ms, at most`)
    print(
      `  ${most} ms; ${unfinished.length} requests whose last byte came after the signal, answered`,
    )
    print(`  ${describeCounts(new Map(statuses.map(([status, of]) => [status, of.length])))}`)
    print(`  beside ${silent} requests that were never finished`)
  }
  // The kernel accepts connections for a process that closes its listener, so some are closed
  // before a process has read them.
  print(`submissions: ${describeCounts(load.outcomes)}`)
  print(`reads: ${describeCounts(load.reads)}`)
  print(`accepted: ${load.accepted.size}, not stored: ${findings.notStored.length}`)
  print(`  stored without a 200 that arrived: ${findings.unanswered}`)
  print(`alerts: ${findings.alerts}, sessions with none: ${findings.withoutAlert.length}`)
  print(`  with two: ${findings.withTwoAlerts.length}; gaps in seq: ${findings.seqGaps}`)
  print(`webhooks: ${webhooks}; alerts without: ${findings.notDelivered.length}`)
  print(
    `  sent twice: ${findings.deliveredTwice.length}; not at the first attempt: ${findings.retried}`,
  )
  print(`tenants created: ${created}, of these missing: ${findings.tenantsLost.length}`)
}
