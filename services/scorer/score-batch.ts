/**
 * What happens to a batch of messages, as a list: decode, store, ask, decide, raise, hint. Every
 * step is idempotent, so that a batch may be repeated from its beginning at any time; the caller
 * acknowledges only after the last step.
 */
import { type AlertDraft, decideAlert } from '#shared/core/alert-rules.ts'
import { type Counts, correlate, type Risk } from '#shared/core/correlation.ts'
import { type AcceptedEvent, decodeBatch } from '#shared/core/messages.ts'
import { PoisonError } from '#shared/core/outcome.ts'
import { defaultPolicy, type Policy } from '#shared/core/policy.ts'
import { sandboxForced } from '#shared/core/sandbox.ts'
import { actions } from '#shared/core/scoring.ts'
import type { ActivityStore } from '#shared/io/activity-store.ts'
import type { RaisedAlert, RaiseOutcome } from '#shared/io/alert-raising-store.ts'
import type { ConsumedMessage } from '#shared/io/consume.ts'
import type { DeadLetter } from '#shared/io/dead-letters.ts'
import type { LaterSubject } from '#shared/io/later-events-store.ts'
import type { TelemetryStore } from '#shared/io/telemetry-store.ts'
import type { ScorerObserver } from './observe.ts'

export type ScoreBatchDependencies = {
  telemetry: TelemetryStore
  activity: ActivityStore
  findPolicy: (policyHash: string) => Promise<Policy | null>
  findLaterEvents: (subjects: readonly LaterSubject[]) => Promise<AcceptedEvent[]>
  raiseAlerts: (drafts: readonly AlertDraft[]) => Promise<RaiseOutcome>
  publishHints: (raised: readonly RaisedAlert[]) => Promise<void>
  storeDeadLetters: (letters: readonly DeadLetter[]) => Promise<void>
  observe: ScorerObserver
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
}

/**
 * Works off messages of accepted events.
 * @throws when a store cannot be reached: nothing is lost, the batch is to be repeated
 */
export async function scoreBatch(
  messages: readonly ConsumedMessage[],
  dependencies: ScoreBatchDependencies,
): Promise<void> {
  const { telemetry, observe, wallMs } = dependencies
  // 1. Decode. Poison is put aside; its neighbours go on.
  const { events, letters, again } = decode(messages)
  // 2. Store. From here on every event is in ClickHouse, in its history and in its activity.
  const outcome = await observe.timed('insert', telemetry.insertTelemetry(events))
  observe.inserted(events, wallMs(), outcome.withoutSignals.length)
  for (const event of outcome.refused) letters.push(toRefusedLetter(event))
  // 3. Put poison where somebody can look at it, before anything is acknowledged.
  await dependencies.storeDeadLetters(letters)
  // 4. Ask what is known of the devices now, and decide; also what was decided without events that
  // a killed scorer had in hand and that come only now.
  const later = await observe.timed('later', dependencies.findLaterEvents(toLaterSubjects(again)))
  const drafts = await decide(withLater(events, later), dependencies)
  if (drafts.length > 0) {
    // 5. Raise: alerts, deliveries and counters, all or nothing.
    const raised = await observe.timed('raise', dependencies.raiseAlerts(drafts))
    observe.raised(drafts, raised)
    // 6. Hint. A lost hint costs a second: delivery sweeps for what is due.
    await observe.timed('hint', dependencies.publishHints(raised.raised))
  }
  observe.dropped(letters)
}

function decode(messages: readonly ConsumedMessage[]): {
  events: AcceptedEvent[]
  letters: DeadLetter[]
  /** Those of the events whose message was delivered before. */
  again: AcceptedEvent[]
} {
  const events: AcceptedEvent[] = []
  const letters: DeadLetter[] = []
  const again: AcceptedEvent[] = []
  for (const { data, sequence, deliveries } of messages) {
    try {
      const batch = decodeBatch(data)
      events.push(...batch.events)
      if (deliveries > 1) again.push(...batch.events)
      for (const { index, detail, value } of batch.invalid) {
        const bytes = Buffer.from(JSON.stringify(value))
        letters.push({ reason: 'invalid_event', detail, id: `${sequence}-${index}`, data: bytes })
      }
    } catch (error) {
      if (!(error instanceof PoisonError)) throw error
      letters.push({ reason: error.reason, detail: error.message, id: `${sequence}`, data })
    }
  }
  return { events, letters, again }
}

function toLaterSubjects(again: readonly AcceptedEvent[]): LaterSubject[] {
  return again.map((event) => ({
    tenantId: event.tenant_id,
    deviceId: event.body.device_id,
    afterMs: event.received_at,
  }))
}

function withLater(events: AcceptedEvent[], later: readonly AcceptedEvent[]): AcceptedEvent[] {
  if (later.length === 0) return events
  const present = new Set(events.map((event) => event.event_id))
  return [...events, ...later.filter((event) => !present.has(event.event_id))]
}

function toRefusedLetter(event: AcceptedEvent): DeadLetter {
  const { bodyBytes, ...rest } = event
  const data = Buffer.from(JSON.stringify(rest))
  const detail = `event ${event.event_id} was refused by ClickHouse`
  return { reason: 'refused_by_store', detail, id: event.event_id, data }
}

async function decide(
  events: readonly AcceptedEvent[],
  { activity, findPolicy, observe }: ScoreBatchDependencies,
): Promise<AlertDraft[]> {
  const policies = new Map<string, Policy>()
  for (const hash of new Set(events.map((event) => event.policy_hash))) {
    const policy = await findPolicy(hash)
    // The edge's own verdict stands; only what is correlated falls back to the default's rules.
    if (policy === null) observe.unknownPolicy()
    policies.set(hash, policy ?? defaultPolicy)
  }
  const subjects = events.map((event) => ({
    tenantId: event.tenant_id,
    deviceId: event.body.device_id,
    eventId: event.event_id,
    receivedAtMs: event.received_at,
    rules: policies.get(event.policy_hash)!.velocity,
  }))
  const known = await observe.timed('activity', activity.countActivity(subjects))
  const drafts: AlertDraft[] = []
  events.forEach((event, index) => {
    const { counts, firstReceivedAtMs } = known[index]!
    // The same bytes again: decided when they first came, by what was known of the device then.
    if (firstReceivedAtMs !== null) {
      observe.retried()
      return
    }
    const draft = decideAlert(event, toRisk(event, counts, policies.get(event.policy_hash)!))
    if (draft !== null) drafts.push(draft)
  })
  return drafts
}

/** What the edge decided, raised by what is known of the device; never lowered. */
function toRisk(event: AcceptedEvent, counts: Counts, policy: Policy): Risk {
  const { rasp_score: score, rasp_action: action, reasons } = event
  // A test device of a sandbox rehearses one action: nothing else may raise it.
  if (reasons.some((reason) => reason.code === sandboxForced)) {
    return { riskScore: score, action, reasons }
  }
  const risk = correlate({ score, reasons }, counts, policy)
  // Only with a policy that is not the one it was scored by can the edge's action be the higher
  // one.
  return actions.indexOf(action) > actions.indexOf(risk.action) ? { ...risk, action } : risk
}
