/**
 * `npm run faults -- kills [--rate 500] [--each 40] [--seconds N] [--seed S]`: each of the eight
 * processes of a whole stack is killed so often with kill -9, at random moments under open load.
 * Prints what was killed, what that led to and what was read back; ends with status 1 when
 * anything accepted is lost or there twice, a history is not the client's, or nothing was hit.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { judgeBreaches } from '../support/stack-under-load/find-breaches.ts'
import { childNames } from '../support/stack-under-load/stack-children.ts'
import {
  judgeEvidence,
  type KillsResult,
  killUnderLoad,
} from '../support/stack-under-load/stack-under-load.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
/** Each child is left alone for eighteen seconds on average, and back after a few. */
const secondsPerKill = 2.25
/** From so many kills of each on, everything that a kill can lead to must have happened. */
const fullEach = 20

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rate: { type: 'string', default: '500' },
      each: { type: 'string', default: '40' },
      seconds: { type: 'string' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    },
  })
  const each = Number(values.each)
  const total = each * childNames.length
  const seconds = Number(values.seconds ?? total * secondsPerKill)
  const [rate, seed] = [Number(values.rate), Number(values.seed)]
  say(`${each} kills of each of ${childNames.length} processes in about ${Math.round(seconds)} s,`)
  say(`${rate} events/s, --seed ${seed}`)
  const result = await killUnderLoad({
    each,
    seconds,
    seed,
    ratePerSecond: rate,
    tenants: 3,
    eventsPerDevice: 12,
    onKill: ({ child, openEvents }, n) => {
      if (n % 8 === 0) say(`  ${n} kills, the last of ${child} with ${openEvents} events open`)
    },
    onStep: (line) => say(`  ${line}`),
  })
  reportKills(result)
  const broken = judgeBreaches(result.findings)
  for (const wrong of broken) say(`BROKEN: ${wrong}`)
  // Few kills need not meet everything: an ack is lost in a millisecond of each publish.
  const unseen = judgeEvidence(result.evidence, result.findings)
  for (const missing of unseen) say(`${each >= fullEach ? 'BROKEN' : 'note'}: ${missing}`)
  if (broken.length > 0 || (each >= fullEach && unseen.length > 0)) process.exitCode = 1
  else say('every promise held')
}

export const describeCounts = (counts: ReadonlyMap<string, number>) =>
  [...counts].map(([outcome, times]) => `${outcome}: ${times}`).join(', ')

/** Prints what was killed and what came of it. */
function reportKills({ kills, findings, evidence, ...result }: KillsResult): void {
  const perChild = childNames.map((child) => {
    const own = kills.filter((kill) => kill.child === child)
    return `${child} ${own.length}`
  })
  const busy = kills.filter((kill) => kill.openEvents > 0).length
  say(`killed: ${perChild.join(', ')}; ${busy} of ${kills.length} with events on their way`)
  say(`tries: ${describeCounts(result.outcomes)}`)
  say(`  events accepted after a try that ended unknown: ${evidence.resolved}`)
  say(`reads: ${describeCounts(result.reads)}; dispositions: ${describeCounts(result.changes)}`)
  const { scorer, decider, delivery } = evidence.redelivered
  say(`publishes tried again: ${evidence.retriedPublishes}`)
  say(`  found stored already, their ack was lost: ${evidence.duplicatePublishes}`)
  say(`delivered again: scorer ${scorer}, decider ${decider}, hints ${delivery}`)
  say(`alerts raised again that were there: ${evidence.alertsAgain}`)
  say(`accepted: ${findings.accepted}, in the stream more than once: ${findings.storedTwice}`)
  say(`alerts: ${findings.alerts}, webhooks: ${findings.webhooks}`)
  say(`  sent more than once: ${findings.webhooksAgain}, by Postgres ${findings.deliveriesAgain}`)
  say(`  refused by the receiver ${result.webhooks.failed}, cut by it ${result.webhooks.cut}`)
  say(`devices compared: ${findings.devices}; settled after ${Math.round(findings.settledMs)} ms`)
}
