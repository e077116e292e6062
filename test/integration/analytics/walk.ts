// The walk: every number that the pages show of a random fleet, by its route, against SQL over the
// stores and against the list that its link opens. `WALK_FLEETS=200` walks that many.
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { beforeAll, describe, expect, it } from 'vitest'
import { eventColumns, toCountedFilter, toListFilter } from '#shared/core/analytics/event-counts.ts'
import { hourMs, toIso } from '#shared/core/base/instants.ts'
import { fleetLinesMax, overviewMoverDevicesMin } from '#shared/core/base/limits/analytics.ts'
import { createHourlyCountStore } from '#shared/io/analytics/counts/hourly-count-store.ts'
import { createOverviewStore } from '#shared/io/analytics/overview-store.ts'
import { toEventsSql } from '../../../services/console/web/pages/events/event-sql.ts'
import type { AnalystsRig } from '../../support/analytics/analysts-rig.ts'
import { anyFleet, type Fleet, storeFleet } from '../../support/analytics/walked-fleet.ts'
import { seed } from '../../support/process/seed.ts'

const fleets = Number(process.env.WALK_FLEETS ?? 1)
const nowHour = Math.floor(Date.now() / hourMs) * hourMs

type Pair = { now: number; before: number }
type Line = { now: number[]; before: number[] }
type Overview = {
  times: string[]
  telemetry: {
    events: Pair
    devices: Pair
    sessions: Pair
    actions: Record<'ALLOW' | 'REVIEW' | 'BLOCK', Pair>
    connections: Record<'measured' | 'anonymous' | 'hosting' | 'countries', Pair>
    top_flags: { flag: string; events: Pair; devices: Pair }[]
    sdk_versions: { platform: string; sdk_version: string; events: Pair; devices: Pair }[]
    lines: { events: Line; REVIEW: Line; BLOCK: Line }
    movers: { signal: string; devices: Pair; share: Pair }[] | null
  }
  alerts: {
    raised: Pair
    REVIEW: Pair
    BLOCK: Pair
    open: number
    open_by_age: { from: string | null; to: string | null; alerts: number }[]
    line: Line
  }
  cases: {
    overdue: number
    ages: { from: string | null; to: string | null }[]
    queues: { query: Record<string, string>; by_age: number[]; overdue: number }[]
  }
}
type FleetPage = {
  totals: { events: number; devices: number; sessions: number; new_devices: number }
  over_time: { events: number[]; new_devices: number[] }
  versions: { platform: string; sdk_version: string; events: number; devices: number }[]
  signals: { signal: string; devices: number; by_version: (number | null)[] }[]
}
type Counts = {
  all: { events: number; devices: number }
  none: { events: number; devices: number }
  values: { value: string; events: number; devices: number }[]
  values_total: number
}
type Listed = { event_id: string; device_id: string; session_id: string; action: string }

/** Filters beside the counts of events: a column meets another one in another fleet. */
const filtersBeside: readonly Record<string, string>[] = [
  { action: 'REVIEW,BLOCK' },
  { flag: 'HIGH_VELOCITY' },
  { signal: 'root.magisk_detected' },
  {},
  { min_score: '30', max_score: '89' },
  { network: '203.0.0.0/16', country: 'de' },
  { platform: 'Android 14' },
  { network_kind: 'vpn,tor' },
]

/** @param getParts the server of the file that calls this, with the stores of overview and lists */
export function describeWalk(
  getParts: () => { app: FastifyInstance; rig: AnalystsRig; token: string },
) {
  let parts: ReturnType<typeof getParts>
  beforeAll(() => {
    parts = getParts()
    process.stdout.write(`walk seed ${seed}, ${fleets} fleets\n`)
  })

  async function call<T>(
    path: string,
    query: Record<string, string> = {},
    body?: object,
  ): Promise<T> {
    const response = await parts.app.inject({
      method: body === undefined ? 'GET' : 'POST',
      url: `/admin/v1/tenants/${path}`,
      query,
      ...(body === undefined ? {} : { payload: body }),
      headers: { authorization: `Bearer ${parts.token}` },
    })
    if (response.statusCode !== 200) throw new Error(`${path}: ${response.body}`)
    return response.json<T>()
  }
  async function listEvents(tenant: string, query: Record<string, string>): Promise<Listed[]> {
    const all: Listed[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: { data: Listed[]; next_cursor: string | null } = await call(`${tenant}/events`, {
        ...query,
        limit: '200',
        ...(cursor === '' ? {} : { cursor }),
      })
      all.push(...page.data)
      cursor = page.next_cursor
    }
    return all
  }
  const countAlerts = async (tenant: string, query: Record<string, string>) =>
    (await call<{ total: number }>(`${tenant}/alerts`, { ...query, limit: '1' })).total
  const sql = async <Row>(text: string): Promise<Row[]> =>
    (await parts.rig.asService(`${text} format JSONCompactEachRow`))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Row)

  /** Differences of the counts beside the list of events: from SQL, and from the lists they open. */
  async function walkCounts(
    tenant: string,
    turn: number,
    period: { from: string; to: string },
  ): Promise<string[]> {
    const differences: string[] = []
    const lists = new Map<string, Promise<Listed[]>>()
    const list = (filter: Record<string, string>) => {
      const key = JSON.stringify(Object.entries(filter).sort())
      if (!lists.has(key)) lists.set(key, listEvents(tenant, { ...period, ...filter }))
      return lists.get(key)!
    }
    const countOf = (events: readonly Listed[]) => ({
      events: events.length,
      devices: new Set(events.map((one) => one.device_id)).size,
    })
    for (const [at, by] of eventColumns.entries()) {
      const beside = filtersBeside[(at + turn) % filtersBeside.length]!
      const filter = by === 'signal_value' ? { ...beside, signal: 'network.proxy_type' } : beside
      const query = { ...period, ...filter, by }
      const shown = await call<Counts>(`${tenant}/events/counts`, query)
      const compare = (what: string, value: unknown, found: unknown) => {
        if (isDeepStrictEqual(value, found)) return
        const [a, b] = [value, found].map((one) => JSON.stringify(one))
        differences.push(`${what} by ${by} with ${JSON.stringify(filter)}: ${a}, not ${b}`)
      }
      if (by !== 'signal_value') {
        compare('all', shown.all, countOf(await list(toCountedFilter(by, filter))))
      }
      compare('values', shown.values_total, shown.values.length)
      const opened = new Set<string>()
      for (const { value, events, devices } of shown.values) {
        const listed = await list(toListFilter(by, value, filter))
        compare(value, { events, devices }, countOf(listed))
        for (const one of listed) opened.add(one.event_id)
      }
      compare('with a value', shown.all.events - shown.none.events, opened.size)
      // What the page opens as SQL, of some.
      const [first] = shown.values
      if (first === undefined || (at + turn) % 3 !== 0) continue
      const opens = toEventsSql(toListFilter(by, first.value, filter), period, null)
      const { rows } = await call<{ rows: unknown[][] }>(`${tenant}/sql`, {}, opens)
      const listed = await list(toListFilter(by, first.value, filter))
      compare(
        `SQL of ${first.value}`,
        rows.map((row) => row.at(-1)),
        listed.map((one) => one.event_id),
      )
    }
    return differences
  }

  /** Differences between what is shown and what its link opens, or SQL finds. */
  async function walk(tenant: string, turn: number, { fromMs, toMs }: Fleet): Promise<string[]> {
    const differences: string[] = []
    const compare = (what: string, shown: unknown, found: unknown) => {
      if (JSON.stringify(shown) === JSON.stringify(found)) return
      differences.push(`${what}: ${JSON.stringify(shown)}, not ${JSON.stringify(found)}`)
    }
    const period = { from: toIso(fromMs), to: toIso(toMs) }
    const before = { from: toIso(2 * fromMs - toMs), to: toIso(fromMs) }
    const devicesOf = (events: readonly Listed[]) =>
      new Set(events.map((one) => one.device_id)).size
    const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0)
    const sumOf = ({ now, before: earlier }: Line) => ({ now: sum(now), before: sum(earlier) })
    const pairOf = async (read: (query: Record<string, string>) => Promise<number>) => ({
      now: await read(period),
      before: await read(before),
    })

    const overview = await call<Overview>(`${tenant}/overview`, { ...period, parts: 'telemetry' })
    const { telemetry, alerts } = overview
    const lists = {
      now: await listEvents(tenant, period),
      before: await listEvents(tenant, before),
    }
    const countBoth = (count: (events: Listed[]) => number) => ({
      now: count(lists.now),
      before: count(lists.before),
    })
    compare(
      'events',
      telemetry.events,
      countBoth((events) => events.length),
    )
    compare('devices', telemetry.devices, countBoth(devicesOf))
    const sessionsOf = (events: Listed[]) =>
      new Set(events.map((one) => `${one.device_id} ${one.session_id}`)).size
    compare('sessions', telemetry.sessions, countBoth(sessionsOf))
    for (const action of ['ALLOW', 'REVIEW', 'BLOCK'] as const) {
      const shown = telemetry.actions[action]
      const own = (events: Listed[]) => events.filter((one) => one.action === action).length
      compare(`events with ${action}`, shown, countBoth(own))
      const listed = await listEvents(tenant, { ...period, action })
      compare(`the list of ${action}`, shown.now, listed.length)
    }
    for (const { flag, events, devices } of telemetry.top_flags) {
      const listed = await listEvents(tenant, { ...period, flag })
      compare(`events with ${flag}`, events.now, listed.length)
      compare(`devices with ${flag}`, devices.now, devicesOf(listed))
    }
    const changes = createOverviewStore(parts.rig.deps.analysts.clickhouse)
    const span = { tenantId: tenant, beforeMs: 2 * fromMs - toMs, fromMs, toMs }
    const signals = await changes.listSignals(span)
    const isEnough = Math.min(...Object.values(telemetry.devices)) >= overviewMoverDevicesMin
    compare('whether shares are compared', telemetry.movers !== null, isEnough)
    for (const { signal, devices } of signals) {
      const found = await pairOf(async (query) =>
        devicesOf(await listEvents(tenant, { ...query, signal })),
      )
      compare(`devices with ${signal}`, devices, found)
    }
    compare('the line of events', sumOf(telemetry.lines.events), telemetry.events)
    compare('the line of BLOCK', sumOf(telemetry.lines.BLOCK), telemetry.actions.BLOCK)
    compare('the line of REVIEW', sumOf(telemetry.lines.REVIEW), telemetry.actions.REVIEW)
    compare('the length of a line', telemetry.lines.events.now.length, overview.times.length)

    compare('alerts', alerts.raised, await pairOf((query) => countAlerts(tenant, query)))
    for (const decision of ['REVIEW', 'BLOCK'] as const) {
      const found = await pairOf((query) => countAlerts(tenant, { ...query, decision }))
      compare(`alerts with ${decision}`, alerts[decision], found)
    }
    compare('the line of alerts', sumOf(alerts.line), alerts.raised)
    const open = { disposition: 'OPEN' }
    compare('open alerts', alerts.open, await countAlerts(tenant, open))
    compare('open alerts by age', sum(alerts.open_by_age.map((one) => one.alerts)), alerts.open)
    for (const { from, to, alerts: shown } of alerts.open_by_age) {
      const query = { ...open, ...(from === null ? {} : { from }), ...(to === null ? {} : { to }) }
      compare(`open alerts since ${from}`, shown, await countAlerts(tenant, query))
    }

    const countCases = async (query: Record<string, string>) =>
      (await call<{ data: unknown[] }>(`${tenant}/cases`, { ...query, limit: '100' })).data.length
    for (const { query, by_age: byAge, overdue } of overview.cases.queues) {
      const name = JSON.stringify(query)
      const all = await countCases({ ...query, state: 'OPEN' })
      compare(`open cases of ${name}`, sum(byAge), all)
      compare(`overdue of ${name}`, overdue, await countCases({ ...query, breached: 'true' }))
      for (const [at, { from, to }] of overview.cases.ages.entries()) {
        const listed = await countCases({
          ...query,
          state: 'OPEN',
          ...(from === null ? {} : { begun_from: from }),
          ...(to === null ? {} : { begun_to: to }),
        })
        compare(`open cases of ${name} since ${from}`, byAge[at], listed)
      }
    }

    const fleet = await call<FleetPage>(`${tenant}/fleet`, period)
    const { totals } = fleet
    compare('events of the fleet', totals.events, telemetry.events.now)
    compare('devices of the fleet', totals.devices, telemetry.devices.now)
    compare('sessions of the fleet', totals.sessions, telemetry.sessions.now)
    compare('events over time', sum(fleet.over_time.events), totals.events)
    compare('new devices over time', sum(fleet.over_time.new_devices), totals.new_devices)
    const within = `received_at >= fromUnixTimestamp64Milli(${fromMs}, 'UTC')
      and received_at < fromUnixTimestamp64Milli(${toMs}, 'UTC')`
    const versions = await sql<[string, string, number, number]>(
      `select platform, sdk_version, toUInt32(uniqExact(event_id)),
         toUInt32(uniqExact(device_id)) as devices
       from (select * from telemetry where tenant_id = '${tenant}' order by stream_offset
         limit 1 by event_id)
       where ${within} group by platform, sdk_version order by devices desc, platform, sdk_version`,
    )
    const byName = (one: {
      platform: string
      sdk_version: string
      events: number
      devices: number
    }) => [one.platform, one.sdk_version, one.events, one.devices] as const
    compare('versions of the fleet', fleet.versions.map(byName).sort(), [...versions].sort())
    const ofOverview = telemetry.sdk_versions
      .filter(({ events }) => events.now > 0)
      .map(({ events, devices, ...one }) =>
        byName({ ...one, events: events.now, devices: devices.now }),
      )
    compare('versions of the overview', ofOverview.sort(), [...versions].sort())
    for (const { signal, devices, by_version: shares } of fleet.signals) {
      const listed = await listEvents(tenant, { ...period, signal })
      compare(`devices with ${signal} in the fleet`, devices, devicesOf(listed))
      compare(`shares of ${signal}`, shares.length, Math.min(fleetLinesMax, versions.length))
    }

    for (const one of await walkCounts(tenant, turn, period)) differences.push(one)

    const [device] = lists.now.map((one) => one.device_id).sort()
    if (device !== undefined) {
      const page = await call<{
        device: { sessions_total: number; users_seen_on: string[] }
        alerts: { total: number }
      }>(`${tenant}/devices/${device}`)
      const own = await listEvents(tenant, { device_id: device })
      compare('sessions of a device', page.device.sessions_total, sessionsOf(own))
      compare(
        'alerts of a device',
        page.alerts.total,
        await countAlerts(tenant, { device_id: device }),
      )
      const [user] = page.device.users_seen_on
      if (user !== undefined) {
        const seen = await call<{ user: { devices_total: number }; alerts: { total: number } }>(
          `${tenant}/users/${user}`,
        )
        const events = await listEvents(tenant, { user_id: user })
        compare('devices of a user', seen.user.devices_total, devicesOf(events))
        compare('alerts of a user', seen.alerts.total, await countAlerts(tenant, { user_id: user }))
      }
    }
    return differences
  }

  describe('every number of the pages', () => {
    it('is that of the stores, and of the list behind its link', async () => {
      const counts = createHourlyCountStore(parts.rig.deps.analysts.clickhouse)
      const made = fc.sample(anyFleet(nowHour), { seed, numRuns: fleets })
      const found: string[] = []
      for (const [at, fleet] of made.entries()) {
        const tenant = `walk-${at}`
        await storeFleet(parts.rig, tenant, fleet)
        // As if a minute had passed, some hours are counted.
        await parts.rig.asService('truncate table sdk_baselines')
        for (const span of fleet.counted) await counts.count(tenant, span)
        await storeFleet.late(parts.rig, tenant, fleet)
        found.push(...(await walk(tenant, at, fleet)).map((one) => `${tenant} ${one}`))
      }
      expect(found).toEqual([])
    })
  })
}
