/**
 * Compares the responses of clients with the guarantees of a rotation. An edge decides a request at
 * some instant between its start and its end; only a response that no such instant explains is a
 * breach. The result does not depend on speed.
 */
import type { Attempt } from './signed-load.ts'

/** One rotation of the HMAC secret as its caller saw it, on the clock of the attempts. */
export type SeenRotation = {
  /** Indexes of secrets. */
  oldSecret: number
  newSecret: number
  begunMs: number
  returnedMs: number
}

export type Findings = {
  /**
   * Accepted although they began after the rotation had returned and were signed with a replaced
   * secret.
   */
  oldAccepted: Attempt[]
  /**
   * 401 although they began after it had returned, ended before the next began, and used the new
   * secret.
   */
  newRefused: Attempt[]
  /** Accepted, and begun after a request with a newer secret had been accepted. */
  bothAccepted: Attempt[]
  /** Answers other than 200, 401 and 503. */
  unexpected: Attempt[]
  /** Requests that were checked for the first two lists; 0 proves nothing. */
  oldJudged: number
  newJudged: number
  statuses: Record<string, number>
}

/** @param rotations completed ones in order; they do not overlap */
export function checkAttempts(
  attempts: readonly Attempt[],
  rotations: readonly SeenRotation[],
): Findings {
  // A secret that no rotation has activated is refused from the start.
  const deadFromMs = new Map<number, number>()
  const liveFromMs = new Map<number, number>([[0, Number.NEGATIVE_INFINITY]])
  const offFromMs = new Map<number, number>()
  for (const { oldSecret, newSecret, begunMs, returnedMs } of rotations) {
    deadFromMs.set(oldSecret, returnedMs)
    offFromMs.set(oldSecret, begunMs)
    liveFromMs.set(newSecret, returnedMs)
  }
  const isDead = ({ secret, begunMs }: Attempt) =>
    begunMs > (deadFromMs.get(secret) ?? (liveFromMs.has(secret) ? Infinity : -Infinity))
  const isLive = ({ secret, begunMs, endedMs }: Attempt) =>
    begunMs > (liveFromMs.get(secret) ?? Infinity) && endedMs < (offFromMs.get(secret) ?? Infinity)
  const answered = attempts.filter(({ status }) => status !== 0)
  const old = answered.filter(isDead)
  const live = answered.filter(isLive)
  const statuses: Record<string, number> = {}
  for (const { status } of attempts) {
    const name = status === 0 ? 'no answer' : String(status)
    statuses[name] = (statuses[name] ?? 0) + 1
  }
  return {
    oldAccepted: old.filter(({ status }) => status === 200),
    newRefused: live.filter(({ status }) => status === 401),
    bothAccepted: findOverlaps(attempts),
    unexpected: answered.filter(({ status }) => ![200, 401, 503].includes(status)),
    oldJudged: old.length,
    newJudged: live.length,
    statuses,
  }
}

/** Accepted requests that began after one with a newer secret had been accepted. */
function findOverlaps(attempts: readonly Attempt[]): Attempt[] {
  const accepted = attempts.filter(({ status }) => status === 200)
  const firstEndMs: number[] = []
  for (const { secret, endedMs } of accepted) {
    firstEndMs[secret] = Math.min(firstEndMs[secret] ?? Infinity, endedMs)
  }
  // From the newest down: when any newer secret was first accepted.
  const newerWorksMs: number[] = []
  let earliestMs = Infinity
  for (let secret = firstEndMs.length - 1; secret >= 0; secret--) {
    newerWorksMs[secret] = earliestMs
    earliestMs = Math.min(earliestMs, firstEndMs[secret] ?? Infinity)
  }
  return accepted.filter(({ secret, begunMs }) => begunMs > newerWorksMs[secret]!)
}
