/**
 * Activity of a fleet that has reported for some time: an event has three rows, of its device,
 * which has ten sessions, of its session and of its user.
 */
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { ActivitySubject } from '#shared/io/velocity/activity-subjects.ts'

export const rowsPerEvent = 3
const sessionsPerDevice = 10
const rowsPerInsert = 1_000_000

const firstMs = Date.now() - 86_400_000
const msPerEvent = 5

/** Rows of the events from `from` on, as the view on telemetry would make them. */
export async function fillActivity(
  clickhouse: Clickhouse,
  { tenantId, from, to }: { tenantId: string; from: number; to: number },
): Promise<void> {
  const perInsert = Math.floor(rowsPerInsert / rowsPerEvent)
  for (let at = from; at < to; at += perInsert) {
    const count = Math.min(perInsert, to - at)
    await clickhouse.command({
      query: `
        insert into activity (tenant_id, key_hash, stream_offset, received_at, event_hash,
          packed_facts)
        select '${tenantId}',
          reinterpretAsUInt64(SHA256(concat(kind, ' ', kind, '-',
            toString(if(kind = 'session', event, ${deviceOf('event')}))))),
          event + 1, fromUnixTimestamp64Milli(toInt64(${firstMs} + event * ${msPerEvent}))
            as received_at,
          reinterpretAsUInt64(SHA256(concat('event-', toString(event)))) as event_hash,
          toFixedString(concat(toFixedString(if(
            kind = 'device',
            concat(
              reinterpretAsFixedString(sipHash64('session', event)),
              reinterpretAsFixedString(sipHash64('user', ${deviceOf('event')})),
              repeat('\\0', 8),
              reinterpretAsFixedString(toUInt64(1))
            ),
            concat(
              repeat('\\0', if(kind = 'user', 48, 56)),
              reinterpretAsFixedString(sipHash64('device', ${deviceOf('event')}))
            )
          ), 64), reinterpretAsFixedString(event_hash),
            reinterpretAsFixedString(toUnixTimestamp64Milli(received_at))), 80)
        from (select number + ${at} as event from numbers(${count}))
        array join ['device', 'session', 'user'] as kind`,
    })
  }
}

/** Devices report in rotation, ten times each while the table grows by ten times their number. */
const devices = 300_000 / sessionsPerDevice
const deviceOf = (event: string) => `intDiv(${event}, ${devices * sessionsPerDevice}) * ${devices}
  + ${event} % ${devices}`
const toDevice = (event: number) =>
  Math.floor(event / (devices * sessionsPerDevice)) * devices + (event % devices)

/** An event of the fleet, as a scorer asks about it. */
export function toSubject(tenantId: string, event: number): ActivitySubject {
  const device = toDevice(event)
  return {
    tenantId,
    deviceId: `device-${device}`,
    sessionId: `session-${event}`,
    userIds: [`user-${device}`],
    network: null,
    eventId: `event-${event}`,
    streamOffset: event + 1,
    receivedAtMs: firstMs + event * msPerEvent,
    rules: defaultPolicy.velocity,
    assertion: null,
    seeksReplay: false,
  }
}
