/**
 * Decides whether a new install is on a known phone: a pure function of the phones that share a
 * value with it, of how many phones have each value, and of versioned parameters.
 */
import { phoneInstallsMax, strongSharersMax } from '../base/limits/entities.ts'
import { comparePhone, type InstallTraits } from './comparison.ts'
import { type IdentityParameters, isOfOneUser, toFieldName, toWeight } from './parameters.ts'

export type KnownPhone = {
  phoneId: string
  installs: readonly InstallTraits[]
  /** How many they are. */
  installCount: number
  /** The phone that its first install may be on, too uncertain to be joined; null without one. */
  possible: { phoneId: string; confidence: number } | null
}

/** Why an install counts as on a phone or not. */
export type Evidence = {
  field: string
  /** 0 differs. */
  level: number
  weight: number
  /** How many phones have the value in common; null where values are not counted. */
  holders: number | null
}

export type Link = {
  /** linked: it is on that phone. possible: shown, and counts nowhere. */
  kind: 'linked' | 'possible'
  phoneId: string
  /** From 0 to 1: of links with 0.99 one in a hundred is wrong. */
  confidence: number
  evidence: Evidence[]
}

export type LinkDecision = {
  /** Null: it is a phone of its own. */
  link: Link | null
  /** Its identifiers are those of several phones, or of one whose hardware is another. */
  identifiersShared: boolean
}

export type LinkThresholds = { linked: number; possible: number }
export const linkThresholds: LinkThresholds = { linked: 0.99, possible: 0.8 }

type Candidate = {
  phone: KnownPhone
  evidence: Evidence[]
  /** Of being on this phone, beside being on one that was never seen. */
  odds: number
  /** Whether an identifier that few phones have is in common. */
  isStrong: boolean
  /**
   * Whether something personal is in common: a strong identifier, or a user where no identifier
   * differs. Traits alone are those of every phone of a shop, and a user's next phone may be the
   * model of the one before.
   */
  mayLink: boolean
  hasOtherHardware: boolean
  /** The names of identifiers that are equal, and of those that differ. */
  equal: (string | null)[]
  different: (string | null)[]
}

/**
 * @param candidates the phones that share a key with the install, in any order
 * @param holdersOf how many phones have a key of `toKeys`, up to this install
 */
export function linkInstall(
  install: InstallTraits,
  candidates: readonly KnownPhone[],
  holdersOf: (key: string) => number,
  {
    parameters,
    thresholds = linkThresholds,
  }: { parameters: IdentityParameters; thresholds?: LinkThresholds },
): LinkDecision {
  const weighed = candidates.map((phone) => weigh(install, phone, holdersOf, parameters))
  const sum = weighed.reduce((all, { odds }) => all + odds, 1)
  const supported = weighed.map((one) => ({ ...one, support: toSupport(one, weighed) }))
  const best = supported.toSorted(compareCandidates)[0]
  const strong = weighed.filter(({ isStrong }) => isStrong)
  const identifiersShared =
    strong.some(({ hasOtherHardware }) => hasOtherHardware) || areOfSeveral(strong)
  if (best === undefined) return { link: null, identifiersShared }
  const confidence = best.support / sum
  const kind = toKind(best, { confidence, thresholds, identifiersShared })
  if (kind === null) return { link: null, identifiersShared }
  const { phone, evidence } = best
  return { link: { kind, phoneId: phone.phoneId, confidence, evidence }, identifiersShared }
}

/**
 * Whether the install has an identifier of one phone and another identifier of another phone. Two
 * phones that have the same one may be one phone that was not recognised.
 */
const areOfSeveral = (strong: readonly Candidate[]): boolean =>
  strong.some(({ equal }) =>
    strong.some(
      (other) =>
        equal.some((name) => other.different.includes(name)) &&
        other.equal.some((name) => !equal.includes(name)),
    ),
  )

type Certainty = { confidence: number; thresholds: LinkThresholds; identifiersShared: boolean }

function toKind(
  { phone, isStrong, mayLink }: Candidate,
  { confidence, thresholds, identifiersShared }: Certainty,
): Link['kind'] | null {
  if (confidence < thresholds.possible) return null
  const mayGrow = phone.installCount < phoneInstallsMax || isStrong
  const isLinked = confidence >= thresholds.linked && mayLink && mayGrow && !identifiersShared
  return isLinked ? 'linked' : 'possible'
}

function weigh(
  install: InstallTraits,
  phone: KnownPhone,
  holdersOf: (key: string) => number,
  parameters: IdentityParameters,
): Candidate {
  const compared = comparePhone(install, phone.installs)
  const identifiers = compared.filter(({ field }) => field === 'identifier')
  const equal = identifiers.filter(({ level }) => level > 0)
  const different = identifiers.filter(({ level }) => level === 0)
  const isStrong = equal.some(({ key }) => holdersOf(key!) <= strongSharersMax)
  const ofOneUser = isOfOneUser(compared)
  const evidence = compared.map((one) => {
    const holders = one.key === null ? null : holdersOf(one.key)
    // A reset and a sale change the other identifiers, the user and the start at once. Beside a
    // strong identifier in common that one event does not speak against it several times.
    const isOfReset = isStrong && one.level === 0 && one.field !== 'traits'
    const among = { holders: holders ?? 1, ofOneUser }
    const weight = isOfReset ? 0 : toWeight(parameters, one, among)
    return { field: toFieldName(one), level: one.level, weight, holders }
  })
  const weight = evidence.reduce((all, one) => all + one.weight, 0)
  const { returning, phones } = parameters
  return {
    phone,
    evidence,
    odds: (returning / (1 - returning) / phones) * Math.exp(weight),
    isStrong,
    mayLink: isStrong || (ofOneUser && different.length === 0),
    hasOtherHardware: compared.some(({ field, level }) => field === 'traits' && level === 0),
    equal: equal.map(({ name }) => name),
    different: different.map(({ name }) => name),
  }
}

/**
 * The odds of being on a phone, also as one that was not recognised: what speaks for a phone that
 * may be the same one speaks for it as far as that is certain.
 */
function toSupport({ phone, odds }: Candidate, all: readonly Candidate[]): number {
  const ofOthers = all.map(({ phone: other, odds: theirs }) => {
    const isSame = ({ possible }: KnownPhone, { phoneId }: KnownPhone) =>
      possible?.phoneId === phoneId ? possible.confidence : 0
    return theirs * Math.max(isSame(phone, other), isSame(other, phone))
  })
  return ofOthers.reduce((sum, one) => sum + one, odds)
}

type Supported = Candidate & { support: number }

/** The likeliest first; of equal ones the same, whatever their order was. */
function compareCandidates(a: Supported, b: Supported): number {
  return b.support - a.support || (a.phone.phoneId < b.phone.phoneId ? -1 : 1)
}
