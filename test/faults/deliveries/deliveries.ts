/**
 * `npm run faults -- deliveries [--alerts 100000] [--kills 50] [--tenants 20] [--processes 1]
 * [--seed K]`: alerts to a receiver that fails, hangs, resets and responds slowly three times in
 * ten, while the delivery process is killed repeatedly. Exits with 1 when a guarantee was broken,
 * or when too little happened to prove anything.
 */
import { describeCounts } from '../support/counts.ts'
import { print, randomSeed, readOptions } from '../support/drill.ts'
import { type Breaches, checkDeliveries, type Findings } from './check-deliveries.ts'
import { deliverUnderKills, type UnderKills } from './deliver-under-kills.ts'
import { fullShares, receiverFaults } from './receiver-faults.ts'

const promises: Record<keyof Breaches, string> = {
  missing: 'alerts without a 2xx',
  undelivered: 'deliveries that did not end as delivered',
  otherBytes: 'requests with other bytes than their delivery',
  forged: 'requests whose signatures do not verify',
  decreasing: 'requests with a lower attempt number than an earlier one',
  gaps: 'deliveries whose recorded attempts have a gap or go on after a 2xx',
  unfounded: 'recorded attempts that are not the outcome of their request',
  unrecorded: 'requests whose attempt number was never recorded',
  unexplained: 'attempts sent again without a kill that left their claim behind',
  afterSuccess: 'requests after a success without such a kill',
}

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { alerts, kills, tenants, processes, seed } = readOptions(args, {
    alerts: 100_000,
    kills: 50,
    tenants: 20,
    processes: 1,
    seed: randomSeed(),
  })
  print(
    `${alerts} alerts of ${tenants} tenants, ${kills} kills, ${processes} process, --seed ${seed}`,
  )
  const shares = receiverFaults.map((fault) => `${fault} ${percent(fullShares[fault])}`)
  print(`the receiver: ${shares.join(', ')}`)
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
    onProgress: (line) =>
      print(`  ${Math.round((performance.now() - startedMs) / 1e3)} s: ${line}`),
  })
  const findings = checkDeliveries(result)
  reportRun(result, findings)
  reportFindings(findings, result.kills.length, processes)
  const missing = findMissingEffects(findings, result)
  for (const what of missing) print(`proves nothing: ${what}`)
  const broken = Object.values(findings.breaches).some((breaches) => breaches.length > 0)
  if (broken || missing.length > 0) process.exitCode = 1
}

const percent = (share: number) => `${Math.round(share * 1_000) / 10} %`

function reportRun(result: UnderKills, findings: Findings): void {
  const { tookMs, raised, requests, pulls, pulled, closedCircuits } = result
  const perSecond = Math.round(requests.length / (tookMs / 1e3))
  print(`took ${Math.round(tookMs / 1e3)} s: ${raised.length} alerts, ${requests.length} requests`)
  print(`  (${perSecond} a second), ${findings.attemptsRecorded} attempts recorded`)
  print(
    `retries made due ${pulls} times, ${pulled} in all; circuits closed then: ${closedCircuits}`,
  )
  print(`responses: ${describeCounts(findings.acts)}`)
}

function reportFindings(findings: Findings, kills: number, processes: number): void {
  const claims =
    processes > 1
      ? 'claims at kills, also of the other process'
      : 'claims left behind and taken over'
  print(`kills: ${kills}, of which with requests in flight: ${findings.killsThatMet}`)
  print(`  requests unanswered at kills: ${findings.openAtKills}`)
  print(`  ${claims}: ${findings.orphans}`)
  print(`attempts sent again because of a kill: ${findings.repeats}`)
  print(`  after a success: ${findings.repeatsAfterSuccess} (bound: ${findings.orphans} claims)`)
  print(`signatures verified: ${findings.signaturesVerified}`)
  print(`unknown outcomes: ${describeCounts(findings.unknown)}`)
  print(`attempts that never reached the receiver: ${describeCounts(findings.unseen) || 'none'}`)
  for (const [name, promise] of Object.entries(promises)) {
    const breaches = findings.breaches[name as keyof Breaches]
    print(`${promise}: ${breaches.length}`)
    for (const breach of breaches.slice(0, 5)) print(`  ${JSON.stringify(breach)}`)
  }
}

/** @returns the effects that a run must have and that did not occur */
function findMissingEffects(
  { acts, killsThatMet, orphans }: Findings,
  { kills }: UnderKills,
): string[] {
  const missing: string[] = receiverFaults
    .filter((fault) => !acts[fault])
    .map((fault) => `no ${fault}`)
  if (kills.length > 0 && killsThatMet === 0) missing.push('no kill met a request in flight')
  if (kills.length > 0 && orphans === 0) missing.push('no claim was taken over')
  return missing
}
