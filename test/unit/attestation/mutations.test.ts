import { describe, expect, it } from 'vitest'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { listGenuine } from '../../support/attestation/mutate.ts'
import { runMutants } from '../../support/attestation/run-mutants.ts'
import { checkVector, readVectors } from '../../support/attestation/vectors.ts'
import { seed } from '../../support/process/seed.ts'

const file = readVectors()
const genuine = listGenuine(file.vectors).map((vector) => {
  const input = vector.input.map((part) => Buffer.from(part, 'base64'))
  return { vector, evidence: { name: vector.name, kind: vector.kind, input } }
})
const others = genuine.map(({ evidence }) => evidence)

// `npm run faults -- attestation` checks ten thousand of each.
describe(`changed evidence (seed ${seed})`, () => {
  it.each(genuine)('$vector.name: is never accepted', async ({ vector, evidence }) => {
    const random = createRandom(seed, vector.name)
    const report = await runMutants(
      evidence,
      others,
      { count: 40, random, nowMs: () => performance.now() },
      (input) => checkVector(file, vector, input),
    )
    expect(report.forged).toEqual([])
    expect(report.rejected.size).toBeGreaterThan(1)
  })
})
