/**
 * Rows of every kind for one ClickHouse, inserted by the product's own stores: shadow decisions,
 * prevalence spikes, and an hour that is reconciled.
 */
import { createHash } from 'node:crypto'
import { hourMs } from '#shared/core/base/instants.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import { compileShadow, decideShadow } from '#shared/core/policies/shadow.ts'
import { toReconciliationHour } from '#shared/core/reconciliation/reconciliation.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { differsFromEdge } from '#shared/core/velocity/edge-risk.ts'
import { decideRisk, noRiskFeatures } from '#shared/core/velocity/risk.ts'
import {
  createPrevalenceSpikeStore,
  type StoredSpike,
} from '#shared/io/analytics/prevalence-spike-store.ts'
import { markRound } from '#shared/io/analytics/replica-rows-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createReplayWriter } from '#shared/io/installs/replay-store.ts'
import {
  createShadowDecisionWriter,
  type ShadowDecision,
} from '#shared/io/policies/shadow-decision-store.ts'
import {
  createReconciliationWriter,
  insertAcceptedClaims,
  markDecided,
} from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import { createDecisionWriter } from '#shared/io/telemetry/decision-store.ts'
import { inTime } from '../process/until.ts'

const minuteMs = 60_000

/** The decisions of a shadow policy on all events, and of its next version on some of them. */
export async function insertShadowDecisions(
  clickhouse: Clickhouse,
  events: readonly AcceptedEvent[],
): Promise<void> {
  const { insertDecisions } = createShadowDecisionWriter(clickhouse)
  await inTime(async () => {
    await insertDecisions(events.map((event) => toShadowDecision(event, 1)))
    await insertDecisions(events.slice(0, 50).map((event) => toShadowDecision(event, 2)))
    return true
  })
}

/** The decisions on all events as the scorer makes them without risk features. */
export async function insertDecisions(
  clickhouse: Clickhouse,
  events: readonly AcceptedEvent[],
): Promise<void> {
  const decided = events.map((event) => {
    return { event, risk: decideRisk(event, defaultPolicy, noRiskFeatures) }
  })
  const different = decided.filter(({ event, risk }) => differsFromEdge(event, risk))
  await inTime(async () => {
    await createDecisionWriter(clickhouse).insertDecisions(different)
    return true
  })
}

/** What the scorer writes of copies that came an hour after their event. */
export async function insertReplays(
  clickhouse: Clickhouse,
  copied: readonly AcceptedEvent[],
): Promise<void> {
  const replays = copied.map((event) => {
    return {
      event: { ...event, received_at: event.received_at + hourMs },
      firstAtMs: event.received_at,
      networkChanged: false,
    }
  })
  await inTime(async () => {
    await createReplayWriter(clickhouse).insertReplays(replays)
    return true
  })
}

const { root } = defaultPolicy.categories
/** Blocks what the active policy reviews. */
const shadowPolicy: Policy = {
  ...defaultPolicy,
  name: 'hard on root',
  categories: {
    ...defaultPolicy.categories,
    root: { ...root, cap: 90, signals: { ...root.signals, magisk_detected: 90 } },
  },
}
export const shadowHash = toPolicyHash(shadowPolicy)
const shadow = compileShadow(shadowPolicy)
const toShadowDecision = (event: AcceptedEvent, version: number): ShadowDecision => ({
  event,
  risk: decideRisk(event, defaultPolicy, noRiskFeatures),
  shadow: {
    version,
    policyHash: shadowHash,
    verdict: decideShadow(event, shadow, noRiskFeatures),
  },
})

/** As `reinterpretAsUInt64(SHA256(tenant_id))` computes it. */
export const hashOfTenant = (tenantId: string) =>
  String(createHash('sha256').update(tenantId).digest().readBigUInt64LE())
export const spikeTenants = [
  'acme',
  'globex',
  ...Array.from({ length: 10 }, (_, n) => `tenant-${n}`),
]
/** Of events of `acme`. */
export const spikeKey = { platform: 'android', sdkVersion: '4.2.0', signal: 'root.magisk_detected' }

/** A spike of each tenant, checked twice: every other one has ended by then. */
export async function insertSpikes(clickhouse: Clickhouse, nowMs: number): Promise<void> {
  const store = createPrevalenceSpikeStore(clickhouse)
  const found: StoredSpike = {
    ...spikeKey,
    startedAtMs: nowMs - 24 * 60 * minuteMs,
    checkedAtMs: nowMs - 60 * minuteMs,
    endedAtMs: null,
    prevalence: 0.4,
    earlierPrevalence: 0.01,
    elsewherePrevalence: null,
    zScore: 9,
    devices: 12,
    alerts: 3,
  }
  for (const [index, tenantId] of spikeTenants.entries()) {
    await store.saveSpikes(tenantId, [found])
    const endedAtMs = index % 2 === 0 ? null : nowMs
    await store.saveSpikes(tenantId, [{ ...found, checkedAtMs: nowMs, endedAtMs, devices: 14 }])
  }
  await store.markChecked(nowMs)
}

/** The events of `acme` in the hour that is reconciled, each once. */
export const findReconciledEvents = (events: readonly AcceptedEvent[], nowMs: number) =>
  events.filter(
    (event, index) =>
      event.tenant_id === 'acme' &&
      event.received_at >= toReconciliationHour(nowMs) &&
      events.findIndex(({ event_id }) => event_id === event.event_id) === index,
  )

/** Every stage has had the events, and a round of the replication has copied what followed. */
export async function insertReconciliation(
  clickhouse: Clickhouse,
  events: readonly AcceptedEvent[],
  nowMs: number,
): Promise<void> {
  const hourMs = toReconciliationHour(nowMs)
  const some = findReconciledEvents(events, nowMs)
  const writer = createReconciliationWriter(clickhouse)
  const entries = some.map((event) => ({
    tenantId: 'acme',
    hourMs,
    streamOffset: event.streamOffset,
    events: 1,
    refused: 0,
    publishedMs: event.received_at,
    named: [event],
  }))
  for (const stage of ['stored', 'decided'] as const) {
    const named = (event: AcceptedEvent[]) => (stage === 'stored' ? event : [])
    await writer.insertEntries(
      entries.map((entry) => ({ ...entry, stage, named: named(entry.named) })),
    )
  }
  await insertAcceptedClaims(clickhouse, [
    { edge_id: 'edge', hour_ms: hourMs, accepted: { acme: some.length } },
  ])
  await markDecided(clickhouse, {
    marks: [{ stream: 1, streamOffset: Number.MAX_SAFE_INTEGER }],
    atMs: nowMs,
  })
  await markRound(clickhouse, { round: 2, copiedAtMs: nowMs + minuteMs })
}
