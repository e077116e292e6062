// Lists of events over HTTP: what is read equals the decisions of the decider, SQL over the stores,
// and the filters applied by hand, over random fleets.

import { beforeAll, describe, expect, test } from 'vitest'
import { deviceSchema } from '#shared/core/http/api-schemas.ts'
import { eventPageSchema } from '#shared/core/http/event-schemas.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { createEventCountStore } from '#shared/io/analytics/event-count-store.ts'
import { createEventListStore } from '#shared/io/telemetry/event-list-store.ts'
import { type ApiRig, acceptEvent } from '../../support/http/api-rig.ts'
import { seed } from '../../support/process/seed.ts'
import { until } from '../../support/process/until.ts'
import { toShown } from '../../support/telemetry/connections.ts'
import { type DecidedFact, decideFleet } from '../../support/telemetry/decided-fleet.ts'

type Row = ReturnType<typeof eventPageSchema.parse>['data'][number]
type Page = ReturnType<typeof eventPageSchema.parse>

const tenantIds = ['fleet-a', 'fleet-b']

const usersOf = ({ event: { body } }: DecidedFact): string[] =>
  [body.user_id, body.account_id].filter((id) => id !== undefined)

const codesOf = ({ risk }: DecidedFact) => risk.reasons.map(({ code }) => code)

/** What the filters mean, by hand. */
const filters: Record<string, (fact: DecidedFact) => boolean> = {
  'device_id=d%2F5%20%CE%B1': ({ event }) => event.body.device_id === 'd/5 α',
  'device_id=nobody': () => false,
  'user_id=u-1': (fact) => usersOf(fact).includes('u-1'),
  'user_id=guest': (fact) => usersOf(fact).includes('guest'),
  'session_id=s-7': ({ event }) => event.body.session_id === 's-7',
  'flag=HIGH_VELOCITY': (fact) => codesOf(fact).includes('HIGH_VELOCITY'),
  'flag=DENY_LISTED,ROOTED': (fact) =>
    codesOf(fact).some((code) => ['DENY_LISTED', 'ROOTED'].includes(code)),
  'action=BLOCK': ({ risk }) => risk.action === 'BLOCK',
  'action=REVIEW': ({ risk }) => risk.action === 'REVIEW',
  'action=ALLOW,BLOCK': ({ risk }) => risk.action !== 'REVIEW',
  'signal=root.su_binary': ({ event }) =>
    (event.body.signals.root as { su_binary?: boolean }).su_binary === true,
  'signal=root.su_binary&signal_value=false': ({ event }) =>
    (event.body.signals.root as { su_binary?: boolean }).su_binary === false,
  'platform=android': ({ event }) =>
    event.body.sdk_meta.platform.startsWith('And') || event.body.sdk_meta.platform === 'android',
  'app_version=2.0': ({ event }) => (event.body.app as { version?: string })?.version === '2.0',
  'sdk_version=4.3.0': ({ event }) => event.body.sdk_meta.sdk_version === '4.3.0',
  'country=de': ({ event }) => event.connection?.country === 'DE',
  'asn=AS64500': ({ event }) => event.connection?.asn === 64_500,
  'network=203.0.112.0%2F23': ({ event }) => event.connection?.network === '203.0.113.0/24',
  'network_kind=vpn,tor': ({ event }) => event.connection?.kinds?.includes('vpn') === true,
  'max_score=49': ({ risk }) => risk.riskScore <= 49,
  'min_score=50': ({ risk }) => risk.riskScore >= 50,
  'min_score=100': ({ risk }) => risk.riskScore >= 100,
}
const names = Object.keys(filters)
const nameOf = (filter: string) => filter.split('=')[0]
const pairs = names.flatMap((a) =>
  names.filter((b) => a < b && nameOf(a) !== nameOf(b)).map((b) => [a, b]),
)

function toRow({ event, risk }: DecidedFact): Row {
  const { body } = event
  const app = body.app as { version?: string } | undefined
  return {
    event_id: event.event_id,
    tenant_id: event.tenant_id,
    device_id: body.device_id,
    session_id: body.session_id,
    ...(body.user_id === undefined ? {} : { user_id: body.user_id }),
    ...(body.account_id === undefined ? {} : { account_id: body.account_id }),
    sdk_meta: body.sdk_meta as Row['sdk_meta'],
    ...(app === undefined ? {} : { app_version: app.version }),
    connection: toShown(event.connection),
    phone: null,
    received_at: new Date(event.received_at).toISOString(),
    rasp_score: event.rasp_score,
    rasp_action: event.rasp_action,
    risk_score: risk.riskScore,
    action: risk.action,
    flags: risk.reasons.map(({ code }) => code),
    reasons: JSON.parse(JSON.stringify(risk.reasons)),
    policy_version: 1,
  }
}

/** @param findRig once its servers run */
export function describeEvents(findRig: () => ApiRig): void {
  describe('lists of events', () => {
    let keys: string[]
    let facts: DecidedFact[]
    const of = (tenantId: string) => facts.filter(({ event }) => event.tenant_id === tenantId)

    // As a client does: the 503 of an engine that is busy with other tests asks to come again.
    const getPage = async (query: string, key = keys[0]!): Promise<Page> => {
      const answer = await until('the page can be read', async () => {
        const one = await findRig().call(`/v1/di/events?${query}`, { key })
        return one.status === 503 ? null : one
      })
      expect(answer.status, answer.text).toBe(200)
      return eventPageSchema.strict().parse(answer.json())
    }

    const walk = async (query: string, key?: string): Promise<Row[]> => {
      const rows: Row[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: Page = await getPage(`${query}${cursor && `&cursor=${cursor}`}`, key)
        rows.push(...page.data)
        cursor = page.next_cursor
      }
      return rows
    }

    beforeAll(async () => {
      process.stdout.write(`event list seed ${seed}\n`)
      const rig = findRig()
      keys = [await rig.addTenant(tenantIds[0]!), await rig.addTenant(tenantIds[1]!)]
      facts = await decideFleet(rig.clickhouse, { tenantIds, seed, events: 700 })
    })

    test('have every event once, newest first, with the decision of the decider', async () => {
      const own = of(tenantIds[0]!)
      expect(new Set(own.flatMap(codesOf))).toEqual(
        new Set([...own.flatMap(codesOf), 'HIGH_VELOCITY', 'MANY_USERS_PER_DEVICE', 'DENY_LISTED']),
      )
      expect(await walk('limit=83')).toEqual(own.map(toRow))
      expect(await walk('limit=500', keys[1])).toEqual(of(tenantIds[1]!).map(toRow))
      const raised = own.find(({ event, risk }) => risk.riskScore > event.rasp_score + 20)!
      const path = `/v1/di/events/${raised.event.event_id}`
      expect((await findRig().call(path, { key: keys[0]! })).json()).toEqual(toRow(raised))
    })

    test('are filtered by each parameter and by pairs', async () => {
      const own = of(tenantIds[0]!)
      const chosen = [
        ...names.map((name) => [name]),
        ...pairs.filter((_, n) => n % 48 === seed % 48),
      ]
      // A page may be short: only a cursor of null ends.
      for (const filter of chosen) {
        const expected = own.filter((fact) => filter.every((name) => filters[name]!(fact)))
        const query = [...filter, 'limit=500'].join('&')
        expect(await walk(query), query).toEqual(expected.map(toRow))
      }
      // Small pages, with cursors in the middle of an hour and of an instant.
      for (const filter of ['action=ALLOW,BLOCK', 'user_id=u-1']) {
        const expected = own.filter(filters[filter]!)
        expect(await walk(`${filter}&limit=17`), filter).toEqual(expected.map(toRow))
      }
    })

    test('are cut by time: from is inclusive, to exclusive', async () => {
      const own = of(tenantIds[0]!)
      const [first, last] = [own[40]!.event.received_at, own[8]!.event.received_at]
      const iso = (ms: number) => new Date(ms).toISOString()
      const within = own.filter(
        ({ event }) => event.received_at >= first && event.received_at < last,
      )
      expect(await walk(`from=${iso(first)}&to=${iso(last)}&limit=10`)).toEqual(within.map(toRow))
      expect(await walk(`from=${iso(last)}&to=${iso(last)}`)).toEqual([])
      const query = `from=${iso(last)}&to=${iso(first)}`
      const inverted = await findRig().call(`/v1/di/events?${query}`, { key: keys[0]! })
      const fault = { path: 'to', message: 'must not be before `from`' }
      expect(inverted.json()).toMatchObject({ code: 'invalid_query', errors: [fault] })
    })

    test('continue exactly after the last event, whatever came meanwhile', async () => {
      const own = of(tenantIds[1]!)
      const page = await getPage('limit=5', keys[1])
      const late = { tenantId: tenantIds[1]!, deviceId: 'd-1', sessionId: 'late' }
      const atMs = Date.now() + 60_000
      await findRig().telemetry.insertTelemetry([acceptEvent({ ...late, atMs })])
      const next = await getPage(`limit=7&cursor=${page.next_cursor}`, keys[1])
      expect(next.data).toEqual(own.slice(5, 12).map(toRow))
      expect((await getPage('limit=1', keys[1])).data[0]?.session_id).toBe('late')
    })

    test('are those of SQL, and of the peaks of sessions, devices and users', async () => {
      const own = of(tenantIds[0]!)
      const { clickhouse } = findRig()
      const read = async <T>(query: string): Promise<T[]> => {
        const query_params = { tenant: tenantIds[0]! }
        const result = await clickhouse.query({ query, query_params, format: 'JSONEachRow' })
        return result.json<T>()
      }
      const database = (await read<{ name: string }>('select currentDatabase() as name'))[0]!.name
      const peakOf = (some: readonly DecidedFact[]) =>
        Math.max(...some.map(({ risk }) => risk.riskScore))
      for (const view of ['events', 'typed_events']) {
        const rows = await read<{ event_id: string; risk_score: number; action: string }>(
          `select event_id, risk_score, action from ${toAnalyticsDatabase(database)}.${view}
           where tenant_id = {tenant:String}
           order by received_at desc limit 1 by event_id`,
        )
        const expected = own.map(({ event, risk }) => [event.event_id, risk.riskScore, risk.action])
        expect(rows.map((row) => [row.event_id, row.risk_score, row.action]).sort()).toEqual(
          expected.sort(),
        )
      }
      const byDevice = Map.groupBy(own, ({ event }) => event.body.device_id)
      for (const [deviceId, some] of byDevice) {
        const path = `/v1/di/devices/${encodeURIComponent(deviceId)}`
        const answer = await findRig().call(path, { key: keys[0]! })
        const device = deviceSchema.strict().parse(answer.json())
        expect(device.risk_score, deviceId).toBe(peakOf(some))
        const sessions = Map.groupBy(some, ({ event }) => event.body.session_id)
        for (const shown of device.sessions) {
          const events = sessions.get(shown.session_id)!
          expect(shown.risk_score).toBe(peakOf(events))
          const highest = events.filter(({ risk }) => risk.riskScore === shown.risk_score)
          expect(highest.map(({ risk }) => risk.action)).toContain(shown.action)
          expect(highest.map(codesOf)).toContainEqual(shown.risk_flags)
        }
      }
      const byUser = Map.groupBy(
        own.flatMap((fact) => usersOf(fact).map((user) => ({ user, ...fact }))),
        ({ user }) => user,
      )
      for (const [user, some] of byUser) {
        const answer = await findRig().call(`/v1/di/users/${user}`, { key: keys[0]! })
        expect(answer.json()).toMatchObject({ risk_score: peakOf(some) })
      }
      const views = `select 'devices' as view, max(risk_score) as peak from ${toAnalyticsDatabase(database)}.devices
        where tenant_id = {tenant:String} union all
        select 'sessions', max(risk_score) from ${toAnalyticsDatabase(database)}.sessions
        where tenant_id = {tenant:String}`
      expect(await read<{ peak: number }>(views)).toEqual([
        expect.objectContaining({ peak: peakOf(own) }),
        expect.objectContaining({ peak: peakOf(own) }),
      ])
    })

    test('reject a query with faults, and name each', async () => {
      const of400 = [
        ['colour=red', ['colour']],
        ['country=Germany&network=203.0.113.7/32', ['country', 'network']],
        ['signal_value=false', ['signal_value']],
        ['limit=1&limit=2', ['limit']],
        ['action=deny&min_score=101&from=soon', ['action', 'from', 'min_score']],
        ['signal=su_binary', ['signal']],
        ['flag=NO_SUCH', ['flag']],
        ['cursor=nonsense', ['cursor']],
      ] as const
      for (const [query, paths] of of400) {
        const answer = await findRig().call(`/v1/di/events?${query}`, { key: keys[0]! })
        expect(answer.status, query).toBe(400)
        const { errors } = answer.json<{ errors: { path: string }[] }>()
        expect(errors.map(({ path }) => path).sort()).toEqual(paths)
      }
      const { next_cursor: cursor } = await getPage('limit=1')
      for (const [query, key] of [
        [`limit=1&cursor=${cursor}`, keys[1]!],
        [`action=BLOCK&cursor=${cursor}`, keys[0]!],
      ] as const) {
        expect((await findRig().call(`/v1/di/events?${query}`, { key })).status).toBe(400)
      }
    })

    test('end early with a cursor when a search takes long, and refuse too many rows', async () => {
      const { clickhouse } = findRig()
      const clocks = { nowMs: Date.now, monotonicMs: () => performance.now() }
      const hasty = createEventListStore(clickhouse, { ...clocks, searchMs: 0 })
      const query = { tenantId: tenantIds[0]!, filter: { app_version: '2.0' }, limit: 500 }
      const ids: string[] = []
      let pages = 0
      let after = null
      do {
        const page: Awaited<ReturnType<typeof hasty.listEvents>> = await hasty.listEvents({
          ...query,
          after,
        })
        ids.push(...page.events.map((event) => event.eventId))
        after = page.next
        pages++
      } while (after !== null)
      expect(pages).toBeGreaterThan(2)
      const expected = of(tenantIds[0]!).filter(filters['app_version=2.0']!)
      expect(ids).toEqual(expected.map(({ event }) => event.event_id))
      const bounded = createEventListStore(clickhouse, { ...clocks, rowsReadMax: 10 })
      await expect(bounded.listEvents({ ...query, after: null })).rejects.toMatchObject({
        code: 'query_failed',
      })
      const count = { tenantId: tenantIds[0]!, filter: {}, by: 'flag', limit: 50 } as const
      for (const bounds of [{ rowsReadMax: 10 }, { groupsMax: 1 }]) {
        const { countEvents } = createEventCountStore(clickhouse, bounds)
        await expect(countEvents(count)).rejects.toMatchObject({ code: 'query_failed' })
      }
    })
  })
}
