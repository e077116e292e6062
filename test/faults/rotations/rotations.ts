/**
 * `npm run faults -- rotations [--rotations 300] [--seed S] [--pause-ms 12] [--quiet]`: credentials
 * are rotated under load from old and new secrets while three edges are paused, killed,
 * disconnected from NATS and set to wrong clocks; `--quiet` omits the faults. Prints the durations
 * of the rotations; exits with 1 when a guarantee was broken.
 */
import { percentile } from '../../support/process/percentile.ts'
import { describeCounts } from '../support/counts.ts'
import { print, randomSeed, readOptions } from '../support/drill.ts'
import { planAtRandom, type RotationRun, rotateUnderLoad, type Step } from './rotate-under-load.ts'

/** Rotations of the other credentials, which no edge checks: only their time is measured. */
const others: Step[] = [
  { webhook: true },
  { api_key: true },
  { hmac: true, webhook: true, api_key: true },
].flatMap((request) => Array.from({ length: 20 }, () => ({ request, idleMs: 50, quiet: true })))

/** Rotations of the HMAC secret without faults. */
const quietPlan = (count: number): Step[] =>
  Array.from({ length: count }, () => ({ request: { hmac: true }, idleMs: 50, quiet: true }))

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, {
    rotations: 300,
    seed: randomSeed(),
    'pause-ms': 12,
    quiet: false,
  })
  const { rotations: count, seed, quiet } = options
  print(`${count} rotations, --seed ${seed}`)
  const startedMs = performance.now()
  const result = await rotateUnderLoad({
    plan: [...(quiet ? quietPlan(count) : planAtRandom(count, seed)), ...others],
    seed,
    clientPauseMs: options['pause-ms'],
    onRotation: (_, at) => {
      if (at % 25 === 0)
        print(`  ${at} after ${Math.round((performance.now() - startedMs) / 1e3)} s`)
    },
  })
  const { findings } = result
  print(`requests: ${result.requests} (${describeCounts(findings.statuses)})`)
  print(
    `faults: ${describeCounts(result.faults)}; wall clocks of events: ${describeCounts(result.clocks)}`,
  )
  print(`edges accepted telemetry again after a fault within ${toTimes(result.recoveriesMs)}`)
  print(`old secret, begun after the return: ${findings.oldJudged}`)
  print(`  accepted: ${findings.oldAccepted.length}`)
  print(`new secret, begun after the return: ${findings.newJudged}`)
  print(`  refused (401): ${findings.newRefused.length}`)
  print(`accepted after a newer secret was accepted: ${findings.bothAccepted.length}`)
  print(`other answers: ${findings.unexpected.length}`)
  print(`accepted, but not in the stream: ${result.lost}`)
  report(result.rotations)
  const { oldAccepted, newRefused, bothAccepted, unexpected } = findings
  const broken = [...oldAccepted, ...newRefused, ...bothAccepted, ...unexpected]
  for (const attempt of broken.slice(0, 10)) print(`  ${JSON.stringify(attempt)}`)
  if (broken.length + result.lost > 0) process.exitCode = 1
}

function report(rotations: RotationRun[]): void {
  const groups = new Map<string, number[]>()
  for (const { what, edges, tookMs } of rotations) {
    const name = `${edges}: ${what}`
    groups.set(name, [...(groups.get(name) ?? []), tookMs])
  }
  print('time to complete for the caller of the admin API, by the state of the edges:')
  for (const [name, tookMs] of [...groups].sort()) print(`  ${name}: ${toTimes(tookMs)}`)
  for (const state of ['well', 'one away', 'one away for a part of it']) {
    const tookMs = rotations.filter(({ edges }) => edges === state).map((run) => run.tookMs)
    if (tookMs.length > 0) print(`  ${state}, all kinds: ${toTimes(tookMs)}`)
  }
}

function toTimes(values: number[]): string {
  const [p50, p99, max] = [0.5, 0.99, 1].map((rank) => Math.round(percentile(values, rank)))
  return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms (n ${values.length})`
}
