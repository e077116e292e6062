// Instants as clients write them, and time spans split into days, hours and remainders.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  dayMs,
  hourMs,
  parseInstant,
  readOccurredAt,
  splitSpan,
} from '#shared/core/base/instants.ts'

describe('an instant', () => {
  const nine = Date.UTC(2026, 2, 1, 9, 30)

  test.each([
    ['2026-03-01T09:30:00Z', nine],
    ['2026-03-01T09:30Z', nine],
    ['2026-03-01t09:30:00z', nine],
    ['2026-03-01T10:30:00+01:00', nine],
    ['2026-03-01T10:30:00+0100', nine],
    // What an unencoded plus sign in a query becomes.
    ['2026-03-01T10:30:00 01:00', nine],
    ['2026-02-28T22:00:00-11:30', nine],
    ['2026-03-01T09:30:00.1Z', nine + 100],
    ['2026-03-01T09:30:00,123Z', nine + 123],
    ['2026-03-01', Date.UTC(2026, 2, 1)],
    ['2024-02-29', Date.UTC(2024, 1, 29)],
    ['0001-01-01', -62_135_596_800_000],
    ['0099-01-01T00:00:00Z', -59_042_995_200_000],
  ])('%s is read to the millisecond', (text, ms) => {
    expect(parseInstant(text)).toBe(ms)
  })

  test('finer than a millisecond is rounded up, so that comparisons stay exact', () => {
    expect(parseInstant('2026-03-01T09:30:00.123000Z')).toBe(nine + 123)
    expect(parseInstant('2026-03-01T09:30:00.123000001Z')).toBe(nine + 124)
    expect(parseInstant('2026-03-01T09:30:00.999999999Z')).toBe(nine + 1000)
  })

  test.each([
    ['', 'nothing'],
    ['yesterday', 'a word'],
    ['1772357400', 'a number'],
    ['2026-03-01T09:30:00', 'a time without an offset'],
    ['2026-03-01 09:30:00Z', 'a space for the T'],
    ['2026-02-29', 'a day that is not there'],
    ['2026-13-01', 'a month that is not there'],
    ['2026-00-10', 'month zero'],
    ['2026-03-01T24:00:00Z', 'hour 24'],
    ['2026-03-01T23:59:60Z', 'a leap second'],
    ['2026-03-01T09:30:00+24:00', 'an offset of a day'],
    ['2026-03-01T09:30:00.Z', 'an empty fraction'],
    ['2026-03-01T09:30:00.1234567890Z', 'ten digits'],
    ['20260301T093000Z', 'the basic form'],
    ['+002026-03-01', 'six digits of year'],
    ['2026-03-01\n', 'a line break'],
    ['２026-03-01', 'a digit of another script'],
  ])('%j is invalid: %s', (text) => {
    expect(parseInstant(text)).toBeNull()
  })

  test.each([
    ['2026-03-01T10:30:00+01:00', nine],
    ['2026-03-01T10:30:00+01', nine],
    ['20260301T093000Z', nine],
    ['20260301T103000+0100', nine],
    ['2026-03-01 09:30:00Z', nine],
    ['2026-03-01T10:30:00+01:00[Europe/Paris]', nine],
    ['2026-03-01T10:30:00+01:00[Europe/Paris][u-ca=iso8601]', nine],
    ['2026-03-01T09:30:00.0000000001Z', nine],
    ['2026-02-28T24:00:00Z', Date.UTC(2026, 2, 1)],
    ['2026-06-30T23:59:60Z', Date.UTC(2026, 6, 1)],
    ['2026-03-01', Date.UTC(2026, 2, 1)],
    [nine, nine],
    [nine + 0.4, nine],
  ])('of a client is read in every form with the same meaning: %s', (value, ms) => {
    expect(readOccurredAt(value)).toBe(ms)
  })

  test.each([
    ...['', 'Z', 'yesterday', '2026-03-01T', '2026-03-01T09:30:00', '2026-02-30T09:30Z'],
    ...['2026-03-01T24:00:01Z', '2026-03-01T09:60Z', '2026-03-01T09:30:61Z', '2026-13-01'],
    ...[
      1_790_000_000,
      -1,
      Number.POSITIVE_INFINITY,
      null,
      true,
      [],
      {},
      `2026-03-01T09:30:00Z${'[a]'.repeat(99)}`,
    ],
  ])('is never guessed for a client: %s', (value) => {
    expect(readOccurredAt(value)).toBeNull()
  })

  test('written by toISOString is always read back', () => {
    fc.assert(
      fc.property(fc.date({ min: new Date(0), max: new Date('9999-12-31') }), (date) => {
        fc.pre(!Number.isNaN(date.getTime()))
        expect(parseInstant(date.toISOString())).toBe(date.getTime())
      }),
      { verbose: true },
    )
  })
})

describe('a time span', () => {
  const near = fc
    .tuple(fc.integer({ min: 1, max: 100 }), fc.integer({ min: -2, max: 2 }), fc.nat(hourMs))
    .map(([hours, by, rest]) => hours * hourMs + by + (by === 2 ? rest : 0))

  test('is its days, with hours and remainders added or subtracted at either end', () => {
    fc.assert(
      fc.property(near, near, (fromMs, toMs) => {
        const { days, hours, rests } = splitSpan({ fromMs, toMs })
        const ends = [...hours, ...rests]
        // The number of times that an instant is counted changes only where a part begins or ends.
        const changes = new Map<number, number>()
        for (const part of [{ ...days, sign: 1 }, ...ends]) {
          expect(part.fromMs).toBeLessThanOrEqual(part.toMs)
          expect(part.sign === 0).toBe(part.fromMs === part.toMs && ends.includes(part as never))
          changes.set(part.fromMs, (changes.get(part.fromMs) ?? 0) + part.sign)
          changes.set(part.toMs, (changes.get(part.toMs) ?? 0) - part.sign)
        }
        const left = [...changes].filter(([, change]) => change !== 0).sort(([a], [b]) => a - b)
        const expectedRanges = [
          [fromMs, 1],
          [toMs, -1],
        ]
        expect(left).toEqual(fromMs < toMs ? expectedRanges : [])
        expect([days.fromMs % dayMs, days.toMs % dayMs].map(Math.abs)).toEqual([0, 0])
        for (const part of hours) {
          expect([part.fromMs % hourMs, part.toMs % hourMs].map(Math.abs)).toEqual([0, 0])
          expect(part.toMs - part.fromMs).toBeLessThanOrEqual(dayMs / 2)
        }
        for (const part of rests) expect(part.toMs - part.fromMs).toBeLessThanOrEqual(hourMs / 2)
      }),
      { numRuns: 500, verbose: true },
    )
  })

  test('may be open at either end', () => {
    const { days, hours, rests } = splitSpan({ fromMs: -Infinity, toMs: dayMs + hourMs + 1 })
    expect(days).toEqual({ fromMs: -Infinity, toMs: dayMs })
    expect(hours[0]).toMatchObject({ sign: 0 })
    expect(hours[1]).toEqual({ fromMs: dayMs, toMs: dayMs + hourMs, sign: 1 })
    expect(rests[0]).toMatchObject({ sign: 0 })
    expect(rests[1]).toEqual({ fromMs: dayMs + hourMs, toMs: dayMs + hourMs + 1, sign: 1 })
    expect(splitSpan({ fromMs: 0, toMs: Infinity }).days).toEqual({ fromMs: 0, toMs: Infinity })
  })
})
