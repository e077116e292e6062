/**
 * Finds the events of some devices that came after a moment. A message that is delivered again
 * holds events older than ones that were decided meanwhile, by what was known without them: those
 * are to be decided again, now that the older ones are stored.
 */
import type { AcceptedEvent } from '#shared/core/messages.ts'
import type { Reason } from '#shared/core/scoring.ts'
import type { Telemetry } from '#shared/core/telemetry.ts'
import type { Clickhouse } from './clickhouse.ts'

export type LaterSubject = { tenantId: string; deviceId: string; afterMs: number }

/** Events looked at again for one batch: some minutes of the busiest devices. */
const laterEventsMax = 10_000

type Row = [
  tenantId: string,
  eventId: string,
  receivedAtMs: number,
  raspScore: number,
  raspAction: AcceptedEvent['rasp_action'],
  reasons: string,
  policyVersion: number,
  policyHash: string,
  epoch: number,
  body: string,
]

/**
 * @returns events of these devices received after the given moments, oldest first, each once
 */
export async function findLaterEvents(
  clickhouse: Clickhouse,
  subjects: readonly LaterSubject[],
): Promise<AcceptedEvent[]> {
  if (subjects.length === 0) return []
  const after = new Map<string, number>()
  for (const { tenantId, deviceId, afterMs } of subjects) {
    const key = `${tenantId} ${deviceId}`
    after.set(key, Math.min(afterMs, after.get(key) ?? afterMs))
  }
  const result = await clickhouse.query({
    query: `
      select tenant_id, event_id, toUnixTimestamp64Milli(received_at) as at, rasp_score,
        toString(rasp_action), reasons, policy_version, policy_hash, epoch, body
      from telemetry final
      where tenant_id in {tenants:Array(String)} and device_id in {devices:Array(String)}
        and received_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
      order by at
      limit {most:UInt32}`,
    query_params: {
      tenants: [...new Set(subjects.map((one) => one.tenantId))],
      devices: [...new Set(subjects.map((one) => one.deviceId))],
      after: Math.min(...after.values()),
      most: laterEventsMax,
    },
    use_multipart_params_auto: true,
    format: 'JSONCompactEachRow',
  })
  return (await result.json<Row>()).map(toEvent).filter((event) => {
    const afterMs = after.get(`${event.tenant_id} ${event.body.device_id}`)
    return afterMs !== undefined && event.received_at > afterMs
  })
}

function toEvent(row: Row): AcceptedEvent {
  const [tenantId, eventId, receivedAtMs, score, action, reasons, version, hash, epoch, body] = row
  return {
    tenant_id: tenantId,
    event_id: eventId,
    received_at: receivedAtMs,
    rasp_score: score,
    rasp_action: action,
    reasons: JSON.parse(reasons) as Reason[],
    policy_version: version,
    policy_hash: hash,
    epoch,
    body: JSON.parse(body) as Telemetry,
  }
}
