// What the order of the stream tells of installs: compared with the plainest model of each rule, over
// random streams with repetitions, in any order of rows.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { issuerModelsMax, orderWindowMs, retryMaxMs } from '#shared/core/base/limits/history.ts'
import { type EventCopy, findReplays } from '#shared/core/installs/replays.ts'
import {
  type AssertedEvent,
  findReusedCounters,
  toAssertion,
} from '#shared/core/installs/reused-counters.ts'
import {
  findJudgedIssuer,
  findSharedKey,
  type KeySightings,
} from '#shared/core/installs/shared-keys.ts'
import { seed } from '../../support/process/seed.ts'

const minuteMs = 60_000
process.stdout.write(`order facts seed ${seed}\n`)

const anyRow = fc.record({
  event: fc.integer({ min: 1, max: 8 }),
  atMs: fc.integer({ min: 0, max: 40 }).map((n) => n * minuteMs),
  assertedKey: fc.constantFrom(1, 1, 1, 2),
  counter: fc.integer({ min: 0, max: 5 }),
})
const anyStream = fc
  .array(anyRow, { minLength: 1, maxLength: 30 })
  .map((rows) => rows.map((row, n) => ({ ...row, streamOffset: (n + 1) * 10 })))
/** The rows as a query may return them: some twice, in another order. */
const shuffled = <T>(rows: readonly T[]): T[] => [...rows, ...rows.slice(0, 7)].reverse()
const firsts = <T extends EventCopy>(rows: readonly T[]): T[] =>
  rows.filter((row, n) => rows.findIndex((one) => one.event === row.event) === n)

describe('a replay', () => {
  it('is told by the next event of the device alone, as a walk through the stream finds it', () => {
    let told = 0
    fc.assert(
      fc.property(anyStream, (rows) => {
        const firstAt = new Map<number, number>()
        const expected = new Map<number, unknown>()
        let pending: unknown = null
        for (const { event, atMs, streamOffset } of rows) {
          const first = firstAt.get(event)
          if (first === undefined) {
            firstAt.set(event, atMs)
            expected.set(streamOffset, pending)
            pending = null
          } else if (atMs - first > retryMaxMs) pending = { firstAtMs: first, atMs }
        }
        const events = firsts(rows)
        const found = findReplays(shuffled(rows), events)
        told += found.filter((one) => one !== null).length
        expect(found).toEqual(events.map(({ streamOffset }) => expected.get(streamOffset)))
      }),
      { seed, numRuns: 2_000 },
    )
    expect(told).toBeGreaterThan(100)
  })

  it('is no retry within ten minutes, and nothing of what came long before the window', () => {
    const copy = (streamOffset: number, event: number, atMs: number) => ({
      streamOffset,
      event,
      atMs,
    })
    const next = (atMs: number) => [copy(9, 2, atMs)]
    const within = [copy(1, 1, 0), copy(2, 1, retryMaxMs)]
    expect(findReplays(within, next(retryMaxMs + 1))).toEqual([null])
    const after = [copy(1, 1, 0), copy(2, 1, retryMaxMs + 1)]
    expect(findReplays(after, next(retryMaxMs + 2))).toEqual([
      { firstAtMs: 0, atMs: retryMaxMs + 1 },
    ])
    expect(findReplays(after, next(orderWindowMs))).toEqual([null])
    // What is before the window may be missing among the rows.
    expect(findReplays(after.slice(1), next(orderWindowMs))).toEqual([null])
  })
})

describe('a counter', () => {
  it('is reused when one of its key before it in the stream is as high', () => {
    let reused = 0
    fc.assert(
      fc.property(anyStream, (rows) => {
        const events = firsts(rows)
        const expected = events.map((own) => {
          const before = rows
            .filter((row) => row.streamOffset < own.streamOffset && row.event !== own.event)
            .filter((row) => row.assertedKey === own.assertedKey)
          const highest = Math.max(0, ...before.map((row) => row.counter))
          return own.counter > 0 && highest >= own.counter ? highest : null
        })
        reused += expected.filter((one) => one !== null).length
        expect(findReusedCounters(shuffled(rows), events)).toEqual(expected)
      }),
      { seed, numRuns: 2_000 },
    )
    expect(reused).toBeGreaterThan(100)
  })

  it('is not reused by a copy of the same event', () => {
    const one = { event: 1, atMs: 0, assertedKey: 1, counter: 5 }
    const rows: AssertedEvent[] = [
      { ...one, streamOffset: 1 },
      { ...one, streamOffset: 2 },
    ]
    expect(findReusedCounters(rows, [rows[0]!, rows[1]!])).toEqual([null, null])
  })

  it('is read from the head of an event', () => {
    expect(toAssertion(undefined)).toBeNull()
    expect(toAssertion({ attested_key: null, counter: 5 })).toBeNull()
    expect(toAssertion({ attested_key: 'k' })).toBeNull()
    expect(toAssertion({ attested_key: 'k', counter: 5 })?.counter).toBe(5)
    expect(toAssertion({ attested_key: 'k', counter: 2 ** 40 })?.counter).toBe(0xffff_ffff)
    expect(toAssertion({ attested_key: 'k', counter: -1 })).toBeNull()
  })
})

describe('a key', () => {
  const of = (kind: KeySightings['kind'], firstOffsets: number[], sinceOffset = 0) => {
    return { kind, firstOffsets, sinceOffset }
  }
  const models = Array.from({ length: issuerModelsMax + 1 }, (_, n) => n + 1)

  it.each([
    ['on one device', [of('key', [5])], null],
    ['on two devices', [of('key', [5, 9])], { kind: 'key', count: 2 }],
    ['on a second device later', [of('key', [5, 11])], null],
    [
      'with a phone’s certificate on two',
      [of('remote_issuer', [5, 6])],
      { kind: 'remote_issuer', count: 2 },
    ],
    ['with such a certificate later', [of('remote_issuer', [5, 6], 11)], null],
    ['of a batch with as many models as it has', [of('issuer', models.slice(1))], null],
    [
      'of a batch with one more',
      [
        of(
          'issuer',
          models.map(() => 3),
        ),
      ],
      { kind: 'issuer', count: models.length },
    ],
    [
      'in two ways',
      [
        of(
          'issuer',
          models.map(() => 3),
        ),
        of('key', [1, 2]),
      ],
      { kind: 'key', count: 2 },
    ],
  ])('%s as of the event at 10', (_, sightings, expected) => {
    expect(findSharedKey(sightings, 10)).toEqual(expected)
  })

  it('is judged by the certificate that signed it, of Android alone', () => {
    expect(findJudgedIssuer({ provider: 'key_attestation', issuers: ['own', 'maker'] })).toBe('own')
    expect(findJudgedIssuer({ provider: 'key_attestation', issuers: [] })).toBeNull()
    expect(findJudgedIssuer({ provider: 'app_attest', issuers: ['Apple'] })).toBeNull()
  })
})
