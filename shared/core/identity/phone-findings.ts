/**
 * What the phone of an install adds to a decision: that it is a reinstall, that its identifiers are
 * shared, and that an earlier install of the phone is on the deny list.
 */
import { dayMs } from '../base/instants.ts'
import type { Policy } from '../policies/policy.ts'
import type { Reason } from '../scoring/score.ts'
import type { DecidedLink, PhoneLink } from './decide-link.ts'

/** The phone of an event's install. */
export type PhoneFacts = {
  link: PhoneLink
  /** The link as it was just decided, where it may not be stored yet. */
  decided: DecidedLink | null
  /** Whether an earlier install of the phone was on the deny list when the event was received. */
  hasDeniedInstall: boolean
  /** What shows that the event is of another phone than the first one of its install. */
  otherPhone: readonly string[]
}

/** How long an install counts as a reinstall. */
export const reinstalledMs = dayMs

/**
 * The reasons of a phone. They name the phone and no other install of it: an erasure of that one
 * could not find them all. A denied one lifts the score to REVIEW, or to BLOCK where the policy
 * lets correlation alone block; the others weigh nothing.
 * @param riskScore before
 */
export function findPhoneReasons(
  { link, hasDeniedInstall }: PhoneFacts,
  { received_at: receivedAtMs }: { received_at: number },
  riskScore: number,
  { thresholds, correlationAloneMax }: Pick<Policy, 'thresholds' | 'correlationAloneMax'>,
): Reason[] {
  const reasons: Reason[] = []
  const { phoneId: phone_id, confidence, installs, identifiersShared } = link
  if (hasDeniedInstall) {
    const { review, block } = thresholds
    const least = correlationAloneMax === 'BLOCK' ? Math.min(100, block) : review
    const weight = Math.max(0, least - riskScore)
    const evidence = { phone_id, confidence }
    reasons.push({ code: 'DENY_LISTED_PHONE', weight, evidence })
  }
  const isNew = receivedAtMs - link.receivedAtMs < reinstalledMs
  if (link.kind === 'linked' && isNew) {
    const evidence = { phone_id, confidence, earlier_installs: installs.length }
    reasons.push({ code: 'REINSTALLED', weight: 0, evidence })
  }
  if (identifiersShared) {
    reasons.push({ code: 'IDENTIFIERS_SHARED', weight: 0, evidence: { phone_id } })
  }
  return reasons
}
