/**
 * The record of a run: one fact per event, checked at the end. A request without a response has the
 * outcome `unknown`, because it may have been stored.
 */

import type { Score } from '#shared/core/scoring/score.ts'
import type { SignalBits } from '#shared/core/signals/watched-signals.ts'
import type { ClientVerdict } from '#shared/core/telemetry/submission.ts'
import type { Plan } from '../phones/plan.ts'

/**
 * `accepted`: answered 200. `refused`: certainly not stored. `unknown`: sent, without a response
 * that decides it. Events that were never sent have no fact.
 */
type EventOutcome = 'waiting' | 'accepted' | 'refused' | 'unknown'

/** The content of an event that expectations depend on. */
export type EventContent = {
  event: number
  session: number
  scored: Score
  /** The client's own verdict, as it was sent. */
  client: ClientVerdict
  /** Which watched signals it reports detected, and which clean. */
  signalBits: SignalBits
  /** The user and the account of this event; alerts have the first. */
  userIds: readonly string[]
}

export type EventFact = EventContent & {
  outcome: EventOutcome
  /** When its first request left; all times in ms from the start of the run. */
  sentMs: number
  /** When the first 200 came back. */
  acceptedMs: number | null
  /** When its last request, retries and repeats included, had ended. */
  endedMs: number
}

/** A difference between the service and what was sent. */
export type Mismatch = {
  what: string
  device_id?: string
  session_id?: string
  alert_id?: string
  expected?: unknown
  got?: unknown
}

/** All mismatches are counted; only the first of each kind are kept. */
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
  /** Planned requests that left, repeats included, retries not. */
  sent: number
  /** Requests of the plan that ended with a 200. */
  accepted: number
  refused: number
  unknown: number
  /** Retries after a 429, a 503 or a broken connection. */
  retries: number
  repeats: number
  actions: Record<string, number>
  /** Responses and failures of all attempts, by status or kind. */
  answers: Record<string, number>
}

export type SentEvents = {
  /** By event; undefined for events that were not sent yet. */
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

/** Records that a planned request leaves. */
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

/** Records the outcome of a planned request; the best outcome of an event's requests counts. */
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

export function isAccepted<Fact extends Pick<EventFact, 'outcome' | 'acceptedMs'>>(
  fact: Fact,
): fact is Fact & { acceptedMs: number; outcome: 'accepted' } {
  return fact.outcome === 'accepted' && fact.acceptedMs !== null
}
