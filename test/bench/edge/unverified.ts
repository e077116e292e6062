/**
 * The cost of a body of 64 KiB before its signature is verified, by kind of hostile body: finding
 * its tenant, beside the two HMACs that every refused request costs anyway. Rounds interleaved,
 * medians, CPU time of the process.
 */
import { createHmac } from 'node:crypto'
import { parseArgs } from 'node:util'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import { hostileBodies } from '../../support/telemetry/hostile-bodies.ts'
import { type Figure, publishReport } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'

const rounds = 9
const repeats = 50
/** One microsecond per 64 bytes. */
const microsecondsPerByteMax = 1 / 64

/** @returns µs of CPU per run */
function measure(work: () => unknown): number {
  const before = process.cpuUsage()
  for (let n = 0; n < repeats; n++) work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / repeats
}

function verifyTwice(body: Buffer): void {
  for (const secret of ['a secret', 'a decoy']) createHmac('sha256', secret).update(body).digest()
}

/** @throws on any option: it has none */
export function run(args: string[]): void {
  parseArgs({ args, options: {} })
  const figures: Figure[] = hostileBodies.map(([name, body]) => {
    const found: number[] = []
    const baseline: number[] = []
    for (let round = -2; round < rounds; round++) {
      const one = measure(() => findTenant(body))
      const two = measure(() => verifyTwice(body))
      if (round < 0) continue
      found.push(one)
      baseline.push(two)
    }
    return {
      name,
      unit: 'µs',
      value: toSpread(found),
      baseline: { name: 'two HMACs', value: toSpread(baseline) },
      ratio: toRatios(found, baseline),
      bound: { of: 'value', atMost: body.length * microsecondsPerByteMax },
    }
  })
  publishReport({
    part: 'unverified',
    command: 'npm run bench -- unverified',
    versions: {},
    durability: 'nothing is stored',
    figures,
    checks: [],
  })
}
