/**
 * The scorer of a simulated history: its events pass through the scorer's own two stages and into
 * its tables, as messages of a stream before every real one. Only the writing of alerts differs:
 * each is dated by the event that raised it, and its delivery has ended.
 */
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import type { ShadowVersion } from '#shared/core/policies/shadow.ts'
import { toReconciliationHour } from '#shared/core/reconciliation/reconciliation.ts'
import { toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import { findUnraised, type RaiseOutcome, raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type EndedDelivery, endDeliveries } from '#shared/io/history/simulated-history-store.ts'
import { createIdentityKeyWriter } from '#shared/io/identity/identity-key-store.ts'
import { createPhones } from '#shared/io/identity/phones.ts'
import { createInstallWriter } from '#shared/io/installs/install-store.ts'
import { createReplayWriter } from '#shared/io/installs/replay-store.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import { createPolicyDocuments } from '#shared/io/policies/policy-document-store.ts'
import { createShadowDecisionWriter } from '#shared/io/policies/shadow-decision-store.ts'
import type { Postgres, Queryable, Session } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import {
  createReconciliationWriter,
  insertAcceptedClaims,
} from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import { createDecisionWriter } from '#shared/io/telemetry/decision-store.ts'
import { findEarlierEvents } from '#shared/io/telemetry/session-events-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { createRiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import { encodeBatch, toWaiterBytes } from '../../../services/ingest/group-commit.ts'
import { type DecideBatchDeps, decideBatch } from '../../../services/scorer/decide/decide-batch.ts'
import { createScorerObserver, createShadowObserver } from '../../../services/scorer/metrics.ts'
import { createShadowDecisions } from '../../../services/scorer/shadow/shadow-decisions.ts'
import { createDecodedMessages } from '../../../services/scorer/store/decoded-messages.ts'
import { storeBatch } from '../../../services/scorer/store/store-batch.ts'
import { createRandom, type Random } from '../phones/random.ts'
import type { AcceptedVisit } from './history-edge.ts'
import { type DeliveryCourse, drawDelivery } from './history-outcomes.ts'

export type RaisedVisit = {
  candidate: AlertCandidate
  visit: AcceptedVisit
  createdAtMs: number
  /** Whether its delivery failed permanently. */
  isUndelivered: boolean
}

export type HistoryScorerOptions = {
  tenantId: string
  seed: number
  clickhouse: Clickhouse
  postgres: Postgres
  /** The versions of its shadow policy, ascending. */
  shadows: readonly ShadowVersion[]
  /** Called for a missing shadow decision, which the scorer would only log. */
  onWarning: (text: string) => void
  /** Called after each batch with the number of events decided so far. */
  onProgress: (events: number) => void
  /** Called before each batch; throws to stop. */
  checkStop: () => void
}

/** Events, and registrations between them. */
const elementsPerMessage = 100
/** With 100 elements each these are 2,000, as in a full batch of a scorer. */
const messagesPerBatch = 20
/** Alerts in one transaction: a second at most. */
const alertsPerTransaction = 200
/** Larger than a batch. */
const decodedBytesMax = 48 * 1024 * 1024
/** A batch must never be stored without its shadow decisions. */
const shadowDelayMaxMs = 60_000

/**
 * Stores and decides the events of a history, oldest first.
 * @returns the alerts that it raised, oldest first
 */
export async function scoreVisits(
  visits: readonly AcceptedVisit[],
  options: HistoryScorerOptions,
): Promise<RaisedVisit[]> {
  const { clickhouse, onProgress, checkStop } = options
  const raised: RaisedVisit[] = []
  const { store, decide } = createStages(visits, options, raised)
  const messages = toMessages(visits)
  for (let at = 0; at < messages.length; at += messagesPerBatch) {
    checkStop()
    const batch = messages.slice(at, at + messagesPerBatch)
    await storeBatch(batch, store)
    await decideBatch(batch, decide)
    const share = Math.min(1, (at + messagesPerBatch) / messages.length)
    onProgress(Math.round(visits.length * share))
  }
  await insertAcceptedClaims(clickhouse, toClaims(options.tenantId, visits))
  return raised
}

/** Messages of a stream that was created in 1970: every event of a real stream is later. */
function toMessages(visits: readonly AcceptedVisit[]): ConsumedMessage[] {
  const messages: ConsumedMessage[] = []
  const elements = visits.flatMap(({ registration, head, body, atMs }) => {
    const event = { head, body, atMs }
    return registration === null ? [event] : [{ ...registration, atMs }, event]
  })
  for (let at = 0; at < elements.length; at += elementsPerMessage) {
    const waiters = elements.slice(at, at + elementsPerMessage).map(({ head, body, atMs }) => {
      return { head, body, bytes: toWaiterBytes(head, body), arrivedMs: atMs }
    })
    const sequence = messages.length + 1
    const data = encodeBatch(waiters)
    const streamOffset = toStreamOffset(0, sequence)
    messages.push({
      data,
      proof: '',
      tracedEvents: '',
      sequence,
      streamOffset,
      publishedMs: 0,
      deliveries: 1,
    })
  }
  return messages
}

function createStages(
  visits: readonly AcceptedVisit[],
  options: HistoryScorerOptions,
  raised: RaisedVisit[],
) {
  const { clickhouse, postgres, shadows, onWarning } = options
  const nowMs = () => performance.now()
  const metrics = createMetrics('fleet')
  const observe = createScorerObserver(metrics, nowMs)
  // This process has just made the messages itself.
  const messages = createDecodedMessages(decodedBytesMax, () => true)
  const reconciliation = createReconciliationWriter(clickhouse)
  const { findPolicy } = createPolicyDocuments(postgres)
  const phones = createPhones(clickhouse, postgres)
  const { loadRiskFeatures } = createRiskFeatureStore(clickhouse, phones)
  const store = {
    messages,
    observe,
    reconciliation,
    telemetry: createTelemetryStore(clickhouse),
    installs: createInstallWriter(clickhouse),
    identities: createIdentityKeyWriter(clickhouse),
    storeDeadLetters: async ([first]: readonly { detail: string }[]) => {
      if (first !== undefined) throw new Error(`an event was not stored: ${first.detail}`)
    },
    wallMs: Date.now,
  }
  const decide: DecideBatchDeps = {
    messages,
    observe,
    reconciliation,
    decisions: createDecisionWriter(clickhouse),
    replays: createReplayWriter(clickhouse),
    phones,
    loadRiskFeatures,
    findPolicy,
    // Batches are decided one after another.
    readDecidedWatermark: async () => Number.POSITIVE_INFINITY,
    findEarlierEvents: (query) => findEarlierEvents(clickhouse, query),
    findUnraised: (candidates) => findUnraised(postgres, candidates),
    raiseAlerts: createRaise(visits, options, raised),
    publishHints: async () => {},
    shadow: createShadowDecisions({
      versions: { refresh: async () => {}, of: () => shadows, any: () => shadows.length > 0 },
      findPolicy,
      loadRiskFeatures,
      insertDecisions: createShadowDecisionWriter(clickhouse).insertDecisions,
      observe: createShadowObserver(metrics, observe.timed),
      log: { warn: ((_facts: object, text: string) => onWarning(text)) as Log['warn'] },
      nowMs,
      delayMaxMs: shadowDelayMaxMs,
    }),
  }
  return { store, decide }
}

/** Raises each alert with the date of its event, its delivery ended in the same transaction. */
function createRaise(
  visits: readonly AcceptedVisit[],
  { postgres, seed }: HistoryScorerOptions,
  raised: RaisedVisit[],
): DecideBatchDeps['raiseAlerts'] {
  const firsts = visits.filter(({ isReplay }) => !isReplay)
  const visitOf = new Map(firsts.map((visit) => [visit.eventId, visit]))
  return async (candidates) => {
    const due = candidates
      .map((candidate) => {
        const visit = visitOf.get(candidate.eventId)!
        const random = createRandom(seed, `delivery:${toAlertKey(candidate)}`)
        const createdAtMs = visit.atMs + random.int(20, 900)
        return { candidate, visit, createdAtMs, random, course: drawDelivery(random) }
      })
      .sort((a, b) => a.createdAtMs - b.createdAtMs)
    const outcome: RaiseOutcome = { raised: [], existing: 0, unknownTenants: [] }
    for (let at = 0; at < due.length; at += alertsPerTransaction) {
      const some = due.slice(at, at + alertsPerTransaction)
      await postgres.transaction(async (tx) => {
        for (const { candidate, createdAtMs } of some) {
          await raiseAlerts(inside(tx), [candidate], () => createdAtMs)
        }
        await endDeliveries(tx, some.map(toEndedDelivery))
      })
      for (const { candidate, visit, createdAtMs, course } of some) {
        const { tenantId, alertId } = candidate
        raised.push({ candidate, visit, createdAtMs, isUndelivered: course.failed })
        outcome.raised.push({ tenantId, alertId, deliveryId: toDeliveryId(alertId) })
      }
    }
    return outcome
  }
}

/** Equal in every tenant, unlike the id of an alert. */
export const toAlertKey = ({ deviceId, sessionId, action }: AlertCandidate): string =>
  `${deviceId} ${sessionId} ${action}`

/** Stores that open their own transaction work in this one. */
export const inside = (tx: Queryable): Session => ({ ...tx, transaction: (work) => work(tx) })

type DueAlert = {
  candidate: AlertCandidate
  createdAtMs: number
  course: DeliveryCourse
  random: Random
}

function toEndedDelivery({ candidate, createdAtMs, course, random }: DueAlert): EndedDelivery {
  const { delaysMs, failed } = course
  const last = delaysMs.length - 1
  return {
    deliveryId: toDeliveryId(candidate.alertId),
    createdAtMs,
    reason: failed ? 'exhausted' : null,
    attempts: delaysMs.map((delayMs, n) => ({
      atMs: createdAtMs + delayMs,
      durationMs: random.int(8, 300),
      status: n === last && !failed ? 200 : 503,
    })),
  }
}

/** The accepted events that an edge reports, by hour. */
function toClaims(tenantId: string, visits: readonly AcceptedVisit[]) {
  const counts = new Map<number, number>()
  for (const { atMs } of visits) {
    const hour = toReconciliationHour(atMs)
    counts.set(hour, (counts.get(hour) ?? 0) + 1)
  }
  return [...counts].map(([hour_ms, accepted]) => ({
    edge_id: 'history',
    hour_ms,
    accepted: { [tenantId]: accepted },
  }))
}
