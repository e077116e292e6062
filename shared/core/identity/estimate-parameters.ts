/**
 * Estimates parameters without labels, from installs whose phones are not known (expectation and
 * maximization, as Winkler used it for record linkage, 1988).
 */
import { levelsOf, type Observed } from './comparison.ts'
import {
  type FieldParameters,
  findField,
  findInitialField,
  givenFields,
  type IdentityParameters,
  toFieldName,
  twin,
} from './parameters.ts'
import { type Weighed, weighComparisons } from './weigh-comparisons.ts'

/** A new install with how many phones there were, and its comparisons with each candidate. */
export type ObservedInstall = { phones: number; candidates: readonly (readonly Observed[])[] }

/** Whatever was never seen may still happen: half a time. */
const unseen = 0.5
const rounds = 60

/**
 * Estimates in rounds, so that a caller can do other work between them.
 * @param phones how many there are now
 * @returns the next version
 */
export function* estimateInRounds(
  before: IdentityParameters,
  installs: readonly ObservedInstall[],
  phones: number,
): Generator<undefined, IdentityParameters> {
  const fields: Record<string, FieldParameters> = { ...before.fields }
  for (const { one } of installs.flatMap(({ candidates }) => candidates.flat())) {
    const name = toFieldName(one)
    if (!givenFields.has(name)) fields[name] ??= findField(before, one)
  }
  let parameters: IdentityParameters = { ...before, version: before.version + 1, phones, fields }
  for (let round = 0; round < rounds; round++) {
    parameters = improve(parameters, installs)
    yield
  }
  return parameters
}

/** By level: comparisons with the same phone, and values of one phone in common with another. */
type Tally = { same: number[]; others: number[] }

function improve(
  parameters: IdentityParameters,
  installs: readonly ObservedInstall[],
): IdentityParameters {
  const tallies = new Map<string, Tally>()
  let returned = 0
  const twins = [0, 0]
  /** The sum of the phones that the installs were compared with, which are on none of them. */
  let others = 0
  for (const { phones, candidates } of installs) {
    const certainties = toCertainties(parameters, candidates)
    for (const [at, observed] of candidates.entries()) {
      const { certainty, ...weighed } = certainties[at]!
      // Only phones that are in use at one time are known to be two.
      if (isOfTwins(weighed)) {
        const least = Math.min(...observed.flatMap(listHolders))
        if (least <= twins.length) twins[least - 1]! += (1 - certainty) / candidates.length
      }
      for (const each of observed) addTo(tallies, each, { certainty, ...weighed })
    }
    const sum = certainties.reduce((all, { certainty }) => all + certainty, 0)
    returned += sum
    others += phones
  }
  const fields = { ...parameters.fields }
  const toShare = (count: number) => (parameters.phones * (count + unseen)) / (others + 1)
  for (const [name, { same, others: shared }] of tallies) {
    const known = fields[name]!
    const whole = same.reduce((all, count) => all + count + unseen, 0)
    fields[name] = {
      ...known,
      same: same.map((count) => (count + unseen) / whole),
      sharers:
        known.sharers === null ? null : known.sharers.map((_, at) => toShare(shared[at + 1]!)),
    }
  }
  fields[twin] = { ...(fields[twin] ?? findInitialField(twin)), sharers: twins.map(toShare) }
  const returning = (returned + unseen) / (installs.length + 2 * unseen)
  return { ...parameters, returning, fields }
}

function addTo(
  tallies: Map<string, Tally>,
  { one, holders }: Observed,
  { certainty, ofOneUser, isDoubtful, isInUse }: Certain,
): void {
  const name = toFieldName(one)
  if (givenFields.has(name)) return
  const none = () => [0, ...levelsOf[one.field].map(() => 0)]
  const tally = tallies.get(name) ?? { same: none(), others: none() }
  tallies.set(name, tally)
  tally.same[one.level]! += certainty
  // Phones of one user are alike: those have a chance of their own.
  const isOfStranger = one.field !== 'traits' || !ofOneUser
  // Nothing tells a phone that was reset from another one with the same identifier, unless both are
  // in use at a time.
  const isTold = !isDoubtful || isInUse
  if (holders === 1 && isOfStranger && isTold) tally.others[one.level]! += 1 - certainty
}

/** Whether two phones of one model have one identifier. */
const isOfTwins = ({ isDoubtful, isContradicted, isInUse }: Omit<Certain, 'certainty'>): boolean =>
  isDoubtful && isInUse && !isContradicted

/** How many have the identifiers in common. */
const listHolders = ({ one, holders }: Observed): number[] =>
  one.field === 'identifier' && one.level > 0 ? [holders] : []

type Certain = Omit<Weighed, 'weights' | 'weight'> & { certainty: number }

/** How certain it is that the install is on each of these phones. */
function toCertainties(
  parameters: IdentityParameters,
  candidates: ObservedInstall['candidates'],
): Certain[] {
  const prior = parameters.returning / (1 - parameters.returning) / parameters.phones
  const weighed = candidates.map((observed) => weighComparisons(parameters, observed))
  const odds = weighed.map(({ weight }) => prior * Math.exp(weight))
  const sum = odds.reduce((all, one) => all + one, 1)
  return weighed.map((one, at) => ({ ...one, certainty: odds[at]! / sum }))
}
