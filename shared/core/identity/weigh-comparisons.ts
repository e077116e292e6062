/**
 * What the comparisons of an install with a phone say together. Each alone has a weight of its own;
 * but a reset changes several things at once, a copier copies all identifiers, and
 * phones with one identifier are of one model.
 */
import type { Observed } from './comparison.ts'
import {
  findField,
  type IdentityParameters,
  isOfOneUser,
  toTwinWeight,
  toWeight,
} from './parameters.ts'
import { attestedKeyName } from './sent-identifiers.ts'

export type Weighed = {
  /** In the order of the comparisons: natural logarithms. */
  weights: number[]
  /** Their sum. */
  weight: number
  ofOneUser: boolean
  /** The hardware is another, or left out where the phone is known to have told it. */
  isContradicted: boolean
  /**
   * An identifier that a phone keeps differs beside one in common, and no person is in common: as
   * after a reset, and as with another phone that has the same identifier.
   */
  isDoubtful: boolean
  /** The phone was in use when the install's system had long started, and had started earlier. */
  isInUse: boolean
}

/** An identifier that differs on fewer installs of one phone than this is one that phones keep. */
const keptMax = 0.25

export function weighComparisons(
  parameters: IdentityParameters,
  observed: readonly Observed[],
): Weighed {
  const compared = observed.map(({ one }) => one)
  const ofOneUser = isOfOneUser(compared)
  const identifiers = compared.filter(({ field }) => field === 'identifier')
  const equal = identifiers.filter(({ level }) => level > 0)
  const isDoubtful =
    equal.length > 0 &&
    !ofOneUser &&
    !equal.some(({ name }) => name === attestedKeyName) &&
    identifiers.some((one) => one.level === 0 && findField(parameters, one).same[0]! <= keptMax)
  const isContradicted = compared.some(
    ({ field, level }) => level === 0 && hardwareFields.has(field),
  )
  const isInUse = compared.some(({ field }) => field === 'in use')
  const weights = observed.map(({ one, holders }) => {
    // An attested key cannot be copied.
    const isCopied = one.field === 'identifier' && one.name !== attestedKeyName
    if (isContradicted && one.level > 0 && isCopied) return 0
    return toWeight(parameters, one, { holders, ofOneUser })
  })
  if (isDoubtful && !isContradicted) weighDoubtful(parameters, observed, weights)
  const weight = weights.reduce((all, one) => all + one, 0)
  return { weights, weight, ofOneUser, isContradicted, isDoubtful, isInUse }
}

/**
 * A reset is one event, and phones with one identifier are alike in all that a model and a place
 * have in common. So two facts count: that the identifier is equal, beside how often phones of one
 * model have one, and that one differs which phones keep. What contradicts it counts too.
 */
function weighDoubtful(
  parameters: IdentityParameters,
  observed: readonly Observed[],
  weights: number[],
): void {
  const isIdentifier = ({ one }: Observed) => one.field === 'identifier'
  let [equal, kept] = [0, 0]
  observed.forEach((each, at) => {
    if (!isIdentifier(each)) return
    if (each.one.level === 0) kept = Math.min(kept, weights[at]!)
    else equal = Math.max(equal, toTwinWeight(parameters, each))
  })
  let [hasEqual, hasKept] = [false, false]
  observed.forEach((each, at) => {
    if (each.one.field === 'in use') return
    let weight = 0
    if (isIdentifier(each) && each.one.level > 0 && !hasEqual) {
      hasEqual = toTwinWeight(parameters, each) === equal
      weight = hasEqual ? equal : 0
    }
    if (isIdentifier(each) && each.one.level === 0 && !hasKept) {
      hasKept = weights[at] === kept
      weight = hasKept ? kept : 0
    }
    weights[at] = weight
  })
}

const hardwareFields: ReadonlySet<string> = new Set(['traits', 'model', 'omitted'])
