/**
 * What the fleet did and what it was told: one fact per event, kept while the run goes on and
 * judged at its end. "Unknown" is an outcome of its own: a request without an answer may have been
 * stored.
 */

import type { Score } from '#shared/core/scoring/score.ts'
import type { SignalBits } from '#shared/core/signals/watched-signals.ts'
import type { ClientVerdict } from '#shared/core/velocity/score-mismatch.ts'
import type { Plan } from '../phones/plan.ts'

/**
 * `accepted`: answered 200. `refused`: certainly not stored. `unknown`: asked, but no answer says
 * what became of it. Events that were never sent have no fact.
 */
type EventOutcome = 'waiting' | 'accepted' | 'refused' | 'unknown'

/** What an event says, as far as anything is expected of it. */
export type EventContent = {
  event: number
  session: number
  scored: Score
  /** The client's own verdict, as it was sent. */
  client: ClientVerdict
  /** Which watched signals it reports detected, and which clean. */
  signalBits: SignalBits
  /** The user and the account that this event names; the first is the one alerts name. */
  userIds: readonly string[]
}

export type EventFact = EventContent & {
  outcome: EventOutcome
  /** When its first request left; all times in ms from the start of the run. */
  sentMs: number
  /** When the first 200 came back. */
  acceptedMs: number | null
  /** When the last of its requests, tries and repeats included, had ended. */
  endedMs: number
}

/** A way in which the service does not agree with what was sent. */
export type Mismatch = {
  what: string
  device_id?: string
  session_id?: string
  alert_id?: string
  expected?: unknown
  got?: unknown
}

/**
 * Mismatches by the hundred thousand help nobody: all are counted, the first of a kind are kept.
 */
const mismatchesKeptMax = 50
const mismatchesKeptPerKind = 10

type Mismatches = {
  total: number
  kept: Mismatch[]
  byWhat: Record<string, number>
}

export function createMismatches(): Mismatches {
  return { total: 0, kept: [], byWhat: {} }
}

export function addMismatch(mismatches: Mismatches, mismatch: Mismatch): void {
  mismatches.total++
  const ofKind = (mismatches.byWhat[mismatch.what] ?? 0) + 1
  mismatches.byWhat[mismatch.what] = ofKind
  if (ofKind > mismatchesKeptPerKind || mismatches.kept.length >= mismatchesKeptMax) return
  mismatches.kept.push(mismatch)
}

export type Counters = {
  /** Requests of the plan that left, repeats included and tries of a retry not. */
  sent: number
  /** Requests of the plan that ended with a 200. */
  accepted: number
  refused: number
  unknown: number
  /** Further tries after a 429, a 503 or a broken connection. */
  retries: number
  repeats: number
  actions: Record<string, number>
  /** Answers and failures of single tries, by status or kind. */
  answers: Record<string, number>
}

export type SentEvents = {
  /** By event; undefined for what was not sent yet. */
  facts: (EventFact | undefined)[]
  counters: Counters
  mismatches: Mismatches
}

export function createSentEvents(plan: Pick<Plan, 'sessionOf'>): SentEvents {
  return {
    facts: new Array<EventFact | undefined>(plan.sessionOf.length),
    counters: {
      sent: 0,
      accepted: 0,
      refused: 0,
      unknown: 0,
      retries: 0,
      repeats: 0,
      actions: { ALLOW: 0, REVIEW: 0, BLOCK: 0 },
      answers: {},
    },
    mismatches: createMismatches(),
  }
}

/** Notes that a request of the plan leaves. */
export function noteSent(
  sentEvents: SentEvents,
  content: EventContent,
  nowMs: number,
  isRepeat: boolean,
): EventFact {
  sentEvents.counters.sent++
  if (isRepeat) sentEvents.counters.repeats++
  const known = sentEvents.facts[content.event]
  if (known !== undefined) return known
  const { event, session, scored, client, signalBits, userIds } = content
  const fact: EventFact = {
    event,
    session,
    scored,
    client,
    signalBits,
    userIds,
    outcome: 'waiting',
    sentMs: nowMs,
    acceptedMs: null,
    endedMs: Number.POSITIVE_INFINITY,
  }
  sentEvents.facts[event] = fact
  return fact
}

/** Notes how a request of the plan ended; the best outcome of an event's requests counts. */
export function noteEnded(
  sentEvents: SentEvents,
  fact: EventFact,
  outcome: Exclude<EventOutcome, 'waiting'>,
  nowMs: number,
): void {
  sentEvents.counters[outcome]++
  fact.endedMs = Number.isFinite(fact.endedMs) ? Math.max(fact.endedMs, nowMs) : nowMs
  if (outcome === 'accepted') {
    sentEvents.counters.actions[fact.scored.action] =
      (sentEvents.counters.actions[fact.scored.action] ?? 0) + 1
    fact.acceptedMs = Math.min(fact.acceptedMs ?? nowMs, nowMs)
    fact.outcome = 'accepted'
  } else if (fact.outcome !== 'accepted') {
    fact.outcome = outcome === 'unknown' || fact.outcome === 'unknown' ? 'unknown' : 'refused'
  }
}

/** Whether an event may have been stored. */
export function maybeStored(fact: EventFact): boolean {
  return fact.outcome !== 'refused'
}

export function isAccepted(
  fact: EventFact,
): fact is EventFact & { acceptedMs: number; outcome: 'accepted' } {
  return fact.outcome === 'accepted' && fact.acceptedMs !== null
}
