/** A phone, and the phone of an install, as the REST API and the admin API answer them. */
import { toIso } from '../base/instants.ts'
import { type DevicePhone, type StoredLink, toConfidence, toShown } from './phone.ts'
import type { DevicePhoneAnswer } from './phone-schemas.ts'

/** An install on a phone. */
export type PhoneInstall = StoredLink & {
  /** The phone that it is on is what an analyst says. */
  isCorrected: boolean
  firstSeenAtMs: number
  lastSeenAtMs: number
  peakRiskScore: number
}

export type PhoneUser = {
  userId: string
  firstSeenAtMs: number
  lastSeenAtMs: number
  installs: number
}

export type Phone = {
  phoneId: string
  /** Latest first, `phoneInstallsShownMax` at most, one at least. */
  installs: PhoneInstall[]
  installsTotal: number
  /** Of these installs, latest first, `phoneUsersShownMax` at most. */
  users: PhoneUser[]
  usersTotal: number
}

/** The member `phone` of an answer about an install; without one while it cannot be read. */
export type PhoneField = { phone?: DevicePhoneAnswer | null }

/** @param phone undefined when nothing was decided of the install */
export const toPhoneField = (phone: DevicePhone | undefined): PhoneField => ({
  phone:
    phone === undefined
      ? null
      : { phone_id: phone.phoneId, confidence: phone.confidence, installs: phone.installs },
})

/** A phone without its alerts. */
export const toPhone = ({ phoneId, installs, installsTotal, users, usersTotal }: Phone) => ({
  phone_id: phoneId,
  first_seen_at: toIso(Math.min(...installs.map((one) => one.firstSeenAtMs))),
  last_seen_at: toIso(Math.max(...installs.map((one) => one.lastSeenAtMs))),
  risk_score: Math.max(...installs.map((one) => one.peakRiskScore)),
  installs: installs.map(toInstall),
  installs_total: installsTotal,
  users: users.map((user) => ({
    user_id: user.userId,
    first_seen_at: toIso(user.firstSeenAtMs),
    last_seen_at: toIso(user.lastSeenAtMs),
    installs: user.installs,
  })),
  users_total: usersTotal,
})

function toInstall(install: PhoneInstall) {
  const { kind, isCorrected, confidence } = install
  const isPossible = kind === 'possible'
  return {
    device_id: install.deviceId,
    link: isCorrected ? ('corrected' as const) : kind,
    confidence: isCorrected ? 1 : toConfidence(install),
    evidence: install.evidence,
    decided_phone_id: install.phoneId,
    possible_phone_id: isPossible ? install.possiblePhoneId : null,
    possible_confidence: isPossible ? toShown(confidence) : null,
    identifiers_shared: install.identifiersShared,
    first_seen_at: toIso(install.firstSeenAtMs),
    last_seen_at: toIso(install.lastSeenAtMs),
    risk_score: install.peakRiskScore,
  }
}
