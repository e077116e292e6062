// The screen of activity by connections: no key is missed that exceeds a rule, each rule alone.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { VelocityMetric, VelocityRule } from '#shared/core/policies/policy.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { countKey } from '#shared/core/velocity/correlation.ts'
import { toKeyHash } from '#shared/core/velocity/key-hash.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { activityBounds } from '#shared/io/velocity/activity-rows-store.ts'
import { createActivityStore } from '#shared/io/velocity/activity-store.ts'
import type { ActivitySubject } from '#shared/io/velocity/activity-subjects.ts'
import { seed } from '../../support/process/seed.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { type EventFacts, makeEvents } from '../../support/telemetry/accepted-events.ts'
import {
  connectionFacts,
  countConnections,
  makeConnection,
} from '../../support/velocity/connection-model.ts'
import {
  numbersRead,
  readWithoutConnections,
} from '../../support/velocity/reader-without-connections.ts'

const clickhouse = await useClickhouse()
const store = createTelemetryStore(clickhouse)

process.stdout.write(`connection screen seed ${seed}\n`)
const nowMs = Math.floor(Date.now() / 60_000) * 60_000
const minuteMs = 60_000
const day = 86_400

const ruleOf = (metric: VelocityMetric, threshold: number): VelocityRule => {
  return { metric, windowSeconds: day, threshold, weight: 1 }
}

const toSubject = (event: AcceptedEvent, rule: VelocityRule): ActivitySubject => ({
  tenantId: event.tenant_id,
  deviceId: event.body.device_id,
  sessionId: event.body.session_id,
  userIds: event.body.user_id === undefined ? [] : [event.body.user_id],
  network: event.connection?.network ?? null,
  eventId: event.event_id,
  streamOffset: event.streamOffset,
  receivedAtMs: event.received_at,
  rules: [rule],
  assertion: null,
  seeksReplay: false,
})

/** Counts after the screen; those that it leaves out are 0. */
async function countScreened(events: readonly AcceptedEvent[], rule: VelocityRule) {
  const activity = createActivityStore(clickhouse, { ...activityBounds, fewKeys: 0 })
  const known = await activity.countActivity(events.map((event) => toSubject(event, rule)))
  return known.map(({ counts }) => counts.get(countKey(rule)) ?? 0)
}

const modelOf = (events: readonly AcceptedEvent[], rule: VelocityRule): number[] =>
  events.map((event) => {
    const before = events.filter(
      ({ streamOffset, received_at, tenant_id }) =>
        tenant_id === event.tenant_id &&
        streamOffset <= event.streamOffset &&
        received_at > event.received_at - rule.windowSeconds * 1_000,
    )
    return countConnections(before, event, rule.metric)!
  })

/** Numbers that are spread evenly, as those of `fc.double` are not. */
const evenly = (from: number, to: number) =>
  fc.integer({ min: 0, max: 1_000_000 }).map((n) => from + ((to - from) * n) / 1_000_000)

/** What exceeds a rule, by event. */
const toExceeding = (counts: readonly number[], { threshold }: VelocityRule) =>
  counts.map((count) => (count > threshold ? count : null))

describe('the screen', () => {
  it.each([
    ruleOf('countries_per_user', 1),
    ruleOf('countries_per_user', 3),
    ruleOf('countries_per_device', 1),
    ruleOf('countries_per_device', 3),
    ruleOf('networks_per_device', 1),
    ruleOf('networks_per_device', 3),
    ruleOf('devices_per_network', 2),
    ruleOf('users_per_network', 2),
    ruleOf('impossible_travel', 0),
  ])('misses nothing that exceeds $metric above $threshold', async (rule) => {
    const tenantId = `only-${rule.metric.replaceAll('_', '-')}-${rule.threshold}`
    const facts = fc.sample(
      fc.record({
        tenantId: fc.constant(tenantId),
        deviceId: fc.integer({ min: 1, max: 60 }).map((n) => `d-${n}`),
        sessionId: fc.integer({ min: 1, max: 60 }).map((n) => `s-${n}`),
        userId: fc.integer({ min: 1, max: 60 }).map((n) => `u-${n}`),
        receivedAtMs: fc.integer({ min: nowMs - 2_000 * minuteMs, max: nowMs }),
        connection: fc
          .tuple(fc.constantFrom(...connectionFacts), fc.integer({ min: 1, max: 80 }))
          .map(([from, network]) => makeConnection(from, network)),
        nonce: fc.integer(),
      }),
      { seed, numRuns: 240 },
    )
    const events = makeEvents(facts)
    await store.insertTelemetry(events)
    const expected = toExceeding(modelOf(events, rule), rule)
    const isExceeded = expected.map((count) => count !== null)
    expect(new Set(isExceeded)).toEqual(new Set([true, false]))
    expect(toExceeding(await countScreened(events, rule), rule)).toEqual(expected)
  })

  it('misses no journey that is a little too far, in any direction from anywhere', async () => {
    const journeys = fc.sample(
      fc.record({
        latitude: evenly(-89, 89),
        longitude: evenly(-180, 180),
        bearing: evenly(0, 2 * Math.PI),
        kilometres: evenly(480, 560),
      }),
      { seed, numRuns: 3_000 },
    )
    const rule = ruleOf('impossible_travel', 0)
    const facts = journeys.flatMap(({ bearing, kilometres, ...from }, n): EventFacts[] =>
      [from, goFrom(from, bearing, kilometres)].map((place, end) => ({
        tenantId: 'anywhere',
        deviceId: `d-${n}-${end}`,
        sessionId: `s-${n}-${end}`,
        userId: `u-${n}`,
        receivedAtMs: nowMs - 100 * minuteMs + end,
        connection: makeConnection(place, 1),
      })),
    )
    const events = makeEvents(facts)
    await store.insertTelemetry(events)
    const expected = journeys.flatMap((_, n) => modelOf(events.slice(2 * n, 2 * n + 2), rule))
    expect(expected.filter((count) => count === 1).length).toBeGreaterThan(1_000)
    expect(await countScreened(events, rule)).toEqual(expected)
  })

  it('leads to one evidence, whichever of two ids of the user is read first', async () => {
    const rule = ruleOf('impossible_travel', 0)
    const tenantId = 'two-ids'
    const [berlin, , newYork, tokyo] = connectionFacts
    const seen = (id: string, n: number, from: typeof berlin): EventFacts => ({
      tenantId,
      deviceId: `d-${n}`,
      sessionId: `s-${n}`,
      userId: id,
      receivedAtMs: nowMs - minuteMs,
      connection: makeConnection(from!, n),
    })
    const both = { ...seen('a', 3, tokyo), accountId: 'b', receivedAtMs: nowMs }
    const events = makeEvents([seen('a', 1, berlin), seen('b', 2, newYork), both])
    await store.insertTelemetry(events)
    const evidenceOf = async (userIds: string[]) => {
      const activity = createActivityStore(clickhouse)
      const [known] = await activity.countActivity([{ ...toSubject(events[2]!, rule), userIds }])
      return known!.details.get(countKey(rule))
    }
    const evidence = await evidenceOf(['a', 'b'])
    expect(evidence).toMatchObject({ to_country: 'JP', hours: 0.02 })
    expect(await evidenceOf(['b', 'a'])).toEqual(evidence)
    expect(await evidenceOf(['a'])).not.toEqual(await evidenceOf(['b']))
  })

  it('counts nothing in rows without a connection, nor by placeholders', async () => {
    const hidden = ['countries_per_user', 'countries_per_device', 'networks_per_device'] as const
    const facts = connectionFacts.flatMap((from, n): EventFacts[] => {
      const common = { tenantId: 'nothing', receivedAtMs: nowMs, nonce: n }
      const connection = makeConnection(from, n)
      return [
        { ...common, deviceId: 'd', userId: 'u', sessionId: `s-${n}` },
        { ...common, deviceId: 'unknown', userId: 'guest', sessionId: 'null', connection },
      ]
    })
    const events = makeEvents(facts)
    await store.insertTelemetry(events)
    for (const metric of hidden) {
      const ofReal = events.filter(({ connection }) => connection === undefined)
      expect(new Set(await countScreened(ofReal, ruleOf(metric, 0)))).toEqual(new Set([0]))
    }
    const networks = ['devices_per_network', 'users_per_network'] as const
    for (const metric of networks) {
      expect(new Set(await countScreened(events, ruleOf(metric, 0)))).toEqual(new Set([0]))
    }
  })
})

describe('rows of connections', () => {
  it('disturb no scorer that does not know them', async () => {
    const drawn = fc.sample(
      fc.record({
        device: fc.integer({ min: 1, max: 5 }),
        session: fc.integer({ min: 1, max: 9 }),
        user: fc.integer({ min: 1, max: 9 }),
        agoMinutes: fc.integer({ min: 0, max: 60 }),
        counter: fc.integer({ min: 1, max: 30 }),
        found: fc.boolean(),
        from: fc.constantFrom(...connectionFacts),
        network: fc.integer({ min: 1, max: 3 }),
        nonce: fc.integer(),
      }),
      { seed, numRuns: 120 },
    )
    const insert = async (tenantId: string, isMeasured: boolean) => {
      // Some come again.
      const facts = [...drawn, ...drawn.slice(0, 20)].map(
        ({ from, network, ...one }): EventFacts => ({
          tenantId,
          deviceId: `d-${one.device}`,
          sessionId: `s-${one.session}`,
          userId: `u-${one.user}`,
          receivedAtMs: nowMs - one.agoMinutes * minuteMs,
          nonce: one.nonce,
          signals: { root: { su_binary: one.found } },
          install: { token_id: 't', attested_key: 'k', counter: one.counter },
          ...(isMeasured ? { connection: makeConnection(from, network) } : {}),
        }),
      )
      const events = facts.flatMap((one, n) => makeEvents([one], n + 1))
      await store.insertTelemetry(events)
    }
    await Promise.all([insert('unmeasured', false), insert('is-measured', true)])
    const idsOf = { device: 'd', session: 's', user: 'u' } as const
    const hashesOf = (kind: keyof typeof idsOf) =>
      Array.from({ length: 9 }, (_, n) => toKeyHash(kind, `${idsOf[kind]}-${n + 1}`))
    const suspected = new Set<string>()
    for (const kind of ['device', 'session', 'user'] as const) {
      const asked = { hashes: hashesOf(kind), afterMs: nowMs - 60 * minuteMs }
      const read = (tenantId: string) => readWithoutConnections(clickhouse, { tenantId, ...asked })
      const [without, present] = [await read('unmeasured'), await read('is-measured')]
      expect(present.size).toBe(without.size)
      for (const [hash, expected] of without) {
        const found = present.get(hash)!
        const numbers = ({ rows }: typeof found) =>
          rows.map((row) => numbersRead[kind].map((place) => row[place]))
        // An event's hash is of its body, which names the tenant.
        const plain = (rows: ReturnType<typeof numbers>) => rows.map((row) => row.toSpliced(-2, 1))
        expect(plain(numbers(found))).toEqual(plain(numbers(expected)))
        // More suspects cost a read; a missing one would lose a count.
        expect(found.suspected).toEqual(expect.arrayContaining(expected.suspected))
        if (kind === 'device') expect(found.sightings).toHaveLength(expected.sightings.length)
        for (const metric of expected.suspected) suspected.add(metric)
      }
    }
    expect(suspected.size).toBe(8)
  })
})

/** Where one comes to on a great circle. */
function goFrom(
  { latitude, longitude }: { latitude: number; longitude: number },
  bearing: number,
  kilometres: number,
) {
  const radians = Math.PI / 180
  const angle = kilometres / 6_371
  const from = latitude * radians
  const to = Math.asin(
    Math.sin(from) * Math.cos(angle) + Math.cos(from) * Math.sin(angle) * Math.cos(bearing),
  )
  const east = Math.atan2(
    Math.sin(bearing) * Math.sin(angle) * Math.cos(from),
    Math.cos(angle) - Math.sin(from) * Math.sin(to),
  )
  const degrees = longitude + east / radians
  return { latitude: to / radians, longitude: ((degrees + 540) % 360) - 180 }
}
