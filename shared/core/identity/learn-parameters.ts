/**
 * Learns the next version of a tenant's parameters from its recent installs, within bounds: whoever
 * sends many made-up installs must not teach that strangers are one phone.
 */
import {
  comparedInstallsMin,
  learnedInstallsMin,
  tenantPhonesMin,
} from '../base/limits/entities.ts'
import { estimateInRounds, type ObservedInstall } from './estimate-parameters.ts'
import { type FieldParameters, findInitialField, type IdentityParameters } from './parameters.ts'

/** The share of new installs that are on a known phone is never taken for more than this. */
const returningMax = 0.5
/**
 * How many others share a value is never taken for less than this part of the first guess, which
 * is cautious: fleets without attackers come to a two-hundredth.
 */
const sharersFactor = 1 / 1_000
/** How often a field of one phone may differ: what differs always speaks against one phone. */
const differsOfSameMax = 0.9

/** Whether there is enough to learn from. */
export const isEnough = (installs: readonly ObservedInstall[]): boolean =>
  installs.length >= learnedInstallsMin &&
  installs.filter(({ candidates }) => candidates.length > 0).length >= comparedInstallsMin

/**
 * Learns in rounds, as `estimateInRounds`.
 * @param phones how many there are now
 * @returns the next version
 */
export function* learnInRounds(
  before: IdentityParameters,
  installs: readonly ObservedInstall[],
  phones: number,
): Generator<undefined, IdentityParameters> {
  const least = Math.max(tenantPhonesMin, phones)
  return toGuarded(yield* estimateInRounds(before, installs, least))
}

/** Learns at once. */
export function learnParameters(
  before: IdentityParameters,
  installs: readonly ObservedInstall[],
  phones: number,
): IdentityParameters {
  const rounds = learnInRounds(before, installs, phones)
  for (;;) {
    const round = rounds.next()
    if (round.done) return round.value
  }
}

function toGuarded(learned: IdentityParameters): IdentityParameters {
  const fields = Object.entries(learned.fields).map(([name, field]) => [
    name,
    toGuardedField(field, findInitialField(name)),
  ])
  return {
    ...learned,
    returning: Math.min(returningMax, learned.returning),
    fields: Object.fromEntries(fields),
  }
}

function toGuardedField(field: FieldParameters, initial: FieldParameters): FieldParameters {
  const [differs = 0, ...agrees] = field.same
  const toLeast = (count: number, at: number) =>
    Math.max(count, initial.sharers![at]! * sharersFactor)
  return {
    ...field,
    same: [Math.min(differsOfSameMax, differs), ...agrees],
    sharers: field.sharers?.map(toLeast) ?? null,
  }
}
