/**
 * What agreement is worth (Fellegi and Sunter, 1969): the logarithm of how much more often two
 * installs of one phone agree than two of different phones. How often different phones agree
 * follows the value: one that many phones have says little.
 */
import type { Comparison } from './comparison.ts'
import { attestedKeyName } from './sent-identifiers.ts'

/** Shares are above 0 and below 1. */
export type FieldParameters = {
  /** How often installs of one phone compare so, by level from 0. */
  same: number[]
  /** How often different phones differ. */
  differs: number
  /**
   * By level from 1: how many other phones have a value that one phone is known to have; null where
   * values are not counted, and `chance` says how often different phones agree.
   */
  sharers: number[] | null
  chance: number | null
}

/** One version of the parameters; a decision names the version that made it. */
export type IdentityParameters = {
  version: number
  /** How many phones the tenant has. */
  phones: number
  /** The share of new installs that are on a known phone. */
  returning: number
  /** By `toFieldName`. */
  fields: Record<string, FieldParameters>
}

/** The name of a comparison's field: identifiers have their own, since some are better. */
export const toFieldName = ({ field, name }: Pick<Comparison, 'field' | 'name'>): string =>
  name === null ? field : `${field} ${name}`

/** Uptimes are days, so of random phones few started within the same four seconds. */
const bootChance = 5e-6

/** A version, and from when on events that are received are decided by it. */
export type ParametersVersion = { validFromMs: number; parameters: IdentityParameters }

/**
 * @param versions the latest first
 * @returns the one for events that were received at an instant; null before the first
 */
export const chooseVersion = (
  versions: readonly ParametersVersion[],
  receivedAtMs: number,
): IdentityParameters | null =>
  versions.find(({ validFromMs }) => validFromMs <= receivedAtMs)?.parameters ?? null

/** The field of phones of one model that have one identifier. */
export const twin = 'twin'

/** Before there is anything to learn from: cautious guesses. */
const initialFields: Record<string, FieldParameters> = {
  traits: { same: [0.02, 0.18, 0.4, 0.4], differs: 0.99, sharers: [20, 2, 0.2], chance: null },
  user: { same: [0.3, 0.7], differs: 0.999, sharers: [0.5], chance: null },
  boot: { same: [0.6, 0.4], differs: 1 - bootChance, sharers: null, chance: bootChance },
  // Which a phone hardly ever does: apps of one vendor may name a model in two ways, and an app
  // may go back to an SDK that sends less.
  model: { same: [1e-6], differs: 1, sharers: null, chance: null },
  omitted: { same: [1e-3], differs: 1, sharers: null, chance: null },
  // How many other phones of its model have an identifier of a phone, since their firmware is one:
  // where one phone had it before, and where two had it or one that was reset.
  [twin]: { same: [0.1, 0.9], differs: 0.9999, sharers: [0.01, 0.1], chance: null },
  // The clock of a phone may be set by hand, and of two phones each second is in use at a time.
  'in use': { same: [2e-3], differs: 0.5, sharers: null, chance: null },
}
/** The fields that are not learned: hardly any install of one phone has them to learn from. */
export const givenFields: ReadonlySet<string> = new Set(['model', 'omitted', 'in use'])

const toIdentifier = (differs: number): FieldParameters => ({
  same: [differs, 1 - differs],
  differs: 0.9999,
  sharers: [0.01],
  chance: null,
})
const initialIdentifier = toIdentifier(0.1)
/** What installing an app again changes, by the documentation of the platforms. */
const initialIdentifiers: Record<string, FieldParameters> = {
  [`identifier ${attestedKeyName}`]: toIdentifier(0.98),
  'identifier vendor_id': toIdentifier(0.6),
}

/**
 * How often two phones of one user agree in traits, by level from 1: people replace a phone by its
 * like. Not learned: without identifiers nothing tells such a phone from the one before.
 */
const traitsOfUser = [0.02, 0.01, 0.02]

/** The first version, of a tenant with so many phones. */
export const toInitialParameters = (phones: number): IdentityParameters => ({
  version: 0,
  phones,
  returning: 0.2,
  fields: initialFields,
})

/** A field as it is guessed before there is anything to learn from. */
export const findInitialField = (name: string): FieldParameters =>
  initialFields[name] ?? initialIdentifiers[name] ?? initialIdentifier

export function findField({ fields }: IdentityParameters, one: Comparison): FieldParameters {
  const name = toFieldName(one)
  return (givenFields.has(name) ? undefined : fields[name]) ?? findInitialField(name)
}

/** What the weight of a comparison depends on beside its field and level. */
export type Among = {
  /** How many phones have the value in common, the compared one among them. */
  holders: number
  /** Whether a user is in common too. */
  ofOneUser: boolean
}

/** How often a different phone compares so. */
function toChance(
  { sharers, chance, differs }: FieldParameters,
  { field, level }: Comparison,
  { holders, ofOneUser, phones }: Among & { phones: number },
): number {
  if (level === 0) return differs
  if (sharers === null) return chance!
  // Of a value that several have, those are what is known to share it.
  const others = holders > 1 ? holders : sharers[level - 1]!
  const least = field === 'traits' && ofOneUser ? traitsOfUser[level - 1]! : 0
  return Math.min(0.99, Math.max(least, others / phones))
}

/** The weight of a comparison: a natural logarithm, positive where it speaks for one phone. */
export function toWeight(parameters: IdentityParameters, one: Comparison, among: Among): number {
  const field = findField(parameters, one)
  const same = field.same[one.level]!
  const { phones } = parameters
  const weight = Math.log(same / toChance(field, one, { ...among, phones }))
  // A value that most phones have speaks neither for nor against.
  return one.level > 0 ? Math.max(0, weight) : weight
}

/** The weight of an identifier in common where phones of one model may have the same one. */
export function toTwinWeight(
  { fields, phones, ...rest }: IdentityParameters,
  { one, holders }: { one: Comparison; holders: number },
): number {
  const [, same] = findField({ ...rest, fields, phones }, one).same
  const { sharers } = fields[twin] ?? findInitialField(twin)
  const others = sharers![holders - 1] ?? holders
  return Math.max(0, Math.log(same! / Math.min(0.99, others / phones)))
}

/** Whether a user is in common. */
export const isOfOneUser = (compared: readonly Comparison[]): boolean =>
  compared.some(({ field, level }) => field === 'user' && level > 0)
