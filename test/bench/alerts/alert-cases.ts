/**
 * What the benchmark of the alert list asks: the first page, each filter, each pair of filters, all
 * of them, and cursors far down, with values drawn anew for each request; and what Postgres itself
 * says to the same question by `count(*)` and by a plain sort.
 */
import type { Decision, Disposition } from '#shared/core/alerts/alert-rules.ts'
import type { AlertQuery } from '#shared/io/alerts/alert-query.ts'
import type { Sql } from '#shared/io/postgres/postgres.ts'
import { bigTenantId, type FilledSpan } from './alert-rows.ts'

/** Filters as the query string has them, and a cursor. */
export type Ask = {
  disposition?: Disposition
  decision?: Decision
  device_id?: string
  from?: string
  to?: string
  cursor?: string
}

/**
 * A `cold` one asks for rows that nobody has asked for: that costs what memory costs, at any size.
 */
export type AlertCase = { name: string; draw: () => Ask; cold?: true }

/** As many devices are asked for at any size, so that growth is not that of asking anew. */
const devicesAsked = 300

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
 * @param deep cursors far down the list without a filter and down that of open alerts
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
  const asked = Array.from({ length: devicesAsked }, drawDevice)
  const drawFilter: Record<FilterName, () => Ask> = {
    // What most alerts are: the longest ranges and the most to count.
    disposition: () => ({ disposition: 'OPEN' }),
    decision: () => ({ decision: pick(['REVIEW', 'BLOCK']) }),
    device_id: () => ({ device_id: pick(asked) }),
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

export function toPath(ask: Ask): string {
  const query = new URLSearchParams(ask).toString()
  return query === '' ? '/v1/di/alerts' : `/v1/di/alerts?${query}`
}

/** The same question to the store. A cursor is left out: it moves the page, not the total. */
export function toStoreQuery(ask: Ask): AlertQuery {
  return {
    tenantId: bigTenantId,
    dispositions: ask.disposition && [ask.disposition],
    decisions: ask.decision && [ask.decision],
    deviceId: ask.device_id,
    fromMs: ask.from === undefined ? undefined : Date.parse(ask.from),
    toMs: ask.to === undefined ? undefined : Date.parse(ask.to),
    limit: 50,
    after: null,
  }
}

/** How many alerts match, counted one by one. */
export function toCountSql(ask: Ask): Sql {
  const { where, values } = toWhere(ask)
  return { text: `select count(*) as n from alerts where ${where}`, values }
}

/** The ids of the first 50, or of the 50 after so many. */
export function toIdsSql(ask: Ask, offset = 0): Sql {
  const { where, values } = toWhere(ask)
  return {
    text: `select alert_id from alerts where ${where}
           order by created_at desc, alert_id desc offset ${offset} limit 50`,
    values,
  }
}

function toWhere(ask: Ask): { where: string; values: string[] } {
  const values = [bigTenantId]
  const conditions = ['tenant_id = $1']
  const add = (condition: string, value: string | undefined) => {
    if (value !== undefined) conditions.push(`${condition} $${values.push(value)}`)
  }
  add('disposition =', ask.disposition)
  add('action =', ask.decision)
  add('device_id =', ask.device_id)
  add('created_at >=', ask.from)
  add('created_at <', ask.to)
  return { where: conditions.join(' and '), values }
}
