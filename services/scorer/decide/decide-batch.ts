/**
 * The second stage of a batch: load risk features, decide, raise alerts, publish hints. It runs
 * when the batch and everything before it are stored, and an event counts only earlier events. So
 * decisions are a function of the stream, however messages are batched, repeated or shared among
 * scorers. Every step is idempotent.
 */
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import { decideAlert } from '#shared/core/alerts/decide-alert.ts'
import type { DecidedLink } from '#shared/core/identity/decide-link.ts'
import { type FirstCopy, isReplay } from '#shared/core/installs/replays.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import {
  type ReconciliationMessage,
  toDecidedEntries,
} from '#shared/core/reconciliation/reconciliation.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { differsFromEdge } from '#shared/core/velocity/edge-risk.ts'
import { decideRisk } from '#shared/core/velocity/risk.ts'
import type { RaisedAlert, RaiseOutcome } from '#shared/io/alerts/raise-alerts.ts'
import type { Phones } from '#shared/io/identity/phones.ts'
import type { ReplayedEvent, ReplayWriter } from '#shared/io/installs/replay-store.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import type { ReconciliationWriter } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import type { DecisionWriter } from '#shared/io/telemetry/decision-store.ts'
import type { EarlierEventsQuery } from '#shared/io/telemetry/session-events-store.ts'
import type { RiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import type { ScorerObserver } from '../metrics.ts'
import type { Decided, ShadowDecisions } from '../shadow/shadow-decisions.ts'
import type { DecodedMessages } from '../store/decoded-messages.ts'

export type DecideBatchDeps = {
  messages: DecodedMessages
  loadRiskFeatures: RiskFeatureStore['loadRiskFeatures']
  findPolicy: (policyHash: string) => Promise<Policy | null>
  /** The sequence up to which every message is decided. */
  readDecidedWatermark: () => Promise<number>
  findEarlierEvents: (query: EarlierEventsQuery) => Promise<AcceptedEvent[]>
  reconciliation: ReconciliationWriter
  decisions: DecisionWriter
  replays: ReplayWriter
  phones: Pick<Phones, 'insertLinks'>
  /** The candidates that have no alert yet. */
  findUnraised: (candidates: readonly AlertCandidate[]) => Promise<AlertCandidate[]>
  raiseAlerts: (candidates: readonly AlertCandidate[]) => Promise<RaiseOutcome>
  publishHints: (raised: readonly RaisedAlert[]) => Promise<void>
  shadow: ShadowDecisions
  observe: ScorerObserver
}

/** An alert candidate with its event. */
type CandidateOfEvent = { event: AcceptedEvent; candidate: AlertCandidate }

/**
 * Decides on messages. They and all messages before them must be stored.
 * @throws when a store cannot be reached; repeat the batch then
 */
export async function decideBatch(
  batch: readonly ConsumedMessage[],
  deps: DecideBatchDeps,
): Promise<void> {
  const decided = await raiseBatch(batch, deps)
  // Last: a shadow policy raises no alert and delays none.
  await deps.shadow.record(decided)
}

/** @returns the decided events, without events whose bytes were received before */
async function raiseBatch(
  batch: readonly ConsumedMessage[],
  deps: DecideBatchDeps,
): Promise<Decided[]> {
  const { messages, observe } = deps
  // The store stage has stored dead letters.
  const decoded = batch.map((message) => ({
    streamOffset: message.streamOffset,
    events: messages.decodeToDecide(message).events,
  }))
  const events = decoded.flatMap((message) => message.events)
  const repeats = new Set<AcceptedEvent>()
  const replays: ReplayedEvent[] = []
  const links = new Map<string, DecidedLink>()
  const decided = await decide(events, deps, {
    onRetry: (event, first) => {
      observe.retried()
      repeats.add(event)
      if (isReplay({ ...first, atMs: event.received_at })) replays.push({ event, ...first })
    },
    onLink: (link) => links.set(`${link.tenantId} ${link.deviceId}`, link),
  })
  const expected = keepFirstOfEachAlert(toCandidates(decided))
  const raise = async () => {
    // Record expected alerts before raising them, so every alert has its record.
    const recording = recordDecided(decoded, repeats, expected, deps)
    const [recorded, fresh] = await Promise.allSettled([
      observe.timed('reconciliation', recording),
      listFresh(expected, deps),
    ])
    if (recorded.status === 'rejected') throw recorded.reason
    if (fresh.status === 'rejected') throw fresh.reason
    if (fresh.value.length > 0) await raiseFresh(fresh.value, { batch, events }, deps)
  }
  // An alert does not wait for what is stored beside it; the acknowledgement does.
  const results = await Promise.allSettled([
    raise(),
    storeDecisions(decided, deps),
    storeReplays(replays, deps),
    storeLinks([...links.values()], deps),
  ])
  for (const result of results) if (result.status === 'rejected') throw result.reason
  return decided
}

/** Of expected alerts those that have not been raised yet. */
async function listFresh(
  expected: readonly CandidateOfEvent[],
  { findUnraised, observe }: DecideBatchDeps,
): Promise<CandidateOfEvent[]> {
  if (expected.length === 0) return []
  const finding = findUnraised(expected.map((one) => one.candidate))
  const unraised = new Set(await observe.timed('raised', finding))
  observe.existing(expected.length - unraised.size)
  return expected.filter((one) => unraised.has(one.candidate))
}

type Batch = { batch: readonly ConsumedMessage[]; events: readonly AcceptedEvent[] }

async function raiseFresh(
  fresh: readonly CandidateOfEvent[],
  { batch, events }: Batch,
  deps: DecideBatchDeps,
): Promise<void> {
  const { observe } = deps
  const undecided = await isAnyUndecided(batch, deps)
  const earlier = undecided
    ? await observe.timed('session', decideEarlier(fresh, events, deps))
    : []
  const freshIds = new Set(fresh.map((one) => one.candidate.alertId))
  const toRaise = keepFirstOfEachAlert([...fresh, ...earlier])
    .map((one) => one.candidate)
    .filter((candidate) => freshIds.has(candidate.alertId))
  // One transaction: alerts, deliveries and counters.
  const raised = await observe.timed('raise', deps.raiseAlerts(toRaise))
  observe.raised(toRaise, raised)
  // A lost hint delays a delivery by a second: the sweep finds it.
  await observe.timed('hint', deps.publishHints(raised.raised))
}

/** Stores the decisions that are not the edge's own; a batch without any costs nothing. */
async function storeDecisions(
  decided: readonly Decided[],
  { decisions, observe }: DecideBatchDeps,
): Promise<void> {
  const different = decided.filter(({ event, risk }) => differsFromEdge(event, risk))
  if (different.length === 0) return
  await observe.timed('decisions', decisions.insertDecisions(different))
  observe.differing(different.length)
}

/** Stores copies that are replays; the device's next event tells of them. */
async function storeReplays(
  replays: readonly ReplayedEvent[],
  { replays: writer, observe }: DecideBatchDeps,
): Promise<void> {
  if (replays.length === 0) return
  await observe.timed('replays', writer.insertReplays(replays))
  observe.replayed(replays.map(({ event, ...first }) => ({ ...first, atMs: event.received_at })))
}

/** Stores which phones new installs are on; a batch without any costs nothing. */
async function storeLinks(
  links: readonly DecidedLink[],
  { phones, observe }: DecideBatchDeps,
): Promise<void> {
  if (links.length === 0) return
  await observe.timed('phone_links', phones.insertLinks(links))
  observe.linked(links)
}

/** Records decided events and expected alerts for reconciliation. */
async function recordDecided(
  decoded: readonly ReconciliationMessage[],
  repeats: ReadonlySet<AcceptedEvent>,
  expected: readonly CandidateOfEvent[],
  { reconciliation }: DecideBatchDeps,
): Promise<void> {
  const results = await Promise.allSettled([
    reconciliation.insertEntries(decoded.flatMap((message) => toDecidedEntries(message, repeats))),
    reconciliation.insertExpectedAlerts(
      expected.map(({ event, candidate }) => ({ alertId: candidate.alertId, event })),
    ),
  ])
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

/** Several events can be candidates of one alert: the first in the stream raises it. */
function keepFirstOfEachAlert(all: readonly CandidateOfEvent[]): CandidateOfEvent[] {
  const firstOf = new Map<string, CandidateOfEvent>()
  for (const one of all) {
    const key = `${one.candidate.tenantId} ${one.candidate.alertId}`
    const present = firstOf.get(key)
    if (present === undefined || isBefore(one.event, present.event)) firstOf.set(key, one)
  }
  return [...firstOf.values()]
}

function isBefore(a: AcceptedEvent, b: AcceptedEvent): boolean {
  return a.streamOffset === b.streamOffset
    ? a.event_id < b.event_id
    : a.streamOffset < b.streamOffset
}

/**
 * Whether messages before or between those of this batch are still undecided. If not, every alert
 * of an earlier event has been raised, and no earlier event needs to be read.
 */
async function isAnyUndecided(
  batch: readonly ConsumedMessage[],
  { readDecidedWatermark }: DecideBatchDeps,
): Promise<boolean> {
  const sequences = new Set(batch.map((message) => message.sequence))
  const first = Math.min(...sequences)
  const between = Math.max(...sequences) - first + 1 - sequences.size
  return between > 0 || (await readDecidedWatermark()) < first - 1
}

/**
 * Decides earlier events of the sessions that get an alert, which may be in another batch. If one
 * is a candidate of the same alert, that event raises it.
 */
async function decideEarlier(
  fresh: readonly CandidateOfEvent[],
  events: readonly AcceptedEvent[],
  deps: DecideBatchDeps,
): Promise<CandidateOfEvent[]> {
  const earlier = await deps.findEarlierEvents({
    parts: fresh.map(({ event }) => ({
      tenantId: event.tenant_id,
      deviceId: event.body.device_id,
      sessionId: event.body.session_id,
      beforeStreamOffset: event.streamOffset,
    })),
    excludedStreamOffsets: events.map((event) => event.streamOffset),
  })
  // Whoever has these events stores what is found of them.
  const ignored = { onRetry: () => undefined, onLink: () => undefined }
  return toCandidates(await decide(earlier, deps, ignored))
}

function toCandidates(decided: readonly Decided[]): CandidateOfEvent[] {
  return decided.flatMap(({ event, risk, features }) => {
    const candidate = decideAlert(event, risk, features.phone?.link)
    return candidate === null ? [] : [{ event, candidate }]
  })
}

type WhileDeciding = {
  onRetry: (event: AcceptedEvent, first: FirstCopy) => void
  /** The install of an event has no stored link yet. */
  onLink: (link: DecidedLink) => void
}

async function decide(
  events: readonly AcceptedEvent[],
  { loadRiskFeatures, findPolicy, observe }: DecideBatchDeps,
  { onRetry, onLink }: WhileDeciding,
): Promise<Decided[]> {
  if (events.length === 0) return []
  const policies = new Map<string, Policy>()
  for (const hash of new Set(events.map((event) => event.policy_hash))) {
    const policy = await findPolicy(hash)
    // Without the document the default policy's velocity rules apply; the edge's score stands.
    if (policy === null) observe.unknownPolicy()
    policies.set(hash, policy ?? defaultPolicy)
  }
  const policyOf = (event: AcceptedEvent) => policies.get(event.policy_hash)!
  const found = await observe.timed('risk_features', loadRiskFeatures(events, policyOf))
  const decided: Decided[] = []
  events.forEach((event, index) => {
    const features = found[index]!
    const policy = policyOf(event)
    if (features.phone?.decided) onLink(features.phone.decided)
    // The same bytes were decided when they were first received.
    if (features.firstCopy !== null) onRetry(event, features.firstCopy)
    else decided.push({ event, policy, features, risk: decideRisk(event, policy, features) })
  })
  return decided
}
