/**
 * `npm run faults -- rotations [--rotations 300] [--seed S] [--pause-ms 12] [--quiet]`: three edges
 * under load from old and new secrets while credentials are rotated and edges are paused, killed,
 * cut off from NATS and set to wrong clocks. Prints what was found and how long rotations took;
 * ends with status 1 when a promise was broken.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { percentile } from '../../support/process/percentile.ts'
import { planAtRandom, type RotationRun, rotateUnderLoad, type Step } from './rotate-under-load.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

/**
 * Rotations of the other credentials, alone: they meet no edge, so only their time is of interest.
 */
const others: Step[] = [
  { webhook: true },
  { api_key: true },
  { hmac: true, webhook: true, api_key: true },
].flatMap((asked) => Array.from({ length: 20 }, () => ({ asked, idleMs: 50, quiet: true })))

/** Rotations of the HMAC secret with every edge well. */
const quietPlan = (count: number): Step[] =>
  Array.from({ length: count }, () => ({ asked: { hmac: true }, idleMs: 50, quiet: true }))

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rotations: { type: 'string', default: '300' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      'pause-ms': { type: 'string', default: '12' },
      /** Without any fault: how long a rotation takes when all is well. */
      quiet: { type: 'boolean', default: false },
    },
  })
  const seed = Number(values.seed)
  const count = Number(values.rotations)
  say(`${count} rotations, --seed ${seed}`)
  const startedMs = performance.now()
  const result = await rotateUnderLoad({
    plan: [...(values.quiet ? quietPlan(count) : planAtRandom(count, seed)), ...others],
    seed,
    clientPauseMs: Number(values['pause-ms']),
    onRotation: (_, at) => {
      if (at % 25 === 0) say(`  ${at} after ${Math.round((performance.now() - startedMs) / 1e3)} s`)
    },
  })
  const { findings } = result
  say(`requests: ${result.requests} (${describe(findings.statuses)})`)
  say(`faults: ${describe(result.faults)}; wall clocks of events: ${describe(result.clocks)}`)
  say(`edges took telemetry again after a fault within ${toTimes(result.recoveriesMs)}`)
  say(`old secret, begun after the return: ${findings.oldJudged}`)
  say(`  accepted: ${findings.oldAccepted.length}`)
  say(`new secret, begun after the return: ${findings.newJudged}`)
  say(`  refused (401): ${findings.newRefused.length}`)
  say(`accepted after a newer secret was accepted: ${findings.bothAccepted.length}`)
  say(`other answers: ${findings.unexpected.length}`)
  say(`accepted, but not in the stream: ${result.lost}`)
  report(result.rotations)
  const { oldAccepted, newRefused, bothAccepted, unexpected } = findings
  const broken = [...oldAccepted, ...newRefused, ...bothAccepted, ...unexpected]
  for (const attempt of broken.slice(0, 10)) say(`  ${JSON.stringify(attempt)}`)
  if (broken.length + result.lost > 0) process.exitCode = 1
}

function report(rotations: RotationRun[]): void {
  const groups = new Map<string, number[]>()
  for (const { what, edges, tookMs } of rotations) {
    const name = `${edges}: ${what}`
    groups.set(name, [...(groups.get(name) ?? []), tookMs])
  }
  say('time to complete, as the caller of the admin API sees it, by how the edges were:')
  for (const [name, tookMs] of [...groups].sort()) say(`  ${name}: ${toTimes(tookMs)}`)
  for (const state of ['well', 'one away', 'one away for a part of it']) {
    const tookMs = rotations.filter(({ edges }) => edges === state).map((run) => run.tookMs)
    if (tookMs.length > 0) say(`  ${state}, all kinds: ${toTimes(tookMs)}`)
  }
}

function toTimes(values: number[]): string {
  const [p50, p99, max] = [0.5, 0.99, 1].map((rank) => Math.round(percentile(values, rank)))
  return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms (n ${values.length})`
}

const describe = (counts: Record<string, number>) =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
