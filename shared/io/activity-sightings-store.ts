/**
 * Reads the suspects of a batch in detail, and counts exactly: when each session, user, platform
 * and device was seen on them, and how their signals went back and forth.
 */
import { countInWindow, type Moment, type Sightings } from '#shared/core/activity.ts'
import { countKey } from '#shared/core/correlation.ts'
import { activitySightingsMax } from '#shared/core/limits.ts'
import type { VelocityMetric, VelocityRule } from '#shared/core/policy.ts'
import { countSignalFlips, type FlipCount, type FlipSighting } from '#shared/core/signal-flips.ts'
import {
  type Asked,
  oneThread,
  places,
  type Question,
  rowsOfKeys,
  toKeyParams,
} from './activity-rows-store.ts'
import type { Clickhouse } from './clickhouse.ts'

/** The asked events whose keys, of any kind, are among these. */
function touching(asked: readonly Asked[], keys: ReadonlySet<string>): Asked[] {
  if (keys.size === 0) return []
  return asked.filter((one) => Object.values(one.keys).some((own) => own.some((k) => keys.has(k))))
}

/**
 * Reads when each session, user, platform and device was seen on the suspects: of the time before
 * the batch only the last moment matters, since every window ends within the batch.
 * @returns a function from an asked event and a rule to its count; of several users the highest
 */
export async function readSightings(
  clickhouse: Clickhouse,
  question: Question,
  suspects: ReadonlySet<string>,
): Promise<(of: Asked, rule: VelocityRule) => number | undefined> {
  const { screen, firstMs } = question
  const concerned = touching(question.asked, suspects)
  if (concerned.length === 0) return () => undefined
  const metrics = Object.entries(places).filter(
    ([metric]) => screen.widestSeconds[metric as VelocityMetric] > 0,
  )
  const from = (metric: string) => firstMs - screen.widestSeconds[metric as VelocityMetric] * 1000
  const seen = metrics.flatMap(([metric, { columns }]) =>
    columns.map((column) => `('${metric}', ${column}, toInt64(${from(metric)}))`),
  )
  const result = await clickhouse.query({
    query: `
      select tenant_id, toString(key_hash), metric, groupArray((before, within))
      from (
        select
          tenant_id, key_hash, metric, subject,
          maxIf(at, position < {first_position:UInt64}) as before,
          groupUniqArrayIf((position, at), position >= {first_position:UInt64}) as within
        from (
          select tenant_id, key_hash, at, position, seen.1 as metric, seen.2 as subject
          from (${rowsOfKeys})
          array join [${seen.join(', ')}] as seen
          where subject != 0 and at > seen.3
        )
        group by tenant_id, key_hash, metric, subject
        order by greatest(before, arrayMax(arrayPushBack(within.2, 0))) desc
        limit {most:UInt32} by tenant_id, key_hash, metric
      )
      group by tenant_id, key_hash, metric`,
    query_params: {
      ...question.params,
      ...toKeyParams(suspects),
      most: activitySightingsMax,
    },
    use_multipart_params_auto: true,
    clickhouse_settings: oneThread,
    format: 'JSONCompactEachRow',
  })
  type Number64 = number | string
  type Row = [string, string, VelocityMetric, [Number64, [Number64, Number64][]][]]
  const sightings = new Map<string, Sightings[]>()
  for (const [tenantId, hash, metric, subjects] of await result.json<Row>()) {
    sightings.set(
      `${tenantId} ${hash} ${metric}`,
      subjects.map(([before, within]) => ({
        beforeMs: Number(before) === 0 ? null : Number(before),
        within: within.map(([position, at]) => ({ position: Number(position), atMs: Number(at) })),
      })),
    )
  }
  return createCounting(concerned, sightings)
}

const toMoment = (one: Asked): Moment => ({ position: one.position, atMs: one.receivedAtMs })

/** Counts of one key in one window are made once for all its events. */
function createCounting(
  concerned: readonly Asked[],
  sightings: ReadonlyMap<string, Sightings[]>,
): (of: Asked, rule: VelocityRule) => number | undefined {
  const eventsOf = new Map<string, Asked[]>()
  for (const one of concerned) {
    for (const key of Object.values(one.keys).flat()) {
      const events = eventsOf.get(key)
      if (events === undefined) eventsOf.set(key, [one])
      else events.push(one)
    }
  }
  const counted = new Map<string, Map<Asked, number>>()
  return (one, rule) => {
    if (rule.metric === 'signal_flips') return undefined
    let highest: number | undefined
    for (const key of one.keys[places[rule.metric].kind]) {
      const seen = sightings.get(`${key} ${rule.metric}`)
      if (seen === undefined) continue
      const name = `${key} ${countKey(rule)}`
      let counts = counted.get(name)
      if (counts === undefined) {
        const events = eventsOf.get(key) ?? []
        const all = countInWindow(seen, rule.windowSeconds, events.map(toMoment))
        counts = new Map(events.map((event, index) => [event, all[index]!]))
        counted.set(name, counts)
      }
      const count = counts.get(one)
      if (count !== undefined) highest = Math.max(highest ?? 0, count)
    }
    return highest
  }
}

/**
 * Reads the signals of devices on which one may have gone back and forth.
 * @returns a function from an asked event and a rule to its flips
 */
export async function readFlips(
  clickhouse: Clickhouse,
  question: Question,
  suspects: ReadonlySet<string>,
): Promise<(of: Asked, rule: VelocityRule) => FlipCount | undefined> {
  if (suspects.size === 0) return () => undefined
  const concerned = question.asked.filter((one) => suspects.has(one.keys.device[0]!))
  const halves = (bits: string) =>
    `(bitAnd(${bits}, 4294967295), bitShiftRight(${bits}, 32)) as ${bits}_halves`
  const result = await clickhouse.query({
    query: `
      select tenant_id, toString(key_hash), toString(event_hash), position, at,
        ${halves('detected_bits')}, ${halves('clean_bits')}
      from (${rowsOfKeys})
      where (detected_bits != 0 or clean_bits != 0)
        and at > {from:Int64}
      order by position desc
      limit {most:UInt32} by tenant_id, key_hash`,
    query_params: {
      ...question.params,
      ...toKeyParams(suspects),
      from: question.firstMs - question.screen.widestSeconds.signal_flips * 1000,
      most: activitySightingsMax,
    },
    use_multipart_params_auto: true,
    clickhouse_settings: oneThread,
    format: 'JSONCompactEachRow',
  })
  type Number64 = number | string
  type Halves = [Number64, Number64]
  type Row = [string, string, string, Number64, Number64, Halves, Halves]
  const sightings = new Map<string, FlipSighting[]>()
  for (const [tenantId, hash, event, position, at, detected, clean] of await result.json<Row>()) {
    const key = `${tenantId} ${hash}`
    const list = sightings.get(key) ?? []
    sightings.set(key, list)
    const toHalves = ([low, high]: Halves) => [Number(low), Number(high)] as const
    list.push({
      event,
      position: Number(position),
      atMs: Number(at),
      detected: toHalves(detected),
      clean: toHalves(clean),
    })
  }
  const counted = new Map<string, Map<Asked, FlipCount>>()
  return (one, rule) => {
    const key = one.keys.device[0]!
    const seen = sightings.get(key)
    if (seen === undefined) return undefined
    const name = `${key} ${countKey(rule)}`
    let flips = counted.get(name)
    if (flips === undefined) {
      const events = concerned.filter((other) => other.keys.device[0] === key)
      const all = countSignalFlips(seen, events.map(toMoment), rule.windowSeconds * 1000)
      flips = new Map(events.map((event, index) => [event, all[index]!]))
      counted.set(name, flips)
    }
    return flips.get(one)
  }
}
