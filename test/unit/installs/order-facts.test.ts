// What the order of the stream tells of installs: compared with the plainest model of each rule, over
// random streams with repetitions, in any order of rows.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  issuerModelsMax,
  orderWindowMs,
  retryMaxMs,
  sharedPhonesMax,
} from '#shared/core/base/limits/history.ts'
import {
  type EventCopy,
  findFirstCopy,
  findReplays,
  type Replay,
} from '#shared/core/installs/replays.ts'
import { findReusedCounters, toAssertion } from '#shared/core/installs/reused-counters.ts'
import {
  findJudgedIssuer,
  findSharedKey,
  type KeySighting,
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
  network: fc.constantFrom(0, 1, 1, 1, 1, 2),
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
    const told = { late: 0, elsewhere: 0 }
    fc.assert(
      fc.property(anyStream, (rows) => {
        const firstOf = new Map<number, EventCopy>()
        const expected = new Map<number, Replay | null>()
        let pending: Replay | null = null
        for (const row of rows) {
          const { event, atMs, streamOffset, network } = row
          const first = firstOf.get(event)
          if (first === undefined) {
            firstOf.set(event, row)
            expected.set(streamOffset, pending)
            pending = null
            continue
          }
          const networkChanged = network !== first.network && network !== 0 && first.network !== 0
          const isLate = atMs - first.atMs > retryMaxMs
          if (isLate || networkChanged) pending = { firstAtMs: first.atMs, atMs, networkChanged }
        }
        const events = firsts(rows)
        const found = findReplays(shuffled(rows), events)
        for (const one of found) {
          if (one?.networkChanged) told.elsewhere++
          else if (one !== null) told.late++
        }
        expect(found).toEqual(events.map(({ streamOffset }) => expected.get(streamOffset)))
      }),
      { seed, numRuns: 1_000 },
    )
    expect(Math.min(told.late, told.elsewhere)).toBeGreaterThan(100)
  })

  it('is no retry within ten minutes, and nothing of what came long before the window', () => {
    const copy = (streamOffset: number, event: number, atMs: number) => ({
      streamOffset,
      event,
      atMs,
      network: 1,
    })
    const next = (atMs: number) => [copy(9, 2, atMs)]
    const within = [copy(1, 1, 0), copy(2, 1, retryMaxMs)]
    expect(findReplays(within, next(retryMaxMs + 1))).toEqual([null])
    const after = [copy(1, 1, 0), copy(2, 1, retryMaxMs + 1)]
    expect(findReplays(after, next(retryMaxMs + 2))).toEqual([
      { firstAtMs: 0, atMs: retryMaxMs + 1, networkChanged: false },
    ])
    expect(findReplays(after, next(orderWindowMs))).toEqual([null])
    // What is before the window may be missing among the rows.
    expect(findReplays(after.slice(1), next(orderWindowMs))).toEqual([null])
  })

  it.each([
    ['another network', 2, true],
    ['the same network', 1, false],
    ['a network that was not measured', 0, false],
  ])('is judged by the network at any time: a copy a second later from %s', (_, network, is) => {
    const first = { streamOffset: 1, event: 1, atMs: 0, network: 1 }
    const copy = { streamOffset: 2, event: 1, atMs: 1_000, network }
    const later = { streamOffset: 3, event: 2, atMs: 2_000, network: 1 }
    const replay = { firstAtMs: 0, atMs: 1_000, networkChanged: true }
    expect(findReplays([first, copy, later], [later])).toEqual([is ? replay : null])
    // A copy before an edge measured networks tells of none.
    const old = [{ ...first, network: 0 }, copy, later]
    expect(findReplays(old, [later])).toEqual([null])
    expect(findFirstCopy([copy, first, copy], 2)).toEqual({ firstAtMs: 0, networkChanged: is })
    expect(findFirstCopy([copy, first], 1)).toBeNull()
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
    const sightings = firstOffsets.map((streamOffset, n) => ({ streamOffset, holder: `p-${n}` }))
    return { kind, sightings, sinceOffset }
  }
  const models = Array.from({ length: issuerModelsMax + 1 }, (_, n) => n + 1)

  it.each([
    ['on one device', [of('key', [5])], null],
    ['on two devices', [of('key', [5, 9])], { kind: 'key', count: 2, phones: ['p-1'] }],
    ['on a second device later', [of('key', [5, 11])], null],
    [
      'with a phone’s certificate on two',
      [of('remote_issuer', [5, 6])],
      { kind: 'remote_issuer', count: 2, phones: ['p-1'] },
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
      { kind: 'issuer', count: models.length, phones: [] },
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
      { kind: 'key', count: 2, phones: ['p-1'] },
    ],
  ])('%s as of the event at 10', (_, sightings, expected) => {
    expect(findSharedKey(sightings, { streamOffset: 10, holder: 'p-0' })).toEqual(expected)
  })

  it('of two installs of one phone is not shared, and each other phone is named', () => {
    const at = (streamOffset: number, holder: string) => ({ streamOffset, holder })
    const one = [at(1, 'own'), at(2, 'own')]
    const event = { streamOffset: 10, holder: 'own' }
    const find = (sightings: KeySighting[]) =>
      findSharedKey([{ kind: 'remote_issuer', sinceOffset: 0, sightings }], event)
    expect(find(one)).toBeNull()
    const others = Array.from({ length: 9 }, (_, n) => at(n, `other-${n}`))
    const phones = others.slice(0, sharedPhonesMax).map(({ holder }) => holder)
    expect(find([...one, ...others])).toEqual({ kind: 'remote_issuer', count: 10, phones })
  })

  it('is judged by the certificate that signed it, of Android alone', () => {
    expect(findJudgedIssuer({ provider: 'key_attestation', issuers: ['own', 'maker'] })).toBe('own')
    expect(findJudgedIssuer({ provider: 'key_attestation', issuers: [] })).toBeNull()
    expect(findJudgedIssuer({ provider: 'app_attest', issuers: ['Apple'] })).toBeNull()
  })
})
