/**
 * `npm run faults -- grow-cluster [--seed S] [--rate 20] [--calm 4] [--on-its-store |
 * --recover]`: from one nats-server to three under load, by the steps of deploy/cluster/README.md.
 * Exits with 1 when an accepted event is lost, an alert is missing or doubled, or the stages do not
 * agree. With `--on-its-store` it goes the way that loses: the single server becomes a member of
 * the cluster on its store. With `--recover` a copy of that store then brings back what was lost.
 */
import { count, describeCounts } from '../support/counts.ts'
import { print, randomSeed, readOptions, reportBroken, seconds } from '../support/drill.ts'
import { type Growth, runGrowth } from './run-growth.ts'

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const defaults = { seed: randomSeed(), rate: 20, calm: 4, 'on-its-store': false, recover: false }
  const options = readOptions(args, defaults)
  const { seed, rate, calm } = options
  print(`${rate} events/s, ${calm} s between steps, --seed ${seed}`)
  const growth = await runGrowth({
    seed,
    rate,
    calmMs: 1_000 * calm,
    way: options.recover ? 'recover' : options['on-its-store'] ? 'on-its-store' : 'readme',
    onStep: (what) => print(`  ${what}`),
  })
  report(growth)
  reportBroken(findBroken(growth))
}

function report({ tries, doubled, ...growth }: Growth): void {
  const statuses = new Map<number, number>()
  for (const { status } of tries) count(statuses, status)
  print(`tries by status (0: no answer): ${describeCounts(statuses)}`)
  print(
    `accepted ${growth.accepted} (edges count ${growth.counted}), decided ${growth.decided}, ` +
      `alerts ${growth.alerts}`,
  )
  print(
    `lost: events ${growth.lost}, alerts ${growth.alertsMissing}, ` +
      `webhooks ${growth.webhooksMissing}`,
  )
  print(`doubled: events ${doubled.events}, alerts ${doubled.alerts}, webhooks ${doubled.webhooks}`)
  print(`longest gap in acceptance: ${seconds(growth.longestGapMs)}`)
  print(`di reconcile: ${growth.agrees ? 'all agree' : 'they do not agree'}`)
}

/** Every broken guarantee. */
export function findBroken({ doubled, ...growth }: Growth): string[] {
  const checks: [boolean, string][] = [
    [growth.accepted === 0, 'nothing was accepted'],
    [growth.unaccepted > 0, `never accepted: ${growth.unaccepted}`],
    [growth.lost > 0, `accepted and lost: ${growth.lost}`],
    [growth.counted < growth.accepted, `edges count ${growth.counted} of ${growth.accepted}`],
    [growth.decided < growth.accepted, `${growth.decided} of ${growth.accepted} are decided`],
    [growth.alerts === 0, 'there is no alert'],
    [growth.alertsMissing > 0, `alerts missing: ${growth.alertsMissing}`],
    [growth.webhooksMissing > 0, `webhooks missing: ${growth.webhooksMissing}`],
    [doubled.events > 0, `events twice: ${doubled.events}`],
    [doubled.alerts > 0, `alerts twice: ${doubled.alerts}`],
    [growth.seqGaps > 0, `gaps in seq: ${growth.seqGaps}`],
    [!growth.agrees, 'di reconcile does not agree'],
  ]
  return checks.filter(([isBroken]) => isBroken).map(([, line]) => line)
}
