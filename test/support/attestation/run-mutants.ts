/** Checks changed evidence, and collects what was accepted though something signed differs. */
import type { AttestationCheck } from '#shared/core/attestation/steps.ts'
import type { Random } from '../../../deploy/fleet/phones/random.ts'
import { isSameEvidence, mutate } from './mutate.ts'
import type { VectorKind } from './vectors.ts'

export type Evidence = { name: string; kind: VectorKind; input: readonly Buffer[] }

export type MutantReport = {
  checked: number
  /** By reason. */
  rejected: Map<string, number>
  /** Accepted with everything signed as it was. */
  same: number
  /** Accepted as verified though something signed differs: number and change. Each is a hole. */
  forged: string[]
  slowestMs: number
}

/**
 * @param others evidence that pieces are taken from
 * @param check what is said of changed evidence
 */
export async function runMutants(
  evidence: Evidence,
  others: readonly Evidence[],
  options: { count: number; random: Random; nowMs: () => number },
  check: (input: readonly Buffer[]) => Promise<AttestationCheck> | AttestationCheck,
): Promise<MutantReport> {
  const { kind, input } = evidence
  const { random, nowMs } = options
  const donors = others.filter((other) => other.kind === kind)
  const report: MutantReport = {
    checked: 0,
    rejected: new Map(),
    same: 0,
    forged: [],
    slowestMs: 0,
  }
  while (report.checked < options.count) {
    const mutant = mutate(input, random.pick(donors).input, random)
    if (isUnchanged(input, mutant.input)) continue
    report.checked += 1
    const startedMs = nowMs()
    const { verdict, reason } = await check(mutant.input)
    report.slowestMs = Math.max(report.slowestMs, nowMs() - startedMs)
    if (verdict === 'rejected') {
      report.rejected.set(reason!, (report.rejected.get(reason!) ?? 0) + 1)
    } else if (
      isSameEvidence(
        kind,
        mutant.input,
        input,
        donors.map((donor) => donor.input),
      )
    ) {
      report.same += 1
    } else report.forged.push(`${report.checked}: ${mutant.change}`)
  }
  return report
}

const isUnchanged = (before: readonly Buffer[], after: readonly Buffer[]): boolean =>
  before.length === after.length && before.every((part, index) => part.equals(after[index]!))
