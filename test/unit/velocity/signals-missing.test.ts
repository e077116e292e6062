// Missing categories: when a category is filled, what is usual, and that filling a category never
// adds a missing one.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import {
  estimateDevices,
  findMissingCategories,
  findSignalsMissing,
  needsBaseline,
  noBaseline,
  type SdkBaseline,
  toBaselineWindow,
  toFilledCategories,
} from '#shared/core/velocity/signals-missing.ts'
import { noSignals } from '../../support/signals/no-signals.ts'

const all = 0b111111
const without = (...names: Category[]) =>
  names.reduce((filled, name) => filled & ~(1 << categories.indexOf(name)), all)
const baseline = (devices: number, emptyOn: Partial<SdkBaseline['emptyOn']> = {}): SdkBaseline => ({
  devices,
  emptyOn: { ...noBaseline.emptyOn, ...emptyOn },
})
const rule = { threshold: 0, usualShare: 0.95, devicesMin: 100, weight: 15 }

describe('a filled category', () => {
  it('has at least one measured signal, with any value, known or unknown', () => {
    const of = (root: Record<string, unknown>) => toFilledCategories({ ...noSignals, root }) & 1
    expect(of({})).toBe(0)
    expect(of({ su_binary: null, jailbroken: null })).toBe(0)
    expect(of({ su_binary: null, jailbroken: false })).toBe(1)
    expect(of({ new_signal: 0 })).toBe(1)
    expect(of({ new_signal: '' })).toBe(1)
  })

  it('is a bit in the order of the public interface', () => {
    const bits = categories.map((name) => toFilledCategories({ ...noSignals, [name]: { x: 1 } }))
    expect(bits).toEqual([1, 2, 4, 8, 16, 32])
    expect(toFilledCategories(noSignals)).toBe(0)
    expect(toFilledCategories('text' as unknown as Signals)).toBe(0)
  })
})

describe('a baseline', () => {
  it('covers the 24 hours that ended a full hour before the event’s own', () => {
    const hourMs = 3_600_000
    const startMs = Date.UTC(2026, 5, 15, 12)
    for (const atMs of [startMs, startMs + 1, startMs + hourMs - 1]) {
      expect(toBaselineWindow(atMs)).toEqual({
        fromMs: Date.UTC(2026, 5, 14, 11),
        toMs: Date.UTC(2026, 5, 15, 11),
      })
    }
    expect(toBaselineWindow(startMs + hourMs).toMs).toBe(startMs)
  })

  it('estimates devices within 1 % up to 100,000', () => {
    const places = 65_536
    for (const devices of [1, 10, 100, 1_000, 10_000, 100_000]) {
      const taken = places * (1 - (1 - 1 / places) ** devices)
      expect(Math.abs(estimateDevices(taken) - devices)).toBeLessThanOrEqual(devices * 0.01)
    }
    expect(estimateDevices(0)).toBe(0)
    expect(estimateDevices(places)).toBe(estimateDevices(places - 1))
    expect(Number.isFinite(estimateDevices(places))).toBe(true)
  })

  it('is needed only where the rule can apply', () => {
    const policy = { signalsMissing: rule }
    expect(needsBaseline(all, policy)).toBe(false)
    expect(needsBaseline(without('tamper'), policy)).toBe(true)
    expect(needsBaseline(without('tamper'), { signalsMissing: { ...rule, threshold: 1 } })).toBe(
      false,
    )
    expect(needsBaseline(0, { signalsMissing: { ...rule, weight: 0 } })).toBe(false)
    expect(needsBaseline(0, { signalsMissing: null })).toBe(false)
  })
})

describe('a missing category', () => {
  it('is empty although the usual share of devices filled it', () => {
    const emptyOn = { network: 5, ecosystem: 6 }
    const missing = findMissingCategories(
      without('root', 'network', 'ecosystem'),
      baseline(100, emptyOn),
      rule,
    )
    expect(missing).toEqual(['root', 'network'])
  })

  it('needs a minimum of devices', () => {
    expect(findMissingCategories(0, baseline(99), rule)).toEqual([])
    expect(findMissingCategories(0, baseline(100), rule)).toEqual([...categories])
    expect(findMissingCategories(0, noBaseline, { ...rule, devicesMin: 10 })).toEqual([])
  })

  it('is exact at the usual share, for any share', () => {
    for (let percent = 50; percent <= 100; percent++) {
      const usual = { usualShare: percent / 100, devicesMin: 100 }
      const at = (root: number) =>
        findMissingCategories(without('root'), baseline(100, { root }), usual)
      expect(at(100 - percent)).toEqual(['root'])
      if (percent > 0) expect(at(101 - percent)).toEqual([])
    }
  })

  const anyBaseline = fc
    .record({
      devices: fc.nat(500),
      shares: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 6, maxLength: 6 }),
    })
    .map(({ devices, shares }) =>
      baseline(
        devices,
        Object.fromEntries(categories.map((name, n) => [name, Math.round(devices * shares[n]!)])),
      ),
    )
  const anyRule = fc.record({
    usualShare: fc.double({ min: 0.5, max: 1, noNaN: true }),
    devicesMin: fc.integer({ min: 10, max: 200 }),
  })

  it('never results from filling more', () => {
    const filled = fc.integer({ min: 0, max: all })
    fc.assert(
      fc.property(filled, filled, anyBaseline, anyRule, (some, more, usual, usualRule) => {
        const before = findMissingCategories(some, usual, usualRule)
        const after = findMissingCategories(some | more, usual, usualRule)
        for (const category of after) expect(before).toContain(category)
      }),
      { numRuns: 1000 },
    )
  })

  it('is never one that the event filled', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: all }),
        anyBaseline,
        anyRule,
        (filled, usual, usualRule) => {
          for (const category of findMissingCategories(filled, usual, usualRule)) {
            expect(filled & (1 << categories.indexOf(category))).toBe(0)
          }
        },
      ),
    )
  })
})

describe('missing signals', () => {
  const event = { filled: without('root', 'tamper'), baseline: baseline(200), sdkVersion: '4.2.0' }

  it('name the categories and the SDK version', () => {
    expect(findSignalsMissing(event, { signalsMissing: rule })).toEqual({
      code: 'SIGNALS_MISSING',
      weight: 15,
      evidence: {
        metric: 'missing_categories',
        count: 2,
        threshold: 0,
        window: '24h',
        categories: ['root', 'tamper'],
        sdk_version: '4.2.0',
      },
    })
  })

  it('contain no NUL, which Postgres cannot store', () => {
    const odd = { ...event, sdkVersion: '4.2\0\u0001' }
    expect(findSignalsMissing(odd, { signalsMissing: rule })?.evidence).toMatchObject({
      sdk_version: '4.2\ufffd\u0001',
    })
  })

  it('are found above the threshold only, and never when the rule is off', () => {
    expect(findSignalsMissing(event, { signalsMissing: { ...rule, threshold: 1 } })).not.toBeNull()
    expect(findSignalsMissing(event, { signalsMissing: { ...rule, threshold: 2 } })).toBeNull()
    expect(findSignalsMissing(event, { signalsMissing: { ...rule, weight: 0 } })).toBeNull()
    expect(findSignalsMissing(event, { signalsMissing: null })).toBeNull()
  })
})
