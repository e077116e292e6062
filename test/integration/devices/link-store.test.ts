// Links of devices and users in a real ClickHouse against a plain model: exact sets, with
// duplicated inserts, and no link through a known placeholder.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { linkPairsMax, linkSourcesMax } from '#shared/core/base/limits/entities.ts'
import { type Linked, toLinked } from '#shared/core/devices/links.ts'
import { createLinkStore, type LinkStore } from '#shared/io/devices/link-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { linkedDevices, linkedUsers, type ModelLink } from '../../support/devices/links-model.ts'
import { seed } from '../../support/process/seed.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { type EventFacts, makeEvents } from '../../support/telemetry/accepted-events.ts'

const nowMs = Math.floor(Date.now() / 60_000) * 60_000
const clickhouse = await useClickhouse()
const telemetry = createTelemetryStore(clickhouse)
const links = createLinkStore(clickhouse)

const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)

/** Sorted, without the fields that only the shown list has. */
const toSet = (linked: readonly (Linked | ModelLink)[]) =>
  linked
    .map(({ id, lastSeenAtMs, shared, sessions }) => {
      return { id, lastSeenAtMs, shared: shared.toSorted(byId), sessions }
    })
    .toSorted(byId)

async function devicesOf(tenantId: string, deviceId: string) {
  const found = await links.findLinkedDevices({ tenantId, deviceId })
  expect([found.complete, found.sessionsSearched]).toEqual([true, true])
  return toLinked(found.pairs, found.sessionPairs).linked
}

async function usersOf(tenantId: string, userId: string) {
  const found = await links.findLinkedUsers({ tenantId, userId })
  expect(found.complete).toBe(true)
  return toLinked(found.pairs, found.sessionPairs).linked
}

/** Unusual ids on purpose: each is an id like any other. */
const deviceIds = ['d1', 'd2', 'd3', 'a/b', 'd\'"\\', '<b>d</b>', '\u202Ed', 'x'.repeat(256)]
const userIds = ['u1', 'u2', 'u3', 'u/%2F', '<script>', '\u200Fu', 'y'.repeat(200)]
const placeholders = ['unknown', '00000000-0000-0000-0000-000000000000', 'NULL']

const anyEvent: fc.Arbitrary<EventFacts> = fc.record(
  {
    tenantId: fc.constantFrom('model-a', 'model-b'),
    deviceId: fc.constantFrom(...deviceIds, ...placeholders),
    sessionId: fc.oneof(
      fc.integer({ min: 1, max: 60 }).map((n) => `s-${n}`),
      fc.constantFrom(...placeholders),
    ),
    userId: fc.constantFrom(...userIds, ...placeholders),
    accountId: fc.constantFrom(...userIds, ...placeholders),
    receivedAtMs: fc.integer({ min: nowMs - 90 * 86_400_000, max: nowMs }),
    nonce: fc.integer(),
  },
  { requiredKeys: ['tenantId', 'deviceId', 'sessionId', 'receivedAtMs', 'nonce'] },
)

describe('links', () => {
  it('equal a plain model, for every device and user, before and after merges', async () => {
    process.stdout.write(`links seed ${seed}\n`)
    for (const size of [12, 40, 150]) {
      const facts = fc.sample(anyEvent, { seed: seed + size, numRuns: size })
      const events = makeEvents(
        facts.map((one) => ({ ...one, tenantId: `${one.tenantId}-${size}` })),
      )
      await telemetry.insertTelemetry(events.slice(0, size / 2))
      await telemetry.insertTelemetry(events)
      const expectModel = async () => {
        for (const tenant of [`model-a-${size}`, `model-b-${size}`]) {
          const own = events.filter((event) => event.tenant_id === tenant)
          for (const id of [...deviceIds, ...placeholders]) {
            const found = toSet(await devicesOf(tenant, id))
            expect([tenant, id, found]).toEqual([tenant, id, toSet(linkedDevices(own, id))])
          }
          for (const id of [...userIds, ...placeholders]) {
            const found = toSet(await usersOf(tenant, id))
            expect([tenant, id, found]).toEqual([tenant, id, toSet(linkedUsers(own, id))])
          }
        }
      }
      await expectModel()
      for (const table of ['devices', 'user_devices', 'sessions']) {
        await clickhouse.command({ query: `optimize table ${table} final` })
      }
      await expectModel()
    }
  })

  it('are sorted by the number of shared items, with the number of omitted ones', async () => {
    const facts = Array.from({ length: 450 }, (_, n) => ({
      tenantId: 'farm',
      deviceId: n === 0 ? 'hub' : `device-${n}`,
      sessionId: n < 3 ? 'shared' : `s-${n}`,
      userId: 'operator',
      ...(n === 0 || n === 7 ? { accountId: 'second' } : {}),
      receivedAtMs: nowMs + n,
    }))
    await telemetry.insertTelemetry(makeEvents(facts))
    const found = await links.findLinkedDevices({ tenantId: 'farm', deviceId: 'hub' })
    const { linked, total } = toLinked(found.pairs, found.sessionPairs)
    expect([linked.length, total, found.followed, found.followedOf]).toEqual([200, 449, 2, 2])
    const first = ['device-7', 'device-2', 'device-1', 'device-449', 'device-448']
    expect(linked.slice(0, 5).map(({ id }) => id)).toEqual(first)
    const [most] = linked
    const shared = ['operator', 'second'].map((id) => ({ id, lastSeenAtMs: nowMs + 7 }))
    expect(most).toEqual({
      id: 'device-7',
      lastSeenAtMs: nowMs + 7,
      shared,
      sharedTotal: 2,
      sessions: 0,
    })
  })

  it('by sessions are marked as not searched in a tenant with too many sessions', async () => {
    await telemetry.insertTelemetry(
      makeEvents(
        ['hub', 'other', 'third'].map((deviceId) => ({
          tenantId: 'busy',
          deviceId,
          sessionId: deviceId === 'third' ? 'its own' : 'shared',
          ...(deviceId === 'other' ? {} : { userId: 'u' }),
        })),
      ),
    )
    await clickhouse.command({
      query: `
        insert into sessions (tenant_id, device_id, session_id, started_at, last_seen_at)
        select 'busy', 'd-' || toString(number), toString(number), now64(3), now64(3)
        from numbers(20000)`,
    })
    const find = async (store: LinkStore) => {
      const found = await store.findLinkedDevices({ tenantId: 'busy', deviceId: 'hub' })
      const { linked } = toLinked(found.pairs, found.sessionPairs)
      return [found.sessionsSearched, linked.map(({ id }) => id).sort()]
    }
    expect(await find(links)).toEqual([true, ['other', 'third']])
    const bounded = createLinkStore(clickhouse, { rowsReadMax: 15_000 })
    expect(await find(bounded)).toEqual([false, ['third']])
  })

  it('of a user beyond the read limits are the latest, and marked as incomplete', async () => {
    const devices = 12_000
    // Five others on each device; inserted below the views, because inserts through them are slow.
    for (const query of [
      `insert into user_devices (tenant_id, user_id, device_id, first_seen_at, last_seen_at)
       select 'large', if(number % 6 = 0, 'hub', 'u-' || toString(number)),
         'd-' || toString(intDiv(number, 6)), now64(3), toDateTime64('2026-01-01', 3, 'UTC') +
         intDiv(number, 6)
       from numbers(${devices * 6})`,
      `insert into devices (tenant_id, device_id, users)
       select 'large', 'd-' || toString(intDiv(number, 6)),
         [if(number % 6 = 0, 'hub', 'u-' || toString(number))] from numbers(${devices * 6})`,
    ]) {
      await clickhouse.command({ query })
    }
    const startMs = performance.now()
    const found = await links.findLinkedUsers({ tenantId: 'large', userId: 'hub' })
    process.stdout.write(`links of a large user: ${Math.round(performance.now() - startMs)} ms\n`)
    expect([found.followed, found.followedOf]).toEqual([linkSourcesMax, devices])
    expect([found.complete, found.pairs.length]).toEqual([false, linkPairsMax])
    const oldest = Math.min(...found.pairs.map(({ sharedId }) => Number(sharedId.slice(2))))
    expect(oldest).toBe(devices - linkSourcesMax)
  })
})
