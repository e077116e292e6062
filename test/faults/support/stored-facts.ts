/**
 * The rows of one tenant in the stores and its webhooks at the receiver after a drill, and what is
 * missing.
 */
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Receiver } from '../../support/deliveries/receiver.ts'

export type StoredAlert = { alert_id: string; device_id: string; seq: string }

/** How many rows a reader sees of each event; 1 is correct. */
export async function readStoredEvents(
  clickhouse: Clickhouse,
  tenantId: string,
): Promise<Map<string, number>> {
  const result = await clickhouse.query({
    query:
      'select event_id, count() as times from telemetry final ' +
      'where tenant_id = {tenantId:String} group by event_id',
    query_params: { tenantId },
    format: 'JSONEachRow',
  })
  const rows = (await result.json()) as { event_id: string; times: number }[]
  return new Map(rows.map(({ event_id, times }) => [event_id, Number(times)]))
}

/** In the order of `seq`. */
export async function readStoredAlerts(
  postgres: Postgres,
  tenantId: string,
): Promise<StoredAlert[]> {
  const { rows } = await postgres.query<StoredAlert>(
    'select alert_id, device_id, seq from alerts where tenant_id = $1 order by seq',
    [tenantId],
  )
  return rows
}

/** Deliveries that match a condition over `state` and `attempts`. */
export async function countDeliveries(
  postgres: Postgres,
  tenantId: string,
  condition: string,
): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    `select count(*)::int as n from deliveries where tenant_id = $1 and (${condition})`,
    [tenantId],
  )
  return rows[0]!.n
}

/** The webhook requests of each alert: delivery id and body. */
export function readReceived({ requests }: Receiver): Map<string, string[]> {
  const received = new Map<string, string[]>()
  for (const { body, headers } of requests) {
    const text = body.toString()
    const { alert_id } = JSON.parse(text) as { alert_id: string }
    const own = received.get(alert_id) ?? []
    received.set(alert_id, [...own, `${headers['x-service-delivery']} ${text}`])
  }
  return received
}

export type AlertFindings = {
  alerts: number
  /** Devices. */
  withoutAlert: string[]
  withTwoAlerts: string[]
  seqGaps: number
  /** Alert ids without a webhook request. */
  notDelivered: string[]
}

/** @param devices each must have raised one alert */
export function compareAlerts(
  alerts: readonly StoredAlert[],
  devices: readonly string[],
  received: ReadonlyMap<string, unknown>,
): AlertFindings {
  const byDevice = Map.groupBy(alerts, (alert) => alert.device_id)
  return {
    alerts: alerts.length,
    withoutAlert: devices.filter((device) => !byDevice.has(device)),
    withTwoAlerts: [...byDevice].filter(([, own]) => own.length > 1).map(([device]) => device),
    seqGaps: alerts.filter(({ seq }, at) => Number(seq) !== at + 1).length,
    notDelivered: alerts.map((row) => row.alert_id).filter((id) => !received.has(id)),
  }
}
