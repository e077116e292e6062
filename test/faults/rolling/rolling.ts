/**
 * `npm run faults -- rolling [--rounds 15] [--rate 200]`: two edges behind a balancer that polls
 * readiness are restarted one by one. Exits with 1 when a submission got anything but a 200, an
 * edge that starts refuses one, or an accepted event is not stored.
 */
import { describeCounts } from '../support/counts.ts'
import { describeTimes, print, readOptions, reportBroken } from '../support/drill.ts'
import { judgeRoll, rollEdges } from './roll-edges.ts'

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { rounds, rate } = readOptions(args, { rounds: 15, rate: 200 })
  const result = await rollEdges({ rounds, ratePerSecond: rate })
  const { restarts, outcomes, accepted, lost, connections } = result
  print(`${restarts.length} restarts; stops: ${describeTimes(restarts.map((one) => one.stopMs))}`)
  print(`submissions: ${describeCounts(outcomes)}; connections by edge: ${connections.join(', ')}`)
  print(`accepted: ${accepted}, not stored: ${lost}`)
  reportBroken(judgeRoll(result))
}
