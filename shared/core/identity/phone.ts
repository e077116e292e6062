/**
 * The phone that an install is on: what the service decided, unless an analyst corrected it. Which
 * installs a phone has, and how many, follows from both.
 */
import type { LinkKind, PhoneEvidence } from './phone-schemas.ts'

/** What the service decided of an install, which never changes. */
export type StoredLink = {
  deviceId: string
  phoneId: string
  kind: LinkKind
  /** The phone that it may be on, too uncertain to be joined; empty without one. */
  possiblePhoneId: string
  /** Of the link to `phoneId`, or to `possiblePhoneId` of a possible one; 1 of a first install. */
  confidence: number
  evidence: PhoneEvidence[]
  identifiersShared: boolean
  decidedAtMs: number
}

/** A correction that counts. */
export type CountedCorrection = {
  correctionId: string
  deviceId: string
  /** The phone that the service decided. */
  fromPhoneId: string
  phoneId: string
}

/** The phone of an install, beside how sure that is. */
export type DevicePhone = { phoneId: string; confidence: number; installs: number }

/**
 * The phone that an install counts as on, and how certain that is. One that may be on another phone
 * is on its own as far as it is not on that one. What an analyst says is certain.
 */
export function toPresentPhone(
  link: Pick<StoredLink, 'phoneId' | 'kind' | 'confidence'>,
  correction: CountedCorrection | undefined,
): Omit<DevicePhone, 'installs'> {
  if (correction !== undefined) return { phoneId: correction.phoneId, confidence: 1 }
  return { phoneId: link.phoneId, confidence: toConfidence(link) }
}

/** How certain it is that an install is on the phone that the service decided. */
export const toConfidence = ({ kind, confidence }: Pick<StoredLink, 'kind' | 'confidence'>) =>
  toShown(kind === 'possible' ? 1 - confidence : confidence)

/** Six digits: ClickHouse has 32 bits of it, whose decimal text is longer than what they say. */
export const toShown = (confidence: number): number => Math.round(confidence * 1e6) / 1e6

/**
 * How many installs a phone has.
 * @param decided on it, as the service decided
 * @param corrections those to or from the phone that count
 */
export function countInstalls(
  phoneId: string,
  decided: number,
  corrections: readonly CountedCorrection[],
): number {
  const added = corrections.filter((one) => one.phoneId === phoneId && one.fromPhoneId !== phoneId)
  const taken = corrections.filter((one) => one.phoneId !== phoneId && one.fromPhoneId === phoneId)
  // An erased install can still be in a copy of either store for a moment.
  return Math.max(0, decided + added.length - taken.length)
}
