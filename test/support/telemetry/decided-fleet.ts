// A random fleet, stored and decided as the scorer does it, with retries and full redelivery: lists,
// test devices, placeholder ids and every kind of velocity. Its decisions are those of the decider.
import fc from 'fast-check'
import { applyListReasons, toListReasons } from '#shared/core/lists/lists.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Score } from '#shared/core/scoring/score.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { findForcedScore } from '#shared/core/telemetry/sandbox.ts'
import type { Risk } from '#shared/core/velocity/correlation.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import { createReconciliationWriter } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import { createDecisionWriter } from '#shared/io/telemetry/decision-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { createRiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import { decideBatch } from '../../../services/scorer/decide/decide-batch.ts'
import { noPhones } from '../identity/no-phones.ts'
import { type EventFacts, makeEvents, signalsOf } from './accepted-events.ts'
import { anyConnection } from './connections.ts'
import { makeDecideDeps } from './decide-deps.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

type FleetFacts = Omit<EventFacts, 'userId' | 'accountId'> & {
  userId?: string | undefined
  accountId?: string | undefined
  list: 'allow' | 'deny' | null
  agoMs: number
}

const anyFacts = (tenantIds: readonly string[]): fc.Arbitrary<FleetFacts> =>
  fc
    .record({
      tenantId: fc.constantFrom(...tenantIds),
      deviceId: fc.constantFrom('d-1', 'd-2', 'd-3', 'd-4', 'd/5 α', 'test-review', 'unknown'),
      sessionId: fc.integer({ min: 1, max: 40 }).map((n) => `s-${n}`),
      userId: fc.option(fc.constantFrom('u-1', 'u-2', 'u-3', 'u-4', 'u-5', 'guest'), {
        nil: undefined,
      }),
      accountId: fc.option(fc.constantFrom('u-1', 'u-6', 'u-7'), { nil: undefined }),
      list: fc.constantFrom(null, null, null, null, null, 'allow' as const, 'deny' as const),
      // Most within minutes, so that windows overflow; the rest over all spans of the search.
      agoMs: fc.oneof(
        fc.integer({ min: 0, max: 4 * minuteMs }),
        fc.integer({ min: 0, max: dayMs }),
        fc.integer({ min: 0, max: 33 * dayMs }),
      ),
      signals: fc.constantFrom<Record<string, unknown>>(
        ...Object.values(signalsOf),
        { emulator: { app_cloned: true } },
        { root: { su_binary: true } },
        { root: { su_binary: false, dangerous_props: true } },
      ),
      platform: fc.constantFrom('android', 'android', 'Android 14', 'iOS', 'ios'),
      appVersion: fc.constantFrom(undefined, '1.0', '2.0'),
      client: fc.constantFrom(0, 40, 90),
      connection: fc.option(anyConnection, { nil: undefined }),
    })
    .map(({ platform, appVersion, client, connection, ...facts }) => ({
      ...facts,
      ...(connection === undefined ? {} : { connection }),
      more: {
        sdk_meta: {
          sdk_version: client === 40 ? '4.3.0' : '4.2.0',
          platform,
          batch_type: 'launch',
        },
        scorer: { rasp_score: client, rasp_action: 'ALLOW', rasp_flags: ['X'] },
        ...(appVersion === undefined ? {} : { app: { version: appVersion } }),
      },
    }))

/** As an edge scores it for a sandbox tenant with lists. */
function toListed(event: AcceptedEvent, list: FleetFacts['list']): AcceptedEvent {
  const { rasp_score, rasp_action, reasons } = event
  const own: Score = { score: rasp_score, action: rasp_action, reasons }
  const scored = findForcedScore(event.body.device_id, defaultPolicy.thresholds) ?? own
  const entry = {
    entryId: 'lst_1',
    kind: 'device',
    reason: 'chargeback',
    expiresAtMs: null,
  } as const
  const listed = applyListReasons(
    scored,
    list === null ? [] : toListReasons({ decides: { ...entry, list }, silences: null }),
  )
  return {
    ...event,
    rasp_score: listed.score,
    rasp_action: listed.action,
    reasons: listed.reasons,
  }
}

/** An event as it was received first, and its decision. */
export type DecidedFact = { event: AcceptedEvent; risk: Risk }

/**
 * Stores and decides a fleet; everything comes twice, in other batches.
 * @returns each event once, newest first, by the decider's own decisions
 */
export async function decideFleet(
  clickhouse: Clickhouse,
  { tenantIds, seed, events: count }: { tenantIds: string[]; seed: number; events: number },
): Promise<DecidedFact[]> {
  const facts = fc.sample(anyFacts(tenantIds), { seed, numRuns: count })
  const nowMs = Date.now()
  const sorted = facts.sort((a, b) => b.agoMs - a.agoMs)
  const made = sorted.flatMap(({ agoMs, list, userId, accountId, ...one }, n) => {
    const fact: EventFacts = { ...one, receivedAtMs: nowMs - agoMs, nonce: n }
    if (userId !== undefined) fact.userId = userId
    if (accountId !== undefined) fact.accountId = accountId
    // A client sends the same bytes again: later, and decided when they first came.
    const again: EventFacts[] = n % 11 === 0 ? [{ ...fact, receivedAtMs: nowMs }] : []
    return [fact, ...again].map((sent) => ({ sent, list }))
  })
  const stream = makeEvents(made.map(({ sent }) => sent)).map((event, n) =>
    toListed(event, made[n]!.list),
  )
  const decided = new Map<string, DecidedFact>()
  for (const size of [37, 90]) await decideAll(clickhouse, stream, size, decided)
  return [...decided.values()].sort(
    (a, b) =>
      b.event.received_at - a.event.received_at || (a.event.event_id < b.event.event_id ? 1 : -1),
  )
}

async function decideAll(
  clickhouse: Clickhouse,
  stream: readonly AcceptedEvent[],
  size: number,
  decided: Map<string, DecidedFact>,
): Promise<void> {
  const { decide } = makeDecideDeps()
  const store = createTelemetryStore(clickhouse)
  const byOffset = new Map(stream.map((event) => [event.streamOffset, event]))
  const deps = {
    ...decide,
    loadRiskFeatures: createRiskFeatureStore(clickhouse, noPhones).loadRiskFeatures,
    decisions: createDecisionWriter(clickhouse),
    reconciliation: createReconciliationWriter(clickhouse),
    shadow: {
      record: async (all: readonly DecidedFact[]) => {
        for (const { event, risk } of all) decided.set(event.event_id, { event, risk })
      },
    },
    messages: {
      ...decide.messages,
      decodeToDecide: ({ streamOffset }: ConsumedMessage) => ({
        events: [byOffset.get(streamOffset)!],
        deadLetters: [],
      }),
    },
  }
  for (let at = 0; at < stream.length; at += size) {
    const some = stream.slice(at, at + size)
    await store.insertTelemetry(some)
    const batch = some.map(({ streamOffset }) => ({ streamOffset, sequence: streamOffset }))
    await decideBatch(batch as ConsumedMessage[], deps)
  }
}
