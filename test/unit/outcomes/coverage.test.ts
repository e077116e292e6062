import { describe, expect, test } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import {
  type CoverableSession,
  isCovered,
  toCoverage,
  toSessionOutcome,
} from '#shared/core/outcomes/coverage.ts'
import { type Label, toCountingLabels, toOutcome } from '#shared/core/outcomes/labels.ts'
import { toRate } from '#shared/core/outcomes/wilson.ts'

const occurredAtMs = Date.UTC(2026, 2, 1)
const label = (values: Partial<Label>): Label => ({
  labelId: 'lbl_1',
  seq: 1,
  subject: { kind: 'device', id: 'd1' },
  label: 'fraud',
  codeMeans: null,
  occurredAtMs,
  coveredDays: 30,
  amount: null,
  currency: null,
  externalId: '',
  ...values,
})
const session = (values: Partial<CoverableSession> = {}): CoverableSession => ({
  deviceId: 'd1',
  sessionId: 's1',
  users: ['u1', 'a1'],
  eventIds: ['evt_1'],
  startedAtMs: occurredAtMs - dayMs,
  ...values,
})

describe('a label covers', () => {
  test.each([
    ['event', 'evt_1'],
    ['session', 's1'],
    ['device', 'd1'],
    ['user', 'u1'],
    ['user', 'a1'],
  ] as const)('of a %s the session that names it', (kind, id) => {
    const coverage = toCoverage(label({ subject: { kind, id } }))
    expect(isCovered(session(), coverage)).toBe(true)
    const other = { deviceId: 'd2', sessionId: 's2', users: ['u2'], eventIds: ['evt_2'] }
    expect(isCovered(session(other), coverage)).toBe(false)
  })

  test('no session by an id of another kind', () => {
    for (const kind of ['event', 'session', 'user'] as const) {
      expect(isCovered(session(), toCoverage(label({ subject: { kind, id: 'd1' } })))).toBe(false)
    }
  })

  test('of a device or user the sessions that began in the days before, to the millisecond', () => {
    for (const subject of [
      { kind: 'device', id: 'd1' } as const,
      { kind: 'user', id: 'u1' } as const,
    ]) {
      const coverage = toCoverage(label({ subject, coveredDays: 7 }))
      const covers = (startedAtMs: number) => isCovered(session({ startedAtMs }), coverage)
      expect(covers(occurredAtMs)).toBe(true)
      expect(covers(occurredAtMs + 1)).toBe(false)
      expect(covers(occurredAtMs - 7 * dayMs + 1)).toBe(true)
      expect(covers(occurredAtMs - 7 * dayMs)).toBe(false)
    }
  })

  test('of an event or a session the session, whenever it began', () => {
    const startedAtMs = occurredAtMs + 400 * dayMs
    for (const subject of [
      { kind: 'event', id: 'evt_1' } as const,
      { kind: 'session', id: 's1' } as const,
    ]) {
      expect(isCovered(session({ startedAtMs }), toCoverage(label({ subject })))).toBe(true)
    }
  })
})

describe('a session', () => {
  const ofSession = { kind: 'session', id: 's1' } as const

  test('is what was said of itself before what was said of its device or user', () => {
    const honest = label({ subject: ofSession, label: 'legitimate' })
    expect(toSessionOutcome(session(), [label({})])).toBe('fraud')
    expect(toSessionOutcome(session(), [label({}), honest])).toBe('legitimate')
    expect(toSessionOutcome(session(), [label({})], ['legitimate'])).toBe('legitimate')
  })

  test('is fraud where labels as near disagree', () => {
    const own = [label({ subject: ofSession }), label({ subject: ofSession, label: 'legitimate' })]
    expect(toSessionOutcome(session(), own)).toBe('fraud')
    expect(toSessionOutcome(session(), own.reverse())).toBe('fraud')
    expect(toSessionOutcome(session(), [own[0]!], ['fraud'])).toBe('fraud')
    const wide = [label({ label: 'legitimate' }), label({ subject: { kind: 'user', id: 'u1' } })]
    expect(toSessionOutcome(session(), wide)).toBe('fraud')
  })

  test('that nothing covers is unknown', () => {
    expect(toSessionOutcome(session(), [])).toBe(null)
    expect(toSessionOutcome(session({ deviceId: 'd2' }), [label({})])).toBe(null)
  })
})

describe('of labels', () => {
  test('the latest of a subject and external id counts, whatever their order', () => {
    const first = label({ seq: 1, externalId: 'cb1' })
    const second = label({ seq: 2, externalId: 'cb1', label: 'legitimate' })
    const other = label({ seq: 3, externalId: 'cb2' })
    const ofUser = label({ seq: 4, externalId: 'cb1', subject: { kind: 'user', id: 'd1' } })
    for (const all of [
      [first, second, other, ofUser],
      [ofUser, other, second, first],
    ]) {
      expect(
        toCountingLabels(all)
          .map(({ seq }) => seq)
          .sort(),
      ).toEqual([2, 3, 4])
    }
  })

  test('a retraction takes back what was said before it, and a later label says it again', () => {
    const said = label({ seq: 1 })
    const retracted = label({ seq: 2, label: 'retracted' })
    expect(toCountingLabels([said, retracted])).toEqual([])
    expect(toCountingLabels([said, retracted, label({ seq: 3 })])).toHaveLength(1)
  })

  test('a declared code is what it means, and one of before is a kind of fraud', () => {
    expect(toOutcome('mule_account', 'fraud')).toBe('fraud')
    expect(toOutcome('trusted', 'legitimate')).toBe('legitimate')
    expect(toOutcome('mule_account')).toBe('fraud')
    expect(toOutcome('chargeback')).toBe('fraud')
    expect(toOutcome('legitimate')).toBe('legitimate')
    expect(toOutcome('retracted')).toBe(null)
  })
})

describe('a rate', () => {
  test('of fewer than ten cases is not given, and its range is wide', () => {
    expect(toRate(9, 9).rate).toBe(null)
    expect(toRate(10, 10).rate).toBe(1)
    expect(toRate(0, 0)).toEqual({ rate: null, low: 0, high: 1 })
  })

  // The figures of the closed form, by hand: p = 0.5, n = 10 has the half width 0.263406.
  test('has the interval of Wilson', () => {
    const { rate, low, high } = toRate(5, 10)
    expect(rate).toBe(0.5)
    expect(low).toBeCloseTo(0.236593, 5)
    expect(high).toBeCloseTo(0.763407, 5)
    expect(toRate(0, 20)).toMatchObject({ rate: 0, low: 0 })
    expect(toRate(20, 20)).toMatchObject({ rate: 1, high: 1 })
    expect(toRate(0, 20).high).toBeCloseTo(0.161125, 4)
  })
})
