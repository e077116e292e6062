// The counts of velocity rules in a real ClickHouse: exact at each event's stream offset, after any
// repeats and in any order of inserts.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { activityQueryMax } from '#shared/core/base/limits/history.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { VelocityRule } from '#shared/core/policies/policy.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { countKey } from '#shared/core/velocity/correlation.ts'
import { toKeyHash } from '#shared/core/velocity/key-hash.ts'
import { type Clickhouse, smallQuery } from '#shared/io/clickhouse/clickhouse.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { activityBounds, latestOf, toActivityKey } from '#shared/io/velocity/activity-rows-store.ts'
import { type Activity, createActivityStore } from '#shared/io/velocity/activity-store.ts'
import type { ActivitySubject } from '#shared/io/velocity/activity-subjects.ts'
import { seed } from '../../support/process/seed.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { type EventFacts, makeEvents } from '../../support/telemetry/accepted-events.ts'
import {
  connectionFacts,
  countConnections,
  makeConnection,
} from '../../support/velocity/connection-model.ts'

const clickhouse = await useClickhouse()
const store = createTelemetryStore(clickhouse)

// Activity is kept for 35 days, so its tests use the current time.
const nowMs = Math.floor(Date.now() / 60_000) * 60_000
const minuteMs = 60_000
const dayMs = 86_400_000

const usersOf = ({ body }: AcceptedEvent): string[] =>
  [body.user_id, body.account_id].filter((id) => id !== undefined)

/** The default policy's, with some that it has not or that take many events. */
const rules: readonly VelocityRule[] = [
  ...defaultPolicy.velocity,
  { metric: 'countries_per_user', windowSeconds: 3_600, threshold: 2, weight: 1 },
  { metric: 'networks_per_device', windowSeconds: 3_600, threshold: 4, weight: 1 },
  { metric: 'devices_per_network', windowSeconds: 3_600, threshold: 3, weight: 1 },
  { metric: 'users_per_network', windowSeconds: 86_400, threshold: 4, weight: 1 },
]

const toSubject = (event: AcceptedEvent): ActivitySubject => ({
  tenantId: event.tenant_id,
  deviceId: event.body.device_id,
  sessionId: event.body.session_id,
  userIds: usersOf(event),
  network: event.connection?.network ?? null,
  eventId: event.event_id,
  streamOffset: event.streamOffset,
  receivedAtMs: event.received_at,
  rules,
  assertion: null,
  seeksReplay: false,
})
const screening = { ...activityBounds, fewKeys: 0 }
const isCopy = ({ firstCopy }: Activity): boolean => firstCopy !== null
/** Counts with the screen and without it: exceeded rules, retries and replays must be equal. */
const loadCounts = async (events: readonly AcceptedEvent[], bounds = activityBounds) => {
  const subjects = events.map((event) => ({ ...toSubject(event), seeksReplay: true }))
  const count = (fewKeys: number) =>
    createActivityStore(clickhouse, { ...bounds, fewKeys }).countActivity(subjects)
  const screened = await count(0)
  const toDecisive = ({ counts, details, firstCopy, replay }: Activity, index: number) => {
    const exceeded = subjects[index]!.rules.filter(
      (rule) => (counts.get(countKey(rule)) ?? 0) > rule.threshold,
    ).map((rule) => [rule, counts.get(countKey(rule)), details.get(countKey(rule))])
    return { firstCopy, replay, exceeded }
  }
  expect((await count(10_000)).map(toDecisive)).toEqual(screened.map(toDecisive))
  return screened
}
const countsOf = async (events: readonly AcceptedEvent[], key: string) =>
  (await loadCounts(events)).map((one) => one.counts.get(key))

/** The same ClickHouse, with a callback for every query. */
const watch = (onQuery: (query: string) => void) =>
  new Proxy(clickhouse, {
    get: (target, name) =>
      name !== 'query'
        ? Reflect.get(target, name)
        : (params: Parameters<Clickhouse['query']>[0]) => {
            onQuery(params.query)
            return target.query(params)
          },
  })

const sessions = (tenantId: string, n: number, fromMs = nowMs): EventFacts[] =>
  Array.from({ length: n }, (_, index) => ({
    tenantId,
    sessionId: `s-${index}`,
    receivedAtMs: fromMs + index * 1000,
  }))

const hourly: VelocityRule = {
  metric: 'sessions_per_device',
  windowSeconds: 3_600,
  threshold: 24,
  weight: 1,
}

describe('activity of a device', () => {
  it('counts sessions at each event, from the first above the threshold on', async () => {
    const events = makeEvents(sessions('velocity', 25))
    await store.insertTelemetry(events)
    expect(await countsOf(events, 'sessions_per_device:300')).toEqual(
      Array.from({ length: 25 }, (_, index) => index + 1),
    )
  })

  it('returns nothing for a device at the threshold', async () => {
    const events = makeEvents(sessions('calm', 20))
    await store.insertTelemetry(events)
    for (const { counts } of await loadCounts(events)) expect(counts.size).toBe(0)
  })

  it('excludes what is exactly as old as the window, and nothing younger', async () => {
    const early = sessions('edge', 21, nowMs)
    const atEdge = { tenantId: 'edge', sessionId: 'last', receivedAtMs: nowMs + 5 * minuteMs }
    const events = makeEvents([...early, atEdge])
    await store.insertTelemetry(events)
    // Session 0 was seen exactly five minutes before: 20 others and itself are left.
    expect((await countsOf(events, 'sessions_per_device:300')).at(-1)).toBe(21)
  })

  it('is not changed by later events in the stream, at any time', async () => {
    const events = makeEvents(sessions('ahead', 30), 5)
    const later = makeEvents(sessions('ahead', 60, nowMs - minuteMs).slice(30), 6)
    await store.insertTelemetry([...later, ...events])
    expect((await countsOf(events, 'sessions_per_device:300')).at(-1)).toBe(30)
    expect((await countsOf(later, 'sessions_per_device:300')).at(-1)).toBe(60)
  })

  it('counts users and accounts alike, an id that is both once', async () => {
    const events = makeEvents([
      { tenantId: 'users', userId: 'a', accountId: 'a', receivedAtMs: nowMs, nonce: 1 },
      { tenantId: 'users', userId: 'b', receivedAtMs: nowMs + 1, nonce: 2 },
      { tenantId: 'users', accountId: 'c', receivedAtMs: nowMs + 2, nonce: 3 },
      { tenantId: 'users', receivedAtMs: nowMs + 3, nonce: 4 },
      { tenantId: 'users', userId: 'd', receivedAtMs: nowMs + 4, nonce: 5 },
    ])
    await store.insertTelemetry(events)
    expect(await countsOf(events, 'users_per_device:86400')).toEqual([1, 2, 3, 3, 4])
  })

  it('counts platforms, of which a normal device has one', async () => {
    const sdk = (platform: string) => ({
      sdk_meta: { sdk_version: '4.2.0', platform, batch_type: 'launch' },
    })
    const events = makeEvents(
      ['android', 'Android', 'ios'].map((platform, nonce) => ({
        tenantId: 'platforms',
        receivedAtMs: nowMs + nonce,
        nonce,
        more: sdk(platform),
      })),
    )
    await store.insertTelemetry(events)
    expect(await countsOf(events, 'platforms_per_device:2592000')).toEqual([1, 1, 2])
  })

  it('counts the flips of a signal, and names it', async () => {
    const values = [true, false, null, undefined, true, true, false, true]
    const events = makeEvents(
      values.map((value, nonce) => ({
        tenantId: 'flips',
        receivedAtMs: nowMs + nonce,
        nonce,
        signals: { root: value === undefined ? {} : { su_binary: value, magisk_detected: true } },
      })),
    )
    await store.insertTelemetry(events)
    const known = await loadCounts(events)
    const key = 'signal_flips:86400'
    expect(known.map((one) => one.counts.get(key) ?? 0)).toEqual([0, 1, 1, 1, 2, 2, 3, 4])
    expect(known.at(-1)!.details.get(key)).toEqual({ signal: 'root.su_binary' })
  })
})

describe('activity of users and sessions', () => {
  it('knows a user who is new on a device, in the one question that it asks of all', async () => {
    const seen = (deviceId: string, agoMs: number, sessionId: string) => ({
      tenantId: 'new-devices',
      deviceId,
      sessionId,
      userId: 'known',
      receivedAtMs: nowMs - agoMs,
    })
    const events = makeEvents([
      seen('old', 3 * dayMs, 's-1'),
      seen('new', 2 * 60 * minuteMs, 's-2'),
      seen('new', 30 * minuteMs, 's-3'),
      seen('old', 20 * minuteMs, 's-4'),
    ])
    await store.insertTelemetry(events)
    const known = await loadCounts(events.slice(2))
    const key = 'new_device_of_user:2592000'
    expect(known.map(({ counts }) => counts.get(key) ?? 0)).toEqual([1, 0])
  })

  it('counts the devices of a user; of user and account the higher count is used', async () => {
    const events = makeEvents(
      Array.from({ length: 6 }, (_, n) => ({
        tenantId: 'many-devices',
        deviceId: `d-${n}`,
        sessionId: `s-${n}`,
        userId: n === 3 ? 'other' : 'user',
        ...(n === 5 ? { accountId: 'other' } : {}),
        receivedAtMs: nowMs + n,
      })),
    )
    await store.insertTelemetry(events)
    // The fourth event's user is read for the fifth device, which is new for that account.
    expect(await countsOf(events, 'devices_per_user:86400')).toEqual([1, 2, 3, 1, 4, 5])
  })

  it('counts the devices with the same session id', async () => {
    const events = makeEvents(
      ['a', 'a', 'b', 'c'].map((deviceId, nonce) => ({
        tenantId: 'reused',
        deviceId,
        receivedAtMs: nowMs + nonce,
        nonce,
      })),
    )
    await store.insertTelemetry(events)
    expect(await countsOf(events, 'devices_per_session:86400')).toEqual([1, 1, 2, 3])
  })
})

describe('activity', () => {
  it('never mixes tenants with the same device, session and user ids', async () => {
    const events = makeEvents(['twin-a', 'twin-b'].flatMap((tenantId) => sessions(tenantId, 15)))
    await store.insertTelemetry(events)
    for (const { counts } of await loadCounts(events)) expect(counts.size).toBe(0)
  })

  it('is not changed by inserting everything again', async () => {
    const events = makeEvents(sessions('again', 30))
    await store.insertTelemetry(events)
    const before = await loadCounts(events)
    for (let round = 0; round < 3; round++) await store.insertTelemetry(events)
    expect(await loadCounts(events)).toEqual(before)
    await store.insertTelemetry([...events, ...events])
    expect(await loadCounts(events)).toEqual(before)
    await clickhouse.command({ query: 'optimize table activity final' })
    expect(await loadCounts(events)).toEqual(before)
  })

  it('can be queried for more tenants than one query parameter can have', async () => {
    const [event] = makeEvents(sessions('one-of-many', 1))
    const tenant = (n: number) => `${'t'.repeat(56)}-${n}`.slice(0, 63)
    const subjects = Array.from({ length: 4_000 }, (_, n) => {
      return { ...toSubject(event!), tenantId: tenant(n) }
    })
    const answers = await createActivityStore(clickhouse).countActivity(subjects)
    expect(answers.every((one) => one.counts.size === 0 && !isCopy(one))).toBe(true)
  })

  it('can be queried for the maximum number of events of a query', async () => {
    const facts = { tenantId: 'full', receivedAtMs: nowMs }
    const [event] = makeEvents([facts], 1)
    const [again] = makeEvents([facts], 2)
    await store.insertTelemetry([event!, again!])
    const subjects = Array.from({ length: activityQueryMax }, (_, n) => {
      const own: Partial<ActivitySubject> = {
        deviceId: `d-${n}`,
        sessionId: `s-${n}`,
        userIds: [`u-${n}`],
        eventId: `e-${n}`,
      }
      return Object.assign(toSubject(event!), own)
    })
    subjects[activityQueryMax - 1] = toSubject(again!)
    const answers = await createActivityStore(clickhouse).countActivity(subjects)
    expect(answers.map(isCopy).indexOf(true)).toBe(activityQueryMax - 1)
  })

  it('recognises a retry of the same bytes, and only the retry', async () => {
    const facts = { tenantId: 'retry', receivedAtMs: nowMs }
    const [first, other] = makeEvents([facts, { ...facts, nonce: 2 }], 1)
    const [later] = makeEvents([{ ...facts, receivedAtMs: nowMs + 1 }], 2)
    await store.insertTelemetry([later!, first!, other!, first!])
    for (const bounds of [activityBounds, { ...activityBounds, readMin: 1, readPerKey: 0 }]) {
      const known = await loadCounts([first!, later!, other!], bounds)
      expect(known.map(isCopy)).toEqual([false, true, false])
    }
  })

  it('knows the first copy of each event, and whether a later one is from another network', async () => {
    const tenantId = 'copies'
    const drawn = fc.sample(
      fc.record({
        device: fc.integer({ min: 1, max: 4 }),
        nonce: fc.integer({ min: 1, max: 12 }),
        network: fc.constantFrom(0, 1, 1, 2),
      }),
      { seed, numRuns: 120 },
    )
    const facts = drawn.map(({ device, nonce, network }, n): EventFacts => {
      const connection = network === 0 ? undefined : makeConnection({ country: 'DE' }, network)
      const receivedAtMs = nowMs - (drawn.length - n) * 1_000
      return { tenantId, deviceId: `d-${device}`, nonce, receivedAtMs, connection }
    })
    const events = facts.map((one, n) => makeEvents([one], n + 1)[0]!)
    await store.insertTelemetry(events.slice(50))
    await store.insertTelemetry(events.slice(0, 90))
    const known = await loadCounts(events)
    const networkOf = ({ connection }: AcceptedEvent) => connection?.network
    const expected = events.map((event) => {
      const first = events.find(({ event_id: id }) => id === event.event_id)!
      if (first === event) return null
      const networks = new Set([first, event].map(networkOf))
      const networkChanged = networks.size === 2 && !networks.has(undefined)
      return { firstAtMs: first.received_at, networkChanged }
    })
    expect(known.map(({ firstCopy }) => firstCopy)).toEqual(expected)
    const changes = expected.map((one) => one?.networkChanged)
    expect(new Set(changes)).toEqual(new Set([undefined, false, true]))
    expect(known.filter(({ replay }) => replay?.networkChanged).length).toBeGreaterThan(0)
  })

  it('looks back as far as each rule, with any other rules', async () => {
    const events = makeEvents(
      Array.from({ length: 6 }, (_, n) => ({
        tenantId: 'shared',
        deviceId: 'tablet',
        sessionId: `shift-${n}`,
        userId: `nurse-${n}`,
        receivedAtMs: nowMs - (5 - n) * 4 * 60 * minuteMs,
        nonce: n,
      })),
    )
    await store.insertTelemetry(events)
    const [known] = await createActivityStore(clickhouse).countActivity([toSubject(events[5]!)])
    expect(known!.counts.get('users_per_device:86400')).toBe(6)
    expect(known!.counts.get('users_per_device:2592000')).toBe(6)
  })

  it('reads no rows of a device with less in an hour than a rule allows in minutes', async () => {
    const events = makeEvents(
      Array.from({ length: 25 }, (_, n) => ({
        tenantId: 'steady',
        deviceId: 'often',
        sessionId: `launch-${n}`,
        receivedAtMs: nowMs - (24 - n) * 2 * minuteMs,
        nonce: n,
      })),
    )
    await store.insertTelemetry(events)
    let queryCount = 0
    const watched = watch(() => queryCount++)
    const last = toSubject(events.at(-1)!)
    const [known] = await createActivityStore(watched, screening).countActivity([last])
    expect(known!.counts.size).toBe(0)
    // Only the screen.
    expect(queryCount).toBe(1)
    const strict = { ...last, rules: [hourly] }
    const [counted] = await createActivityStore(watched, screening).countActivity([strict])
    expect([...counted!.counts.values()]).toEqual([25])
    expect(queryCount).toBe(3)
  })

  it('reads all of a small batch at once, and screens only hot keys', async () => {
    const tenantId = 'small-batch'
    const flood = makeEvents(
      Array.from({ length: activityBounds.fewRows }, (_, n) => ({
        tenantId,
        deviceId: 'flood',
        sessionId: `flood-${n}`,
        receivedAtMs: nowMs + n,
        nonce: n,
      })),
    )
    const calm = makeEvents(
      sessions(tenantId, 25).map((one) => ({ ...one, deviceId: 'calm' })),
      7,
    )
    await store.insertTelemetry([...flood, ...calm])
    const queries: string[] = []
    const watched = watch((query) => queries.push(query))
    const key = 'sessions_per_device:300'
    const countLast = async (events: readonly AcceptedEvent[]) => {
      queries.length = 0
      const last = toSubject(events.at(-1)!)
      const [known] = await createActivityStore(watched).countActivity([last])
      return known!.counts.get(key)
    }
    expect(await countLast(calm)).toBe(25)
    expect(queries.length).toBe(1)
    expect(await countLast(flood)).toBe(activityBounds.fewRows)
    expect(queries.length).toBe(3)
  })

  it('reads the latest rows of a hot key, and no further', async () => {
    const many = 2_000_000
    await clickhouse.command({
      query: `insert into activity (tenant_id, key_hash, stream_offset, received_at, event_hash,
          packed_facts)
        select 'crowd', ${toKeyHash('user', 'guest')}, number, fromUnixTimestamp64Milli(${nowMs - dayMs} + intDiv(number, 30)) as received_at,
          number as event_hash, toFixedString(concat(repeat('\\0', 48),
            reinterpretAsFixedString(number + 1), repeat('\\0', 8),
            reinterpretAsFixedString(event_hash),
            reinterpretAsFixedString(toUnixTimestamp64Milli(received_at))), 80)
        from numbers(${many})`,
    })
    const events = makeEvents(
      [0, 1].map((nonce) => {
        const deviceId = `crowd-${nonce}`
        return { tenantId: 'crowd', deviceId, userId: 'guest', receivedAtMs: nowMs + nonce, nonce }
      }),
      many,
    )
    await store.insertTelemetry(events)
    const guest = toKeyHash('user', 'guest')
    let screened = 0
    const watched = watch((query) => {
      if (query.includes('key_hash in (') && query.includes(guest)) screened++
    })
    const crowd = createActivityStore(watched)
    for (const isKnown of [false, true]) {
      screened = 0
      const known = await crowd.countActivity(events.map(toSubject))
      // The latest 20,000, of which the later of the two is one.
      const counts = known.map((one) => one.counts.get('devices_per_user:86400'))
      expect(counts).toEqual([19_999, 20_000])
      expect(known.map(isCopy)).toEqual([false, false])
      // Once the hot key is known, the store does not try to query all of its rows.
      expect(screened > 0).toBe(!isKnown)
    }
    const key = toActivityKey('crowd', 'user', 'guest')
    const { text, params } = latestOf(key, {
      lastStreamOffset: events[1]!.streamOffset,
      rowsMax: 20_000,
    })
    const result = await clickhouse.query({
      query: `select count() from ${text}`,
      query_params: params,
      clickhouse_settings: smallQuery,
      format: 'JSON',
    })
    const { data, statistics } = await result.json<{ 'count()': number }>()
    expect(data).toEqual([{ 'count()': 20_000 }])
    expect(statistics!.rows_read).toBeLessThan(100_000)
  })

  it.each([
    ['at once', 'once', activityBounds, 500],
    [
      'some at a time',
      'some',
      { ...activityBounds, readMin: 0, readPerKey: 2_500, readMax: 20_000 },
      500,
    ],
    // One query for each event.
    ['each alone', 'alone', { ...activityBounds, readMin: 1, readPerKey: 0 }, 8],
  ])(
    'counts like a plain model, for devices, users and times of every kind: %s',
    async (_, tenants, bounds, counted) => {
      process.stdout.write(`activity seed ${seed}\n`)
      const facts = fc.sample(
        fc.record({
          tenantId: fc.constantFrom(`${tenants}-a`, `${tenants}-b`),
          deviceId: fc.constantFrom('d1', 'd2', "d'3\\", 'd 4é', 'd5', 'd6'),
          sessionId: fc.integer({ min: 1, max: 60 }).map((n) => `s-${n}`),
          userId: fc.integer({ min: 1, max: 8 }).map((n) => `u-${n}`),
          receivedAtMs: fc.oneof(
            fc.integer({ min: nowMs, max: nowMs + 20 * minuteMs }),
            fc.integer({ min: nowMs - 34 * dayMs, max: nowMs }),
          ),
          signals: fc.record({
            root: fc.record(
              { su_binary: fc.boolean(), adb_root: fc.constant(true) },
              { requiredKeys: [] },
            ),
          }),
          connection: fc.option(
            fc
              .tuple(fc.constantFrom(...connectionFacts), fc.integer({ min: 1, max: 8 }))
              .map(([from, network]) => makeConnection(from, network)),
            { nil: undefined, freq: 5 },
          ),
          nonce: fc.integer(),
        }),
        { seed, numRuns: 600 },
      )
      const events = makeEvents(facts, 9)
      await store.insertTelemetry(events.slice(200))
      await store.insertTelemetry(events.slice(0, 300))
      const latest = events.slice(-counted)
      const known = await loadCounts(latest, bounds)
      const fired = new Set<string>()
      latest.forEach((event, index) => {
        for (const rule of rules) {
          const expected = modelCount(events, event, rule)
          const got = known[index]!.counts.get(countKey(rule)) ?? 0
          if (expected > rule.threshold) fired.add(rule.metric)
          // A count up to its threshold need not be returned.
          if (expected > rule.threshold || got > 0) expect([rule, got]).toEqual([rule, expected])
        }
      })
      const expected = rules.map((rule) => rule.metric)
      expect(fired).toEqual(new Set(expected.filter((metric) => metric !== 'platforms_per_device')))
    },
  )
})

function modelCount(
  events: readonly AcceptedEvent[],
  at: AcceptedEvent,
  { metric, windowSeconds }: VelocityRule,
): number {
  const before = events.filter(
    (event) =>
      event.tenant_id === at.tenant_id &&
      event.streamOffset <= at.streamOffset &&
      event.received_at > at.received_at - windowSeconds * 1000,
  )
  const ofConnections = countConnections(before, at, metric)
  if (ofConnections !== null) return ofConnections
  const onDevice = before.filter((event) => event.body.device_id === at.body.device_id)
  const unique = (ids: readonly string[]) => new Set(ids).size
  switch (metric) {
    case 'sessions_per_device':
      return unique(onDevice.map((event) => event.body.session_id))
    case 'users_per_device':
      return unique(onDevice.flatMap(usersOf))
    case 'platforms_per_device':
      return unique(onDevice.map((event) => event.body.sdk_meta.platform))
    case 'new_device_of_user': {
      const isNew = usersOf(at).some((user) => {
        const own = before.filter((event) => usersOf(event).includes(user))
        const here = own.filter((event) => event.body.device_id === at.body.device_id)
        const firstMs = Math.min(...here.map((event) => event.received_at))
        const isFresh = firstMs > at.received_at - dayMs
        return isFresh && own.some((event) => event.received_at < firstMs)
      })
      return isNew ? 1 : 0
    }
    case 'devices_per_user':
      return Math.max(
        ...usersOf(at).map((user) =>
          unique(before.filter((e) => usersOf(e).includes(user)).map((e) => e.body.device_id)),
        ),
      )
    case 'devices_per_session': {
      const same = before.filter((event) => event.body.session_id === at.body.session_id)
      return unique(same.map((event) => event.body.device_id))
    }
    case 'signal_flips': {
      const values = onDevice
        .map((event) => (event.body.signals.root as { su_binary?: boolean }).su_binary)
        .filter((value) => value !== undefined)
      return values.filter((value, index) => index > 0 && value !== values[index - 1]).length
    }
    default:
      throw new Error(`${metric} has no model`)
  }
}
