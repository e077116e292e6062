/** Simulated events of one tenant for `bench -- pages`. */
import { hash } from 'node:crypto'
import { dayMs } from '#shared/core/base/instants.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { untilMergesEnd } from '../drain/merges.ts'

export const tenantId = 'bench'
/** Was seen on 200 devices. */
export const userId = 'bench-user'

/** The id of the device of this number, as ClickHouse makes it. */
export const toDeviceId = (device: number): string => hash('md5', String(device))

const eventsPerDevice = 40
const print = (text: string) => process.stdout.write(`${text}\n`)

export type Filling = { events: number; days: number; nowMs: number }

/**
 * Inserts events as they come: an insert has some hours, of devices spread over the whole key. Four
 * versions, one device in twelve with two signals and a flag, one event in fifty with a decision.
 */
export async function fillEvents(
  clickhouse: Clickhouse,
  { events, days, nowMs }: Filling,
): Promise<void> {
  for (const view of ['activity', 'sdk_baselines', 'user_devices']) {
    await clickhouse.command({ query: `drop view ${view}_of_telemetry` })
  }
  const inserts = Math.max(2 * days, Math.ceil(events / 250_000))
  const each = Math.ceil(events / inserts)
  const insertMs = Math.floor((days * dayMs) / inserts)
  const devices = Math.max(10, Math.round(events / eventsPerDevice))
  const startMs = performance.now()
  for (let insert = 0; insert < inserts; insert++) {
    const from = nowMs - (inserts - insert) * insertMs
    const rows = `select number as n, ${insert} * ${each} + n as e,
      cityHash64(e) as h, h % ${devices} as d, ${from} + intDiv(n * ${insertMs}, ${each}) as ms
      from numbers(${Math.min(each, events - insert * each)})`
    await clickhouse.command({
      query: `insert into telemetry (tenant_id, device_id, session_id, event_id, received_at,
          sdk_version, platform, batch_type, client_action, rasp_score, rasp_action, flags,
          reasons, policy_version, policy_hash, epoch, signals, body, detected_signals)
        select '${tenantId}', lower(hex(MD5(toString(d)))), concat('s', toString(d), '-', toString(h % 7)),
          concat('evt_', toString(e)), fromUnixTimestamp64Milli(toInt64(ms), 'UTC'),
          concat('4.', toString(d % 4)), if(d % 2 = 0, 'android', 'ios'), 'event', 'ALLOW',
          if(d % 12 = 0, 45, 0), if(d % 12 = 0, 'REVIEW', 'ALLOW'),
          if(d % 12 = 0, ['ROOTED'], []), '[]', 1, 'policy', 1, '{}', '{}',
          if(d % 12 = 0, ['root.su_binary', 'debugger.frida_detected'], [])
        from (${rows}) settings max_threads = 1`,
    })
    await clickhouse.command({
      query: `insert into decisions (tenant_id, device_id, session_id, event_id, received_at,
          rasp_score, risk_score, action, flags, reasons)
        select '${tenantId}', lower(hex(MD5(toString(d)))), concat('s', toString(d), '-', toString(h % 7)),
          concat('evt_', toString(e)), fromUnixTimestamp64Milli(toInt64(ms), 'UTC'),
          0, 80, 'BLOCK', ['HIGH_VELOCITY'], '[]'
        from (${rows}) where e % 50 = 0 settings max_threads = 1`,
    })
  }
  const users = Array.from({ length: 200 }, (_, device) => toDeviceId(device))
  await clickhouse.command({
    query: `insert into user_devices (tenant_id, user_id, device_id, first_seen_at, last_seen_at)
      select '${tenantId}', '${userId}', arrayJoin({devices:Array(String)}),
        fromUnixTimestamp64Milli(${nowMs - dayMs}, 'UTC'),
        fromUnixTimestamp64Milli(${nowMs}, 'UTC')`,
    query_params: { devices: users },
  })
  await untilMergesEnd(clickhouse, 600_000)
  print(`${events} events in ${Math.round((performance.now() - startMs) / 1_000)} s`)
}
