// Registrations in the telemetry stream, through a scorer's process: a message with nothing else is
// stored, decided and acknowledged; an invalid one becomes a dead letter; they end in ClickHouse, are
// the device's answer, and go with the device.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { toUserKey } from '#shared/core/identity/comparison.ts'
import { readTraits } from '#shared/core/identity/install-traits.ts'
import type { Registration } from '#shared/core/installs/registration.ts'
import { deadLetterStream, telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import { createErasureStore } from '#shared/io/erasure/erasure-store.ts'
import { createReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import { removeRows } from '#shared/io/retention/retention-rows-store.ts'
import { readStream } from '#shared/io/telemetry/stream-incarnations.ts'
import { toSentDevice } from '../../support/identity/sent-devices.ts'
import { until } from '../../support/process/until.ts'
import {
  type EventFacts,
  makeElement,
  makeRegistration,
  makeRegistrationElement,
} from '../../support/telemetry/accepted-events.ts'
import { eraseNow } from '../../support/telemetry/erase-now.ts'
import {
  createScorerRig,
  type ScorerProcess,
  type ScorerRig,
} from '../../support/telemetry/scorer-rig.ts'

let rig: ScorerRig
let scorer: ScorerProcess
let tenantId: string
let tenants = 0
const atMs = Date.now() - 3_600_000

beforeAll(async () => {
  rig = await createScorerRig()
  scorer = await rig.startScorer()
})
afterAll(() => rig?.close())
beforeEach(async () => {
  tenantId = `registered-${++tenants}`
  await rig.addTenant(tenantId)
})

async function read<Row>(query: string): Promise<Row[]> {
  const result = await rig.clickhouse.query({ query, format: 'JSONEachRow' })
  return result.json<Row>()
}
const count = async (from: string) =>
  Number((await read<{ rows: string }>(`select toString(count()) as rows from ${from}`))[0]!.rows)
const publish = (...elements: string[]) => rig.publishRaw(Buffer.from(`[${elements.join(',')}]`))
const findDevice = (deviceId: string) =>
  rig.history.findDevice({ tenantId, deviceId, sessionsLimit: 10, before: null })

const verified = (more: Partial<Registration>): Partial<Registration> => ({
  tenant_id: tenantId,
  provider: 'key_attestation',
  verdict: 'verified',
  level: 'strongbox',
  attested_key: 'key-1',
  issuers: ['issuer-1', 'maker'],
  remotely_provisioned: true,
  device_model: 'Pixel 9',
  ...more,
})
const event = (deviceId: string) => makeElement({ tenantId, deviceId, receivedAtMs: atMs })

describe('a registration', () => {
  it('is stored as it is, also in a message without events, and again nothing changes', async () => {
    const body = makeRegistration(verified({ device_id: 'phone' }))
    await publish(makeRegistrationElement(body, atMs))
    await publish(makeRegistrationElement({ tenant_id: tenantId, device_id: 'bare' }, atMs))
    await rig.drained()
    const query = `select * except (stream_offset, received_at, expires_at),
        toUnixTimestamp64Milli(received_at) as received_at,
        toUnixTimestamp64Milli(expires_at) as expires_at
      from installs final where tenant_id = '${tenantId}' order by device_id`
    const rows = await read<Record<string, unknown>>(query)
    expect(rows).toEqual([
      {
        ...makeRegistration({ tenant_id: tenantId, device_id: 'bare' }),
        reason: '',
        attested_key: '',
        received_at: expect.anything(),
        expires_at: expect.anything(),
      },
      { ...body, reason: '', received_at: expect.anything(), expires_at: expect.anything() },
    ])
    expect(rows.map((row) => [Number(row.received_at), Number(row.expires_at)])).toEqual([
      [atMs, body.expires_at],
      [atMs, body.expires_at],
    ])
    await rig.redeliverAll()
    await rig.drained()
    expect(await read(query)).toEqual(rows)
    expect(await scorer.readMetric('di_registrations_stored_total')).toBeGreaterThanOrEqual(4)
  })

  it('leaves no gap in reconciliation and counts as no event', async () => {
    const { state } = await rig.nats.manager.streams.info(rig.nats.telemetryStreams[0]!.stream)
    await publish(makeRegistrationElement(verified({ device_id: 'phone' }), atMs))
    await publish(event('phone'), makeRegistrationElement(verified({ device_id: 'tablet' }), atMs))
    await rig.drained()
    const entries = await read<{ events: number }>(
      `select stage, events, tenant_id from reconciliation_entries final
       where tenant_id = '${tenantId}' order by stage`,
    )
    expect(entries.map((one) => Number(one.events))).toEqual([1, 1])
    const offsets = `select min(stream_offset) as first, max(stream_offset) as last
      from reconciliation_entries where stage = 'stored'`
    const [{ first, last }] = (await read<{ first: string; last: string }>(offsets)) as [
      { first: string; last: string },
    ]
    const span = { stream: 1, from: Number(first), to: Number(last) + 256, step: 256 }
    const store = createReconciliationStore(rig.clickhouse, 'analytics')
    expect(await store.countUnknownMessages(span)).toBe(0)
    expect((span.to - span.from) / 256).toBe(state.last_seq + 2)
  })

  it('that an edge cannot have written is a dead letter, and its neighbours are stored', async () => {
    const before = (await rig.nats.manager.streams.info(deadLetterStream)).state.messages
    const good = (deviceId: string) =>
      makeRegistrationElement(verified({ device_id: deviceId }), atMs)
    const other = good('wrong').replace(
      /"event_id":"evt_.{22}"/,
      `"event_id":"evt_${'x'.repeat(22)}"`,
    )
    await publish(good('first'), other, event('second'), good('third'))
    await rig.drained()
    const { state } = await rig.nats.manager.streams.info(deadLetterStream)
    expect(state.messages).toBe(before + 1)
    const letter = await rig.nats.manager.streams.getMessage(deadLetterStream, {
      seq: state.last_seq,
    })
    expect(Buffer.from(letter.data).toString()).toBe(other)
    expect(letter.header.get('Detail')).toBe('event_id')
    const rows = await read<{ device_id: string }>(
      `select device_id from installs where tenant_id = '${tenantId}' order by device_id`,
    )
    expect(rows.map((row) => row.device_id)).toEqual(['first', 'third'])
    expect(await count(`telemetry where tenant_id = '${tenantId}'`)).toBe(1)
  })
})

describe('a device', () => {
  it('has its latest registration by the order of the stream', async () => {
    await publish(event('phone'), event('tablet'))
    const older = verified({ device_id: 'phone', token_id: 'older', level: 'software' })
    await publish(makeRegistrationElement(older, atMs + 5_000))
    await publish(
      makeRegistrationElement(verified({ device_id: 'phone', token_id: 'newer' }), atMs),
    )
    await rig.drained()
    expect((await findDevice('phone'))?.install).toEqual({
      provider: 'key_attestation',
      verdict: 'verified',
      level: 'strongbox',
      registeredAtMs: atMs,
      expiresAtMs: makeRegistration().expires_at,
    })
    expect((await findDevice('tablet'))?.install).toBeNull()
  })
})

/** A key on two devices, the second one with an event; a replay of its event. */
async function publishShared(): Promise<void> {
  const late = makeElement({ tenantId, deviceId: 'phone', receivedAtMs: atMs + 1_200_000 })
  await publish(makeRegistrationElement(verified({ device_id: 'phone' }), atMs), event('phone'))
  await publish(makeRegistrationElement(verified({ device_id: 'tablet' }), atMs), event('tablet'))
  await publish(late)
  await rig.drained()
}

describe('erasing a device', () => {
  it('removes its registrations, what they made of its keys, and its replays', async () => {
    await publishShared()
    // Two certificates and two keys.
    expect(await count(`install_keys final where tenant_id = '${tenantId}'`)).toBe(4)
    const receipt = await eraseNow(rig, { tenantId, kind: 'device', id: 'phone' })
    expect(receipt.counts).toMatchObject({
      'clickhouse.installs': { before: 1, after: 0 },
      'clickhouse.install_keys': { before: 2, after: 0 },
      'clickhouse.replays': { before: 1, after: 0 },
    })
    expect(await findDevice('phone')).toBeNull()
    expect((await findDevice('tablet'))?.install).not.toBeNull()
    expect(await count(`install_keys final where tenant_id = '${tenantId}'`)).toBe(2)
    const texts: string[] = []
    const { stream } = rig.nats.telemetryStreams[0]!
    const { state } = await rig.nats.manager.streams.info(stream)
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const message = await rig.nats.manager.streams.getMessage(stream, { seq }).catch(() => null)
      if (message !== null) texts.push(Buffer.from(message.data).toString())
    }
    const own = `"tenant_id":"${tenantId}","device_id":"phone"`
    expect(texts.filter((text) => text.includes(own))).toEqual([])
  })

  it('keeps what it registered after the erasure was requested, with the later place', async () => {
    await publishShared()
    const { offsets } = await readStream(rig.nats, rig.postgres, telemetryStream)
    const { state } = await rig.nats.manager.streams.info(telemetryStream)
    const lastOffset = offsets.of(state.last_seq + 1) - 1
    // The same key again, in the same row as before.
    const later = verified({ device_id: 'phone', token_id: 'later' })
    await publish(makeRegistrationElement(later, atMs), event('phone'))
    await rig.drained()
    const store = createErasureStore(rig.clickhouse)
    const subject = { tenantId, kind: 'device', id: 'phone' } as const
    const traces = await store.readTraces(subject, lastOffset, null)
    await store.eraseRows(traces)
    expect(await count(`install_keys final where tenant_id = '${tenantId}'`)).toBe(2)
    await store.rebuild(traces)
    expect(await count(`install_keys final where tenant_id = '${tenantId}'`)).toBe(4)
    expect(
      await count(`install_keys final where tenant_id = '${tenantId}'
        and stream_offset > ${lastOffset}`),
    ).toBe(2)
    expect(await count(`installs final where tenant_id = '${tenantId}'`)).toBe(2)
  })
})

/** The keys of an install that an event with these traits has. */
const keysOf = (...events: EventFacts[]) =>
  events.map((facts) =>
    makeElement({
      tenantId,
      receivedAtMs: atMs,
      ...facts,
      more: { device: { identifiers: { keychain_id: 'k'.repeat(22) }, ...facts.more } },
    }),
  )
const tableOfKeys = () => `identity_keys final where tenant_id = '${tenantId}'`
const userOfKey = new Map(['ada', 'eve', 'acc-9'].map((user) => [toHash(toUserKey(user)), user]))
/** Each device with the users that it has keys of. */
const devicesOfKeys = async () =>
  (
    await read<{ device: string; keys: string[] }>(
      `select device_id as device, arrayMap(key -> toString(key), groupUniqArray(key_hash)) as keys
      from ${tableOfKeys()} group by device order by device`,
    )
  ).map(({ device, keys }) => {
    return [device, ...keys.flatMap((key) => userOfKey.get(key) ?? []).sort()]
  })
type KeyRow = {
  key_hash: string
  stream_offset: string
  first_event: { stream_offset: string; received_at: string; traits: string }
}
const readKeys = (deviceId: string) =>
  read<KeyRow>(`select * from ${tableOfKeys()} and device_id = '${deviceId}' order by key_hash`)
/** The traits that stand in some of these rows. */
const readTexts = (rows: KeyRow[]) =>
  rows.flatMap(({ first_event: { traits } }) => (traits === '' ? [] : [readTraits(traits)]))

describe('keys of installs', () => {
  const phone: EventFacts = { deviceId: 'phone', sessionId: 's-1' }

  it('are written once, however often an SDK sends another start of the system', async () => {
    // As traits have it: whole steps of two seconds.
    const bootMs = Math.round(atMs / 2_000) * 2_000
    const bootAt = (n: number) => new Date(bootMs - n * 60_000).toISOString()
    const started = (n: number): EventFacts => ({
      ...phone,
      deviceId: 'restless',
      nonce: n,
      more: { boot_at: bootAt(n) },
    })
    await publish(...keysOf(started(1), started(2), started(3)))
    await rig.drained()
    await publish(...keysOf(started(4)))
    await rig.drained()
    const [first, ...others] = readTexts(await readKeys('restless'))
    expect([first?.bootAtMs, others]).toEqual([Date.parse(bootAt(1)), []])
    expect(await count(`${tableOfKeys()} and device_id = 'restless'`)).toBe(2)
  })

  it('of a phone that comes from five networks are one row each, and its traits stand once', async () => {
    const visit = (n: number): EventFacts => ({
      ...phone,
      userId: 'ada',
      nonce: n,
      connection: { network: `81.2.${n}.0/24`, address_hash: 'a'.repeat(22) },
      more: toSentDevice(1),
    })
    await publish(...keysOf(visit(1), visit(2)))
    await rig.drained()
    // From another process, which remembers nothing, and again from it.
    await rig.endScorers()
    scorer = await rig.startScorer()
    await publish(...keysOf(visit(3), visit(4)))
    await rig.drained()
    await publish(...keysOf(visit(2), visit(5)))
    await rig.drained()
    // The identifier, the user, the hardware, the setup, five networks and the install itself.
    const rows = await readKeys('phone')
    expect(rows).toHaveLength(10)
    expect(readTexts(rows).map(({ network }) => network)).toEqual(['81.2.1.0/24'])
    expect(await scorer.readMetric('di_identity_keys_stored_total')).toBe(5 + 2 + 2)
  })

  it('go with their device, and those of later events come back at their place', async () => {
    await publish(...keysOf(phone, { ...phone, deviceId: 'tablet' }))
    await rig.drained()
    // The identifier and the install itself, of each.
    expect(await count(tableOfKeys())).toBe(4)
    const { offsets } = await readStream(rig.nats, rig.postgres, telemetryStream)
    const { state } = await rig.nats.manager.streams.info(telemetryStream)
    const lastOffset = offsets.of(state.last_seq + 1) - 1
    // The same traits, so the same rows, from two processes.
    await rig.endScorers()
    scorer = await rig.startScorer()
    const later = { ...phone, receivedAtMs: atMs + 60_000, userId: 'ada', nonce: 2 }
    await publish(...keysOf({ ...phone, nonce: 1 }, later))
    await publish(...keysOf({ ...phone, nonce: 3 }))
    await rig.drained()
    const store = createErasureStore(rig.clickhouse)
    const subject = { tenantId, kind: 'device', id: 'phone' } as const
    const traces = await store.readTraces(subject, lastOffset, null)
    const before = await readKeys('phone')
    await store.eraseRows(traces)
    expect(await devicesOfKeys()).toEqual([['tablet']])
    await store.rebuild(traces)
    expect(await devicesOfKeys()).toEqual([['phone', 'ada'], ['tablet']])
    const after = await readKeys('phone')
    const withoutPlaces = (rows: KeyRow[]) =>
      rows.map((row) => ({
        ...row,
        stream_offset: 0,
        first_event: { ...row.first_event, stream_offset: 0 },
      }))
    expect(withoutPlaces(after)).toEqual(withoutPlaces(before))
    expect(Math.min(...after.map(({ stream_offset: at }) => Number(at)))).toBe(lastOffset + 1)
    const receipt = await eraseNow(rig, { tenantId, kind: 'device', id: 'phone' })
    expect(receipt.counts).toMatchObject({ 'clickhouse.identity_keys': { before: 3, after: 0 } })
  })

  it('and what was decided by them go with their device, also where it is an earlier install', async () => {
    const device = toSentDevice(1)
    await publish(
      ...keysOf({ ...phone, more: device }, { ...phone, deviceId: 'again', more: device }),
    )
    await rig.drained()
    const links = `select device_id, installs from phone_links final
      where tenant_id = '${tenantId}' order by device_id`
    expect(await read(links)).toEqual([
      { device_id: 'again', installs: ['phone'] },
      { device_id: 'phone', installs: [] },
    ])
    const receipt = await eraseNow(rig, { tenantId, kind: 'device', id: 'phone' })
    expect(receipt.counts).toMatchObject({
      'clickhouse.phone_links': { before: 1, after: 0 },
      'clickhouse.phone_installs': { before: 1, after: 0 },
    })
    expect(await read(links)).toEqual([{ device_id: 'again', installs: [] }])
  })

  it('that name a user go with the user, and what other events told stays', async () => {
    const facts = { ...phone, userId: 'eve', accountId: 'acc-9' }
    await publish(...keysOf(phone, facts, { ...phone, userId: 'ada', nonce: 1 }))
    const from = (place: number, more: EventFacts): EventFacts => ({
      connection: { network: `81.2.${place}.0/24`, address_hash: 'a'.repeat(22) },
      ...more,
      more: toSentDevice(1),
    })
    const tablet = { ...phone, deviceId: 'tablet' }
    await publish(
      ...keysOf(from(1, { ...tablet, userId: 'eve' }), from(2, { ...tablet, userId: 'ada' })),
      ...keysOf(from(1, { ...phone, deviceId: 'other', userId: 'ada' })),
    )
    await rig.drained()
    const [byEve, other] = [await readKeys('tablet'), await readKeys('other')]
    const receipt = await eraseNow(rig, { tenantId, kind: 'user', id: 'eve' })
    // The user's own key on two devices, and the install that began with the user.
    expect(receipt.counts).toMatchObject({ 'clickhouse.identity_keys': { before: 3, after: 0 } })
    expect(await devicesOfKeys()).toEqual([
      ['other', 'ada'],
      ['phone', 'ada'],
      ['tablet', 'ada'],
    ])
    // Merged or not.
    const named = `identity_keys where position(first_event.traits, 'eve') > 0`
    expect(await count(`${named} and tenant_id = '${tenantId}'`)).toBe(0)
    expect(await readKeys('other')).toEqual(other)
    const byAda = await readKeys('tablet')
    // Neither the user nor the network that only the user's event came from.
    expect([byEve.length, byAda.length]).toEqual([8, 6])
    const places = new Set(byAda.map(({ stream_offset: place }) => place))
    expect(places.size).toBe(1)
    const [first] = byAda.filter(({ first_event: { traits } }) => traits !== '')
    expect(first?.first_event.stream_offset).toBe(first?.stream_offset)
    expect(readTexts(byAda)).toMatchObject([{ network: '81.2.2.0/24', users: ['ada'] }])
  })

  it('of an install that goes on after its erasure are written again, and so is its phone', async () => {
    await publish(...keysOf(phone))
    await rig.drained()
    await eraseNow(rig, { tenantId, kind: 'device', id: 'phone' })
    expect(await devicesOfKeys()).toEqual([])
    await rig.postgres.query(
      `insert into erasures
        (erasure_id, tenant_id, kind, subject_sha256, requested_by, state, receipt, ended_at)
       values ($1, $2, 'device', 'hash', 'test', 'done', '{}', clock_timestamp())`,
      [`ers_${tenantId}`, tenantId],
    )
    let nonce = 0
    await until('the scorer writes what it wrote before', async () => {
      await publish(...keysOf({ ...phone, nonce: ++nonce }))
      await rig.drained()
      return (await devicesOfKeys()).length > 0
    })
    expect(await devicesOfKeys()).toEqual([['phone']])
    // It forgets the phone at the same time, and decides it again.
    expect(await count(`phone_links final where tenant_id = '${tenantId}'`)).toBe(1)
  })

  it('are kept while the install goes on, and removed by retention then', async () => {
    const hourMs = 3_600_000
    const seen = (deviceId: string, hours: number): EventFacts => ({
      deviceId,
      nonce: hours,
      receivedAtMs: atMs + hours * hourMs,
      connection: { network: `81.2.${hours}.0/24`, address_hash: 'a'.repeat(22) },
      more: deviceId === 'phone' ? toSentDevice(1) : {},
    })
    await publish(...keysOf(seen('gone', 0), seen('phone', 0)))
    await rig.drained()
    await publish(...keysOf(seen('gone', 1), seen('phone', 13)))
    await rig.drained()
    const remove = (table: 'identity_keys' | 'phone_links' | 'phone_installs') =>
      removeRows(rig.clickhouse, {
        table,
        tenantIds: [tenantId],
        cutoffMs: atMs + 12 * hourMs,
        signal: new AbortController().signal,
        nowMs: () => performance.now(),
      })
    // An install keeps its phone for as long as it has keys.
    expect(await remove('phone_links')).toBe(0)
    // Both of the one that is gone, and a network to which the other did not come back.
    expect(await remove('identity_keys')).toBe(3)
    expect(await readKeys('phone')).toHaveLength(5)
    expect([await remove('phone_links'), await remove('phone_installs')]).toEqual([1, 1])
    expect(await count(`phone_links final where tenant_id = '${tenantId}'`)).toBe(1)
    expect(await devicesOfKeys()).toEqual([['phone']])
    // From the first event on.
    const [own] = (await readKeys('phone')).filter(({ first_event: first }) => first.traits !== '')
    expect(own?.first_event.received_at).toBe(
      new Date(atMs).toISOString().replace(/[TZ]/g, ' ').trim(),
    )
  })
})

it('retention removes registrations, keys that nobody registered since, and replays', async () => {
  await publishShared()
  const fresh = { device_id: 'tablet', token_id: 'fresh' }
  await publish(makeRegistrationElement(verified(fresh), atMs + 2_400_000))
  await rig.drained()
  const remove = (table: 'installs' | 'install_keys' | 'replays') =>
    removeRows(rig.clickhouse, {
      table,
      tenantIds: [tenantId],
      cutoffMs: atMs + 1_800_000,
      signal: new AbortController().signal,
      nowMs: () => performance.now(),
    })
  expect(await remove('installs')).toBe(2)
  expect(await remove('install_keys')).toBe(2)
  expect(await remove('replays')).toBe(1)
  for (const [table, left] of [
    ['installs', 1],
    ['install_keys', 2],
    ['replays', 0],
  ] as const) {
    expect([table, await count(`${table} final where tenant_id = '${tenantId}'`)]).toEqual([
      table,
      left,
    ])
  }
})
