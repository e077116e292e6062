/** Rows as a scorer leaves them of accepted events, inserted without one. */
import { decideAlert } from '#shared/core/alerts/decide-alert.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toDecidedEntries, toStoredEntries } from '#shared/core/reconciliation/reconciliation.ts'
import { type AcceptedEvent, decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import { differsFromEdge } from '#shared/core/velocity/edge-risk.ts'
import { decideRisk, noRiskFeatures } from '#shared/core/velocity/risk.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { createReconciliationWriter } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import { createDecisionWriter } from '#shared/io/telemetry/decision-store.ts'
import { readStream } from '#shared/io/telemetry/stream-incarnations.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { type EventFacts, makeMessage } from './accepted-events.ts'
import type { ScorerRig } from './scorer-rig.ts'
import { proveBatch } from './telemetry-proof.ts'

/**
 * Publishes each list as one message of the first stream and acknowledges it for the scorers, none
 * of which may run; then inserts what follows from the events, without what is known of devices.
 * @returns each event, also a repeat
 */
export async function storeDirectly(
  { nats, postgres, clickhouse }: Pick<ScorerRig, 'nats' | 'postgres' | 'clickhouse'>,
  ...batches: readonly EventFacts[][]
): Promise<AcceptedEvent[]> {
  const { stream, subject, scorer, decider } = nats.telemetryStreams[0]!
  const { offsets } = await readStream(nats, postgres, stream)
  const messages = []
  for (const batch of batches) {
    const data = makeMessage(batch)
    const { seq } = await nats.jetstream.publish(subject, data, { headers: proveBatch(data) })
    const streamOffset = offsets.of(seq)
    messages.push({ streamOffset, events: decodeBatch(data, streamOffset).events })
  }
  for (const durable of [scorer, decider]) {
    const consumer = await nats.jetstream.consumers.get(stream, durable)
    for (const _ of messages) await (await consumer.next())!.ackAck()
  }
  const events = messages.flatMap((message) => message.events)
  await createTelemetryStore(clickhouse).insertTelemetry(events)
  const repeats = new Set(
    events.filter(({ event_id: id }, at) => events.findIndex((one) => one.event_id === id) < at),
  )
  const decided = events
    .filter((event) => !repeats.has(event))
    .map((event) => ({ event, risk: decideRisk(event, defaultPolicy, noRiskFeatures) }))
  await createDecisionWriter(clickhouse).insertDecisions(
    decided.filter(({ event, risk }) => differsFromEdge(event, risk)),
  )
  const raised = decided.flatMap(({ event, risk }) => {
    const candidate = decideAlert(event, risk)
    return candidate === null ? [] : [{ event, candidate }]
  })
  const { insertEntries, insertExpectedAlerts } = createReconciliationWriter(clickhouse)
  await insertEntries(
    messages.flatMap((message) => [
      ...toStoredEntries({ ...message, publishedMs: Date.now() }, new Set(), Date.now()),
      ...toDecidedEntries(message, repeats),
    ]),
  )
  await insertExpectedAlerts(
    raised.map(({ event, candidate }) => ({ alertId: candidate.alertId, event })),
  )
  await raiseAlerts(
    postgres,
    raised.map(({ candidate }) => candidate),
  )
  return events
}
