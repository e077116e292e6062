/**
 * The second stage of a batch of messages: ask what is known, decide, raise, hint. It runs once
 * everything before and in the batch is stored, and counts for each event only what came before it.
 * So what is decided is a function of the stream alone: the same however messages are batched,
 * repeated or shared among scorers. Every step is idempotent.
 */
import { type AlertDraft, decideAlert } from '#shared/core/alerts/alert-rules.ts'
import { defaultPolicy, type Policy } from '#shared/core/policies/policy.ts'
import { type LedgerMessage, toDecidedEntries } from '#shared/core/reconciliation/ledger.ts'
import { type AcceptedEvent, toStreamOffset } from '#shared/core/telemetry/messages.ts'
import { decideRisk } from '#shared/core/velocity/risk.ts'
import type { RaisedAlert, RaiseOutcome } from '#shared/io/alerts/alert-raising-store.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume.ts'
import type { LedgerWriter } from '#shared/io/reconciliation/ledger-rows-store.ts'
import type { EarlierQuestion } from '#shared/io/telemetry/session-events-store.ts'
import type { KnownStore } from '#shared/io/velocity/known-store.ts'
import type { ScorerObserver } from '../observe.ts'
import type { Decided, ShadowDecisions } from '../shadow/shadow-decisions.ts'
import type { DecodedMessages } from '../store/decoded-messages.ts'

export type DecideBatchDeps = {
  messages: DecodedMessages
  findKnown: KnownStore['findKnown']
  findPolicy: (policyHash: string) => Promise<Policy | null>
  /** The sequence up to which every message is decided. */
  readDecidedFloor: () => Promise<number>
  findEarlierEvents: (question: EarlierQuestion) => Promise<AcceptedEvent[]>
  ledger: LedgerWriter
  /** Those of the drafts that have not been raised yet. */
  findUnraised: (drafts: readonly AlertDraft[]) => Promise<AlertDraft[]>
  raiseAlerts: (drafts: readonly AlertDraft[]) => Promise<RaiseOutcome>
  publishHints: (raised: readonly RaisedAlert[]) => Promise<void>
  /** What shadow policies would have decided. */
  shadow: ShadowDecisions
  observe: ScorerObserver
}

/** An alert that an event deserves. */
type Deserved = { event: AcceptedEvent; draft: AlertDraft }

/**
 * Decides on messages whose events, and all before them, are stored.
 * @throws when a store cannot be reached: nothing is lost, the batch is to be repeated
 */
export async function decideBatch(
  batch: readonly ConsumedMessage[],
  deps: DecideBatchDeps,
): Promise<void> {
  const decided = await raiseBatch(batch, deps)
  // Last, and whatever becomes of it: nobody is alerted by a shadow, and nobody waits for one.
  await deps.shadow.record(decided)
}

/** @returns every event that was decided, those whose bytes had come before left out */
async function raiseBatch(
  batch: readonly ConsumedMessage[],
  deps: DecideBatchDeps,
): Promise<Decided[]> {
  const { messages, observe } = deps
  // Poison was put aside when it was to be stored.
  const taken = batch.map((message) => ({
    streamOffset: toStreamOffset(message.streamCreatedMs, message.sequence),
    events: messages.take(message).events,
  }))
  const events = taken.flatMap((message) => message.events)
  const repeats = new Set<AcceptedEvent>()
  const decided = await decide(events, deps, (event) => {
    observe.retried()
    repeats.add(event)
  })
  const firsts = toFirsts(toDeserved(decided))
  const drafts = firsts.map((one) => one.draft)
  // What is due is written down before it is raised: no alert is there that is not.
  const [noted, found] = await Promise.allSettled([
    observe.timed('ledger', note(taken, repeats, firsts, deps)),
    firsts.length === 0 ? [] : observe.timed('raised', deps.findUnraised(drafts)),
  ])
  if (noted.status === 'rejected') throw noted.reason
  if (found.status === 'rejected') throw found.reason
  const unraised = new Set(found.value)
  observe.existing(firsts.length - unraised.size)
  const fresh = firsts.filter((one) => unraised.has(one.draft))
  if (fresh.length === 0) return decided
  const undecided = await isAnyUndecided(batch, deps)
  const earlier = undecided
    ? await observe.timed('session', decideEarlier(fresh, events, deps))
    : []
  const freshIds = new Set(fresh.map((one) => one.draft.alertId))
  const wanted = toFirsts([...fresh, ...earlier])
    .map((one) => one.draft)
    .filter((draft) => freshIds.has(draft.alertId))
  // Alerts, deliveries and counters, all or nothing.
  const raised = await observe.timed('raise', deps.raiseAlerts(wanted))
  observe.raised(wanted, raised)
  // A lost hint costs a second: delivery sweeps for what is due.
  await observe.timed('hint', deps.publishHints(raised.raised))
  return decided
}

/** Says in the ledger what was decided, and which alerts are due. */
async function note(
  taken: readonly LedgerMessage[],
  repeats: ReadonlySet<AcceptedEvent>,
  firsts: readonly Deserved[],
  { ledger }: DecideBatchDeps,
): Promise<void> {
  const results = await Promise.allSettled([
    ledger.insertEntries(taken.flatMap((message) => toDecidedEntries(message, repeats))),
    ledger.insertDueAlerts(firsts.map(({ event, draft }) => ({ alertId: draft.alertId, event }))),
  ])
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

/** Of several events that deserve one alert the first in the stream is what it tells of. */
function toFirsts(deserved: readonly Deserved[]): Deserved[] {
  const firsts = new Map<string, Deserved>()
  for (const one of deserved) {
    const key = `${one.draft.tenantId} ${one.draft.alertId}`
    const present = firsts.get(key)
    if (present === undefined || isBefore(one.event, present.event)) firsts.set(key, one)
  }
  return [...firsts.values()]
}

function isBefore(a: AcceptedEvent, b: AcceptedEvent): boolean {
  return a.streamOffset === b.streamOffset
    ? a.event_id < b.event_id
    : a.streamOffset < b.streamOffset
}

/**
 * Whether messages before or between those of this batch are still in other hands. If not, every
 * alert that an earlier event deserved has been raised, and nothing needs to be looked up.
 */
async function isAnyUndecided(
  batch: readonly ConsumedMessage[],
  { readDecidedFloor }: DecideBatchDeps,
): Promise<boolean> {
  const sequences = new Set(batch.map((message) => message.sequence))
  const first = Math.min(...sequences)
  const between = Math.max(...sequences) - first + 1 - sequences.size
  return between > 0 || (await readDecidedFloor()) < first - 1
}

/**
 * Decides the earlier events of the sessions that alerts are about to be raised for, when another
 * batch has them: one of them may deserve the same alert, and it comes first.
 */
async function decideEarlier(
  fresh: readonly Deserved[],
  events: readonly AcceptedEvent[],
  deps: DecideBatchDeps,
): Promise<Deserved[]> {
  const earlier = await deps.findEarlierEvents({
    parts: fresh.map(({ event }) => ({
      tenantId: event.tenant_id,
      deviceId: event.body.device_id,
      sessionId: event.body.session_id,
      beforeStreamOffset: event.streamOffset,
    })),
    known: events.map((event) => event.streamOffset),
  })
  return toDeserved(await decide(earlier, deps, () => undefined))
}

function toDeserved(decided: readonly Decided[]): Deserved[] {
  return decided.flatMap(({ event, risk }) => {
    const draft = decideAlert(event, risk)
    return draft === null ? [] : [{ event, draft }]
  })
}

async function decide(
  events: readonly AcceptedEvent[],
  { findKnown, findPolicy, observe }: DecideBatchDeps,
  onRetry: (event: AcceptedEvent) => void,
): Promise<Decided[]> {
  if (events.length === 0) return []
  const policies = new Map<string, Policy>()
  for (const hash of new Set(events.map((event) => event.policy_hash))) {
    const policy = await findPolicy(hash)
    // The edge's own verdict stands; only what is correlated falls back to the default's rules.
    if (policy === null) observe.unknownPolicy()
    policies.set(hash, policy ?? defaultPolicy)
  }
  const policyOf = (event: AcceptedEvent) => policies.get(event.policy_hash)!
  const found = await observe.timed('known', findKnown(events, policyOf))
  const decided: Decided[] = []
  events.forEach((event, index) => {
    const known = found[index]!
    const policy = policyOf(event)
    // The same bytes again: decided when they first came, by what was known of the device then.
    if (known.retry) onRetry(event)
    else decided.push({ event, policy, known, risk: decideRisk(event, policy, known) })
  })
  return decided
}
