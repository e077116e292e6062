// The arithmetic of the reconciliation: the tenant and hour of each message, the differences, and
// an edge's count of accepted events.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromEventIdBytes, toEventId, toEventIdBytes } from '#shared/core/base/ids.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  findReconciliationDifferences,
  type ReconciliationHour,
  toDecidedEntries,
  toStoredEntries,
} from '#shared/core/reconciliation/reconciliation.ts'
import { toReconciliationSpan } from '#shared/core/reconciliation/reconciliation-api.ts'
import { createAcceptedTally } from '../../../services/ingest/accepted-tally.ts'
import { makeEvents } from '../../support/telemetry/accepted-events.ts'

const hourMs = 3_600_000

const agreeing: ReconciliationHour = {
  tenantId: 'acme',
  hourMs: 0,
  accepted: 3,
  stored: 4,
  repeats: 1,
  refused: 0,
  erased: 0,
  rows: 3,
  decided: 4,
  alertsExpected: 1,
  alerts: 1,
  deliveries: 1,
  attempted: 1,
  delivered: 0,
  missing: { accepted: 0, rows: 0, decisions: 0, alerts: 0, deliveries: 0 },
  inFlight: 2,
  unexplainedAlerts: 0,
  expired: false,
}

describe('differences', () => {
  test('are none where all counts agree, with any number in transit or unclaimed', () => {
    expect(findReconciliationDifferences(agreeing)).toEqual([])
  })

  test('are named in the order of the pipeline, with missing and unexplained ones separate', () => {
    const missing = { accepted: 2, rows: -1, decisions: 1, alerts: 3, deliveries: 0 }
    expect(findReconciliationDifferences({ ...agreeing, missing, unexplainedAlerts: 4 })).toEqual([
      { stage: 'accepted', kind: 'missing', count: 2 },
      { stage: 'rows', kind: 'unexplained', count: 1 },
      { stage: 'decisions', kind: 'missing', count: 1 },
      { stage: 'alerts', kind: 'missing', count: 3 },
      { stage: 'alerts', kind: 'unexplained', count: 4 },
    ])
  })
})

describe('entries', () => {
  const events = makeEvents([
    { tenantId: 'acme', receivedAtMs: hourMs - 1, nonce: 1 },
    { tenantId: 'globex', receivedAtMs: hourMs, nonce: 2 },
    { tenantId: 'acme', receivedAtMs: hourMs, nonce: 3 },
    { tenantId: 'acme', receivedAtMs: hourMs + 1, nonce: 4 },
  ])
  const message = { streamOffset: events[0]!.streamOffset, publishedMs: 5, events }

  test('are one per tenant and hour, with every event in exactly one', () => {
    const entries = toStoredEntries(message, new Set([events[3]!]), 0)
    expect(
      entries.map(({ tenantId, hourMs, events, refused, named }) => [
        ...[tenantId, hourMs, events, refused],
        named.map((event) => event.streamOffset - message.streamOffset),
      ]),
    ).toEqual([
      ['acme', 0, 1, 0, [0]],
      ['globex', hourMs, 1, 0, [1]],
      ['acme', hourMs, 2, 1, [2]],
    ])
  })

  test('list the repeats of decided events', () => {
    const entries = toDecidedEntries(message, new Set([events[1]!]))
    expect(entries.map(({ events, named }) => [events, named.length])).toEqual([
      [1, 0],
      [1, 1],
      [2, 0],
    ])
  })

  test('omit no message, not even one without an event', () => {
    const empty = { streamOffset: 256, publishedMs: 5, events: [] }
    const [entry, ...rest] = toStoredEntries(empty, new Set(), 5)
    expect([entry?.tenantId, entry?.events, rest]).toEqual(['', 0, []])
  })
})

test('an event id survives its encoding as bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (body) => {
      const id = toEventId(body)
      expect(toEventIdBytes(id)).toHaveLength(17)
      expect(fromEventIdBytes(toEventIdBytes(id))).toBe(id)
    }),
    { verbose: true },
  )
  expect(toEventIdBytes('another')).toHaveLength(17)
})

describe('a tally', () => {
  test('counts every event once, by tenant and hour, from its start', () => {
    const tenant = fc.constantFrom('a', 'b', 'c')
    const event = fc.tuple(tenant, fc.integer({ min: 0, max: 3 * hourMs }))
    fc.assert(
      fc.property(fc.array(event), fc.integer({ min: 1, max: 9 }), (events, every) => {
        const tally = createAcceptedTally()
        const claimed = new Map<string, number>()
        const take = () => {
          for (const { hourMs: hour, accepted } of tally.drainChanged()) {
            for (const [id, n] of Object.entries(accepted)) claimed.set(`${id} ${hour}`, n)
          }
        }
        const expected = new Map<string, number>()
        events.forEach(([id, atMs], index) => {
          tally.count(id, atMs)
          const key = `${id} ${Math.floor(atMs / hourMs) * hourMs}`
          expected.set(key, (expected.get(key) ?? 0) + 1)
          if (index % every === 0) take()
        })
        take()
        expect(claimed).toEqual(expected)
        expect(tally.drainChanged()).toEqual([])
      }),
      { verbose: true },
    )
  })

  test('repeats a failed report, and splits many tenants into parts', () => {
    const tally = createAcceptedTally()
    for (let n = 0; n < 2_500; n++) tally.count(`t-${n}`, 5)
    const parts = tally.drainChanged()
    expect(parts.map(({ accepted }) => Object.keys(accepted).length)).toEqual([1_000, 1_000, 500])
    tally.requeue(parts[1]!)
    expect(tally.drainChanged()).toEqual([parts[1]])
  })

  test('drops hours that ended long ago', () => {
    const tally = createAcceptedTally()
    tally.count('a', 0)
    tally.drainChanged()
    tally.count('a', 9 * hourMs)
    expect(tally.drainChanged()).toHaveLength(1)
    tally.requeue({ hourMs: 0, part: 0 })
    expect(tally.drainChanged()).toEqual([])
  })
})

test('a time span is a day up to the end of this hour, and 31 days at most', () => {
  const nowMs = 100 * hourMs + 5
  expect(toReconciliationSpan({}, nowMs)).toEqual({ fromMs: 77 * hourMs, toMs: 101 * hourMs })
  expect(toReconciliationSpan({ from: 5, to: 6 }, nowMs)).toEqual({ fromMs: 5, toMs: 6 })
  expect(() => toReconciliationSpan({ from: 0, to: 745 * hourMs }, nowMs)).toThrow(Problem)
})
