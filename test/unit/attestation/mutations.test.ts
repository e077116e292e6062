/**
 * Genuine evidence of phones, changed at random: none is accepted. `npm run faults -- attestation
 * [--mutants 10000]` changes each object that often, and measures the costliest input of each
 * verifier longer: the bounds of `limits/attestation.ts` hold it.
 */
import { describe, expect, it } from 'vitest'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { drillLimitMs, drillOptions, isDrill, tellCounts } from '../../faults/drill-options.ts'
import { makeCostlyInputs } from '../../support/attestation/costly-inputs.ts'
import { listGenuine } from '../../support/attestation/mutate.ts'
import { runMutants } from '../../support/attestation/run-mutants.ts'
import { checkVector, readVectors } from '../../support/attestation/vectors.ts'
import { seed } from '../../support/process/seed.ts'

const { mutants: count } = drillOptions({ mutants: 40 }, { mutants: 10_000 })
const file = readVectors()
const genuine = listGenuine(file.vectors).map((vector) => {
  const input = vector.input.map((part) => Buffer.from(part, 'base64'))
  return { vector, evidence: { name: vector.name, kind: vector.kind, input } }
})
const others = genuine.map(({ evidence }) => evidence)

describe(`changed evidence (seed ${seed})`, () => {
  it.each(genuine)(
    '$vector.name: is never accepted',
    async ({ vector, evidence }) => {
      const random = createRandom(seed, vector.name)
      const report = await runMutants(
        evidence,
        others,
        { count, random, nowMs: () => performance.now() },
        (input) => checkVector(file, vector, input),
      )
      tellCounts(`${vector.name}: ${report.checked} changed`, Object.fromEntries(report.rejected))
      expect(report.forged).toEqual([])
      expect(report.rejected.size).toBeGreaterThan(1)
    },
    drillLimitMs,
  )
})

/** Registrations are checked off the event loop, some 50 a second. */
const timesGenuineMax = 4
const rounds = isDrill ? 200 : 20

/** @returns µs of CPU of one check, of all threads */
async function measure(check: () => Promise<unknown>): Promise<number> {
  for (let warmUp = 0; warmUp < 20; warmUp++) await check()
  const before = process.cpuUsage()
  for (let round = 0; round < rounds; round++) await check()
  const { user, system } = process.cpuUsage(before)
  return Math.round((user + system) / rounds)
}

it(
  'no evidence costs more than four genuine chains before it is refused',
  async () => {
    const costs: Record<string, number> = {}
    for (const { name, check } of makeCostlyInputs(file)) costs[name] = await measure(check)
    tellCounts('µs of CPU', costs)
    const most = timesGenuineMax * costs['chain: genuine']!
    expect(Object.entries(costs).filter(([, cost]) => cost > most)).toEqual([])
  },
  drillLimitMs,
)
