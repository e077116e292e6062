/**
 * Decides whether a new install is on a known phone: a pure function of the phones that share a
 * value with it, of how many phones have each value, and of versioned parameters.
 */
import { phoneInstallsMax, resetSharersMax, strongSharersMax } from '../base/limits/entities.ts'
import { comparePhone, type InstallTraits, type SeenTraits } from './comparison.ts'
import { type IdentityParameters, toFieldName } from './parameters.ts'
import { type Weighed, weighComparisons } from './weigh-comparisons.ts'

export type KnownPhone = {
  phoneId: string
  installs: readonly SeenTraits[]
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
  /** The identifiers that alone speak for a phone, while another one differs. */
  doubtful: readonly string[]
}

/** Whether an identifier of an install is that of several phones, as far as its link tells which. */
export const isSharedBy = (
  { identifiersShared, doubtful }: Pick<LinkDecision, 'identifiersShared' | 'doubtful'>,
  identifier: string,
): boolean => identifiersShared && (doubtful.length === 0 || doubtful.includes(identifier))

export type LinkThresholds = { linked: number; possible: number }
export const linkThresholds: LinkThresholds = { linked: 0.99, possible: 0.8 }

type Candidate = Pick<Weighed, 'isContradicted' | 'isDoubtful'> & {
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
  /** Whether so many phones have that identifier that this one is another. */
  hasSharedIdentifier: boolean
  /** The names of identifiers that are equal, and of those that differ. */
  equal: string[]
  different: string[]
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
  const areCopied = strong.some(({ isContradicted }) => isContradicted) || areOfSeveral(strong)
  // Of an install that is known by another identifier, what its phone shares says nothing.
  const doubtful = areCopied ? [] : listDoubtful(weighed)
  const isHeld = weighed.some(({ hasSharedIdentifier }) => hasSharedIdentifier)
  const toFound = (kind: Link['kind'] | null) => ({
    identifiersShared: areCopied || (kind !== 'linked' && doubtful.length > 0 && isHeld),
    doubtful,
  })
  if (best === undefined) return { link: null, ...toFound(null) }
  const confidence = best.support / sum
  const kind = toKind(best, { confidence, thresholds, areCopied })
  if (kind === null) return { link: null, ...toFound(kind) }
  const { phone, evidence } = best
  return { link: { kind, phoneId: phone.phoneId, confidence, evidence }, ...toFound(kind) }
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

/** Of a phone that the install is on beyond doubt, an identifier in common is not doubtful. */
function listDoubtful(weighed: readonly Candidate[]): string[] {
  const names = (some: readonly Candidate[]) => some.flatMap(({ equal }) => equal)
  const known = weighed.filter(({ isContradicted }) => !isContradicted)
  const certain = new Set(names(known.filter(({ isDoubtful }) => !isDoubtful)))
  const found = names(known.filter(({ isDoubtful }) => isDoubtful))
  return [...new Set(found)].filter((name) => !certain.has(name)).sort()
}

type Certainty = { confidence: number; thresholds: LinkThresholds; areCopied: boolean }

function toKind(
  { phone, isStrong, mayLink }: Candidate,
  { confidence, thresholds, areCopied }: Certainty,
): Link['kind'] | null {
  if (confidence < thresholds.possible) return null
  const mayGrow = phone.installCount < phoneInstallsMax || isStrong
  const isLinked = confidence >= thresholds.linked && mayLink && mayGrow && !areCopied
  return isLinked ? 'linked' : 'possible'
}

function weigh(
  install: InstallTraits,
  phone: KnownPhone,
  holdersOf: (key: string) => number,
  parameters: IdentityParameters,
): Candidate {
  const observed = comparePhone(install, phone.installs).map((one) => ({
    one,
    holders: one.key === null ? null : holdersOf(one.key),
  }))
  const { weights, weight, ...facts } = weighComparisons(
    parameters,
    observed.map(({ one, holders }) => ({ one, holders: holders ?? 1 })),
  )
  const evidence = observed.map(({ one, holders }, at) => {
    return { field: toFieldName(one), level: one.level, weight: weights[at]!, holders }
  })
  const { ofOneUser, isContradicted, isDoubtful } = facts
  const identifiers = observed.filter(({ one }) => one.field === 'identifier')
  const equal = identifiers.filter(({ one }) => one.level > 0)
  const different = identifiers.filter(({ one }) => one.level === 0)
  // A phone that was reset has started since: two spaces of one phone look like two emulators.
  const isReset = !isDoubtful || !observed.some(({ one }) => one.field === 'boot' && one.level > 0)
  const isStrong = isReset && equal.some(({ holders }) => holders! <= strongSharersMax)
  const { returning, phones } = parameters
  return {
    phone,
    evidence,
    odds: (returning / (1 - returning) / phones) * Math.exp(weight),
    isStrong,
    mayLink: isStrong || (ofOneUser && different.length === 0),
    isContradicted,
    isDoubtful,
    hasSharedIdentifier:
      isDoubtful && !isContradicted && equal.every(({ holders }) => holders! > resetSharersMax),
    equal: equal.map(({ one }) => one.name!),
    different: different.map(({ one }) => one.name!),
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
