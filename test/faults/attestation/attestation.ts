/**
 * `npm run faults -- attestation [--mutants 10000] [--seed S] [--only PART-OF-NAME]`: each genuine
 * object of `test/vectors/attestation`, changed at random; none may be accepted. Then the
 * costliest input for each verifier, in µs of CPU: the bounds of `limits/attestation.ts` hold it.
 */
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { makeCostlyInputs } from '../../support/attestation/costly-inputs.ts'
import { listGenuine } from '../../support/attestation/mutate.ts'
import { runMutants } from '../../support/attestation/run-mutants.ts'
import { checkVector, readVectors } from '../../support/attestation/vectors.ts'
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'

/** µs of CPU, of all threads. Registrations are checked off the event loop, some 50 a second. */
const costliestMicrosecondsMax = 10_000
const rounds = 200

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { mutants: 10_000, seed: randomSeed(), only: '' })
  print(`--mutants ${options.mutants} --seed ${options.seed}`)
  const forged = await mutateAll(options)
  reportBroken([...forged, ...(await measureCostly())], 'no forged evidence was accepted')
}

async function mutateAll(options: { mutants: number; seed: number; only: string }) {
  const file = readVectors()
  const genuine = listGenuine(file.vectors).map((vector) => {
    const input = vector.input.map((part) => Buffer.from(part, 'base64'))
    return { vector, evidence: { name: vector.name, kind: vector.kind, input } }
  })
  const others = genuine.map(({ evidence }) => evidence)
  const broken: string[] = []
  for (const { vector, evidence } of genuine) {
    const { name } = vector
    if (!name.includes(options.only)) continue
    const random = createRandom(options.seed, name)
    const report = await runMutants(
      evidence,
      others,
      { count: options.mutants, random, nowMs: () => performance.now() },
      (input) => checkVector(file, vector, input),
    )
    const reasons = [...report.rejected].sort(([, left], [, right]) => right - left)
    const shown = reasons.map(([reason, count]) => `${reason} ${count}`).join(', ')
    print(
      `${name}: ${report.checked} changed, ${report.forged.length} forged, ${report.same} the ` +
        `same evidence, slowest ${report.slowestMs.toFixed(1)} ms\n    ${shown}`,
    )
    broken.push(...report.forged.map((change) => `${name}, mutant ${change}: accepted`))
  }
  return broken
}

async function measureCostly(): Promise<string[]> {
  const broken: string[] = []
  for (const { name, check } of makeCostlyInputs(readVectors())) {
    for (let warmUp = 0; warmUp < 20; warmUp++) await check()
    const before = process.cpuUsage()
    let reason: string | null = null
    for (let round = 0; round < rounds; round++) reason = (await check()).reason
    const { user, system } = process.cpuUsage(before)
    const each = Math.round((user + system) / rounds)
    print(`${name}: ${each} µs (${reason ?? 'verified'})`)
    if (each > costliestMicrosecondsMax) broken.push(`${name}: ${each} µs`)
  }
  return broken
}
