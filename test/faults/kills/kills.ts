/**
 * `npm run faults -- kills [--rate 500] [--each 40] [--seconds N] [--seed S]`: each of the eight
 * processes of a stack is killed with kill -9 `each` times, at random moments under load. Exits
 * with 1 when anything accepted is lost or duplicated, a history differs from the client's, or the
 * kills had no effect.
 */
import { describeCounts } from '../support/counts.ts'
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'
import { judgeBreaches } from '../support/stack-under-load/find-breaches.ts'
import { childNames } from '../support/stack-under-load/stack-children.ts'
import {
  judgeEvidence,
  type KillsResult,
  killUnderLoad,
} from '../support/stack-under-load/stack-under-load.ts'

/** Each child runs for 18 s between two kills on average; a restart takes a few. */
const secondsPerKill = 2.25
/** From this number of kills each, every effect of a kill must have occurred. */
const fullEach = 20

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { rate: 500, each: 40, seconds: 0, seed: randomSeed() })
  const { rate, each, seed } = options
  const total = each * childNames.length
  const seconds = options.seconds || total * secondsPerKill
  print(
    `${each} kills of each of ${childNames.length} processes in about ${Math.round(seconds)} s,`,
  )
  print(`${rate} events/s, --seed ${seed}`)
  const result = await killUnderLoad({
    each,
    seconds,
    seed,
    ratePerSecond: rate,
    tenants: 3,
    eventsPerDevice: 12,
    onKill: ({ child, openEvents }, n) => {
      if (n % 8 === 0) print(`  ${n} kills, the last of ${child} with ${openEvents} events open`)
    },
    onStep: (line) => print(`  ${line}`),
  })
  reportKills(result)
  // A few kills need not have every effect: an acknowledgement is lost only within a millisecond of
  // a publish.
  const isFull = each >= fullEach
  const missing = judgeEvidence(result.evidence, result.findings)
  if (!isFull) for (const effect of missing) print(`note: ${effect}`)
  reportBroken([...judgeBreaches(result.findings), ...(isFull ? missing : [])])
}

/** Prints the kills and their effects. */
function reportKills({ kills, findings, evidence, ...result }: KillsResult): void {
  const perChild = childNames.map((child) => {
    const own = kills.filter((kill) => kill.child === child)
    return `${child} ${own.length}`
  })
  const busy = kills.filter((kill) => kill.openEvents > 0).length
  print(`killed: ${perChild.join(', ')}; ${busy} of ${kills.length} with events under way`)
  print(`tries: ${describeCounts(result.outcomes)}`)
  print(`  events accepted after a try with an unknown outcome: ${evidence.resolved}`)
  print(`reads: ${describeCounts(result.reads)}; dispositions: ${describeCounts(result.changes)}`)
  const { scorer, decider, delivery } = evidence.redelivered
  print(`publishes retried: ${evidence.retriedPublishes}`)
  print(`  already stored, because their ack was lost: ${evidence.duplicatePublishes}`)
  print(`redelivered: scorer ${scorer}, decider ${decider}, hints ${delivery}`)
  print(`alerts raised again that existed: ${evidence.alertsAgain}`)
  print(`accepted: ${findings.accepted}, in the stream more than once: ${findings.storedTwice}`)
  print(`alerts: ${findings.alerts}, webhooks: ${findings.webhooks}`)
  print(`  sent more than once: ${findings.webhooksAgain}, by Postgres ${findings.deliveriesAgain}`)
  print(`  failed by the receiver ${result.webhooksFailed}`)
  print(`devices compared: ${findings.devices}; settled after ${Math.round(findings.settledMs)} ms`)
}
