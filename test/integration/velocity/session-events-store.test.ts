// The earlier events of sessions for which alerts may be raised, in a real ClickHouse.
import { describe, expect, it } from 'vitest'
import { findEarlierEvents } from '#shared/io/telemetry/session-events-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { makeEvents } from '../../support/telemetry/accepted-events.ts'
import { hostingConnection, plainConnection } from '../../support/telemetry/connections.ts'

const clickhouse = await useClickhouse()
const store = createTelemetryStore(clickhouse)

// Activity is kept for 35 days, so its tests use the current time.
const nowMs = Date.now()

describe('the earlier events of a session', () => {
  it('are read in order, each once, without those already known', async () => {
    const part = (sessionId: string, beforeStreamOffset: number) => ({
      tenantId: 'earlier',
      deviceId: 'device-1',
      sessionId,
      beforeStreamOffset,
    })
    const facts = ['a', 'b', 'a', 'b', 'a'].map((sessionId, nonce) => ({
      tenantId: 'earlier',
      sessionId,
      nonce,
      receivedAtMs: nowMs + nonce,
      connection: [hostingConnection, plainConnection][nonce],
    }))
    const events = makeEvents(facts, 3)
    const foreign = makeEvents([{ ...facts[0]!, tenantId: 'another' }], 2)
    await store.insertTelemetry([...events, ...foreign])
    await store.insertTelemetry(events)
    const parts = [part('a', events[4]!.streamOffset), part('b', events[1]!.streamOffset)]
    const known = [events[4]!.streamOffset, events[1]!.streamOffset]
    const find = (some: number[]) =>
      findEarlierEvents(clickhouse, { parts, excludedStreamOffsets: some })
    const found = await find(known)
    const [alone] = await findEarlierEvents(clickhouse, {
      parts: [part('b', events[3]!.streamOffset)],
      excludedStreamOffsets: [],
    })
    expect(alone!.connection).toEqual(plainConnection)
    expect(found.map((event) => event.event_id)).toEqual([events[0]!.event_id, events[2]!.event_id])
    // A message also has the lengths of its elements.
    const { bodyBytes, head_bytes, body_bytes, ...plain } = events[0] as (typeof events)[0] &
      Record<'head_bytes' | 'body_bytes', number>
    const { address, latitude, longitude, ...connection } = hostingConnection
    // A stored event without server signals has none.
    expect(found[0]).toEqual({ ...plain, server_signals: {}, connection })
    expect(await find([events[0]!.streamOffset, events[2]!.streamOffset, ...known])).toEqual([])
  })

  it('are found for a hundred sessions with the longest ids', async () => {
    const id = (n: number) => `${'東'.repeat(250)}${n}`
    const facts = Array.from({ length: 100 }, (_, n) => ({
      tenantId: 'long-ids',
      deviceId: id(n),
      sessionId: id(n),
      receivedAtMs: nowMs,
    }))
    const events = makeEvents(facts, 3)
    await store.insertTelemetry(events)
    const parts = facts.map(({ tenantId, deviceId, sessionId }, n) => ({
      tenantId,
      deviceId,
      sessionId,
      beforeStreamOffset: events[n]!.streamOffset + 1,
    }))
    const found = await findEarlierEvents(clickhouse, { parts, excludedStreamOffsets: [] })
    expect(found.map(({ event_id }) => event_id)).toEqual(events.map(({ event_id }) => event_id))
  })

  it('keep their first offset, even when the bytes came again with an older clock', async () => {
    const facts = { tenantId: 'older-clock', receivedAtMs: nowMs }
    const [first, last] = makeEvents([facts, { ...facts, nonce: 'last' }], 1)
    const [again] = makeEvents([{ ...facts, receivedAtMs: nowMs - 60_000 }], 2)
    await store.insertTelemetry([first!, last!])
    await store.insertTelemetry([again!])
    await clickhouse.command({ query: 'optimize table telemetry final' })
    const found = await findEarlierEvents(clickhouse, {
      parts: [
        {
          tenantId: 'older-clock',
          deviceId: 'device-1',
          sessionId: 'session-1',
          beforeStreamOffset: again!.streamOffset + 1,
        },
      ],
      excludedStreamOffsets: [last!.streamOffset, again!.streamOffset],
    })
    expect(found).toHaveLength(1)
    expect(found[0]).toMatchObject({ streamOffset: first!.streamOffset, received_at: nowMs })
  })
})
