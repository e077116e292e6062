/**
 * The requests of the alert list benchmark: the first page, each filter, each pair of filters, all
 * of them, and deep cursors, with random values for each request; and the same queries for Postgres
 * by `count(*)` and by a plain sort.
 */
import type { Decision, Disposition } from '#shared/core/alerts/dispositions.ts'
import type { AlertQuery } from '#shared/io/alerts/alert-query.ts'
import type { Sql } from '#shared/io/postgres/postgres.ts'
import { bigTenantId, type FilledSpan } from './alert-rows.ts'

/** Filters and a cursor, as in the query string. */
export type AlertRequest = {
  disposition?: Disposition
  decision?: Decision
  device_id?: string
  from?: string
  to?: string
  cursor?: string
}

/** A `cold` case requests rows that no earlier request has read, so it measures cache misses. */
export type AlertCase = { name: string; draw: () => AlertRequest; cold?: true }

/** Every size requests the same number of devices, so that growth is not that of cold reads. */
const devicesRequested = 300

/** A value in [0, 1). */
export type Random = () => number

/** The same numbers for the same seed (mulberry32). */
export function createRandom(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const filterNames = ['disposition', 'decision', 'device_id', 'from', 'to'] as const
type FilterName = (typeof filterNames)[number]

/**
 * @param alerts how many the tenant has
 * @param deep deep cursors of the list without a filter and of that of open alerts
 */
export function toCases(
  random: Random,
  {
    alerts,
    span,
    deep,
  }: { alerts: number; span: FilledSpan; deep: Record<'all' | 'open', string[]> },
): AlertCase[] {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
  const devices = Math.floor(alerts / 1_275) * 50
  const drawDevice = () => `device-${Math.floor(random() * devices)}`
  const requestedDevices = Array.from({ length: devicesRequested }, drawDevice)
  const drawFilter: Record<FilterName, () => AlertRequest> = {
    // The disposition of most alerts: the longest ranges and the largest count.
    disposition: () => ({ disposition: 'OPEN' }),
    decision: () => ({ decision: pick(['REVIEW', 'BLOCK']) }),
    device_id: () => ({ device_id: pick(requestedDevices) }),
    from: () => ({ from: toInstant(span, random() * 0.5) }),
    to: () => ({ to: toInstant(span, 0.5 + random() * 0.5) }),
  }
  const toCase = (...names: FilterName[]): AlertCase => ({
    name: names.join(' and '),
    draw: () => Object.assign({}, ...names.map((name) => drawFilter[name]())),
  })
  const pairs = filterNames.flatMap((one, n) =>
    filterNames.slice(n + 1).map((other) => toCase(one, other)),
  )
  return [
    { name: 'first page', draw: () => ({}) },
    ...filterNames.map((name) => toCase(name)),
    { name: 'device_id, any', draw: () => ({ device_id: drawDevice() }), cold: true },
    { name: 'a rare disposition', draw: () => ({ disposition: 'CONFIRMED' }) },
    ...pairs,
    toCase('disposition', 'decision', 'from', 'to'),
    toCase(...filterNames),
    { name: 'a deep cursor', draw: () => ({ cursor: pick(deep.all) }) },
    {
      name: 'a deep cursor and disposition',
      draw: () => ({ disposition: 'OPEN', cursor: pick(deep.open) }),
    },
  ]
}

/** An instant to the millisecond, so that both ends of a range cut through an hour. */
function toInstant({ startMs, endMs }: FilledSpan, part: number): string {
  return new Date(Math.floor(startMs + (endMs - startMs) * part)).toISOString()
}

export function toPath(request: AlertRequest): string {
  const query = new URLSearchParams(request).toString()
  return query === '' ? '/v1/di/alerts' : `/v1/di/alerts?${query}`
}

/** The same query for the store. It has no cursor, which moves the page but not the total. */
export function toStoreQuery(request: AlertRequest): AlertQuery {
  return {
    tenantId: bigTenantId,
    filter: {
      disposition: request.disposition && [request.disposition],
      decision: request.decision && [request.decision],
      device_id: request.device_id,
      from: request.from === undefined ? undefined : Date.parse(request.from),
      to: request.to === undefined ? undefined : Date.parse(request.to),
    },
    limit: 50,
    after: null,
  }
}

/** Counts the matching alerts one by one. */
export function toCountSql(request: AlertRequest): Sql {
  const { where, values } = toWhere(request)
  return { text: `select count(*) as n from alerts where ${where}`, values }
}

/** The ids of the first 50, or of the 50 after an offset. */
export function toIdsSql(request: AlertRequest, offset = 0): Sql {
  const { where, values } = toWhere(request)
  return {
    text: `select alert_id from alerts where ${where}
           order by created_at desc, alert_id desc offset ${offset} limit 50`,
    values,
  }
}

function toWhere(request: AlertRequest): { where: string; values: string[] } {
  const values = [bigTenantId]
  const conditions = ['tenant_id = $1']
  const add = (condition: string, value: string | undefined) => {
    if (value !== undefined) conditions.push(`${condition} $${values.push(value)}`)
  }
  add('disposition =', request.disposition)
  add('action =', request.decision)
  add('device_id =', request.device_id)
  add('created_at >=', request.from)
  add('created_at <', request.to)
  return { where: conditions.join(' and '), values }
}
