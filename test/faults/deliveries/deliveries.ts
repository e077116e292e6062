/**
 * `npm run faults -- deliveries [--alerts 100000] [--kills 50] [--tenants 20] [--processes 1]
 * [--seed K]`: alerts to a receiver that fails, hangs, resets and answers slowly three times in
 * ten, while the delivery process is killed again and again. Prints what was found; ends with
 * status 1 when a promise was broken, or when too little happened to prove anything.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { type Breaches, checkDeliveries, type Findings } from './check-deliveries.ts'
import { deliverUnderKills, type UnderKills } from './deliver-under-kills.ts'
import { fullShares, receiverFaults } from './receiver-faults.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

const promises: Record<keyof Breaches, string> = {
  missing: 'alerts without a 2xx',
  undelivered: 'deliveries that did not end as delivered',
  otherBytes: 'requests with other bytes than those of their delivery id',
  forged: 'requests whose signatures do not verify',
  decreasing: 'requests with a lower attempt number than one before',
  gaps: 'deliveries whose recorded attempts have a gap or go on after a 2xx',
  unfounded: 'recorded attempts that no request explains',
  unrecorded: 'requests whose attempt number was never recorded',
  unexplained: 'attempts sent again though no kill had orphaned them',
  afterSuccess: 'requests after a success that no kill had orphaned',
}

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      alerts: { type: 'string', default: '100000' },
      kills: { type: 'string', default: '50' },
      tenants: { type: 'string', default: '20' },
      processes: { type: 'string', default: '1' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    },
  })
  const [alerts, kills, tenants, processes, seed] = [
    ...[values.alerts, values.kills, values.tenants, values.processes, values.seed],
  ].map(Number) as [number, number, number, number, number]
  say(
    `${alerts} alerts of ${tenants} tenants, ${kills} kills, ${processes} process, --seed ${seed}`,
  )
  const shares = receiverFaults.map((fault) => `${fault} ${percent(fullShares[fault])}`)
  say(`the receiver: ${shares.join(', ')}`)
  const startedMs = performance.now()
  const result = await deliverUnderKills({
    alerts,
    kills,
    tenants,
    processes,
    seed,
    shares: fullShares,
    slowMs: [1_000, 3_000],
    hurryClaims: false,
    env: { DELIVERY_CONCURRENCY: '256', DELIVERY_TENANT_CONCURRENCY: '32' },
    onProgress: (line) => say(`  ${Math.round((performance.now() - startedMs) / 1e3)} s: ${line}`),
  })
  const findings = checkDeliveries(result)
  reportRun(result, findings)
  reportFindings(findings, result.kills.length, processes)
  const idle = findIdle(findings, result)
  for (const what of idle) say(`proves nothing: ${what}`)
  const broken = Object.values(findings.breaches).some((breaches) => breaches.length > 0)
  if (broken || idle.length > 0) process.exitCode = 1
}

const percent = (share: number) => `${Math.round(share * 1_000) / 10} %`

const describe = (counts: Partial<Record<string, number>>) =>
  Object.entries(counts)
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ')

function reportRun(result: UnderKills, findings: Findings): void {
  const { tookMs, raised, requests, pulls, pulled, releasedHolds } = result
  const perSecond = Math.round(requests.length / (tookMs / 1e3))
  say(`took ${Math.round(tookMs / 1e3)} s: ${raised.length} alerts, ${requests.length} requests`)
  say(`  (${perSecond} a second), ${findings.attemptsRecorded} attempts recorded`)
  say(`due times pulled forward ${pulls} times, ${pulled} retries in all; holds of the breaker`)
  say(`  ended then: ${releasedHolds}`)
  say(`answers: ${describe(findings.acts)}`)
}

function reportFindings(findings: Findings, kills: number, processes: number): void {
  const whose =
    processes > 1 ? "claims at kills, the living process' too" : 'claims left behind and taken over'
  say(`kills: ${kills}, of which with requests in flight: ${findings.killsThatMet}`)
  say(`  requests unanswered at kills: ${findings.openAtKills}`)
  say(`  ${whose}: ${findings.orphans}`)
  say(`attempts sent again because of a kill: ${findings.repeats}`)
  say(`  after a success: ${findings.repeatsAfterSuccess} (bound: ${findings.orphans} claims)`)
  say(`signatures verified: ${findings.signaturesVerified}`)
  say(`unknown outcomes: ${describe(findings.unknown)}`)
  say(`attempts that never reached the receiver: ${describe(findings.unseen) || 'none'}`)
  for (const [name, promise] of Object.entries(promises)) {
    const breaches = findings.breaches[name as keyof Breaches]
    say(`${promise}: ${breaches.length}`)
    for (const breach of breaches.slice(0, 5)) say(`  ${JSON.stringify(breach)}`)
  }
}

/** What has to have happened, or the run has shown nothing. */
function findIdle({ acts, killsThatMet, orphans }: Findings, { kills }: UnderKills): string[] {
  const idle: string[] = receiverFaults
    .filter((fault) => !acts[fault])
    .map((fault) => `no ${fault}`)
  if (kills.length > 0 && killsThatMet === 0) idle.push('no kill met a request in flight')
  if (kills.length > 0 && orphans === 0) idle.push('no claim was taken over')
  return idle
}
