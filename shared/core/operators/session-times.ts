/** How long sessions, step-ups and invitations are valid. Pure: the caller hands in the time. */
import { dayMs, hourMs } from '../base/instants.ts'

const minuteMs = 60_000

/** A session ends after an hour without a request, and after twelve hours in any case. */
export const sessionIdleMs = hourMs
export const sessionMaxMs = 12 * hourMs
/** How long the password or a code entered again counts. */
export const stepUpMs = 10 * minuteMs
/**
 * A request updates the last use only when it is this old, so a session costs one write in half a
 * minute. A session may end that much earlier than an hour after its last request.
 */
const lastUseEveryMs = minuteMs / 2
/** Sessions of one operator; signing in once more ends the oldest. */
export const sessionsPerOperatorMax = 20

export const invitationHoursDefault = 7 * 24
export const invitationHoursMax = 30 * 24
/** How long an accepted, revoked or expired invitation stays listed. */
export const endedInvitationsMs = 30 * dayMs

export type SessionTimes = { createdAtMs: number; lastUsedAtMs: number }

/** When a session ends, by age and by disuse; the idle end is never after the other. */
export function toSessionEnds({ createdAtMs, lastUsedAtMs }: SessionTimes): {
  expiresAtMs: number
  idleExpiresAtMs: number
} {
  const expiresAtMs = createdAtMs + sessionMaxMs
  return { expiresAtMs, idleExpiresAtMs: Math.min(expiresAtMs, lastUsedAtMs + sessionIdleMs) }
}

/** Whether a session can be used at this time. A clock that went back ends no session. */
export const isSessionValid = (times: SessionTimes, nowMs: number): boolean =>
  nowMs < toSessionEnds(times).idleExpiresAtMs

/** Whether the time of the last use is to be written again. */
export const isLastUseDue = (times: SessionTimes, nowMs: number): boolean =>
  nowMs - times.lastUsedAtMs >= lastUseEveryMs
