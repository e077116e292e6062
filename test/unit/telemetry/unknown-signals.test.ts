// The names of unknown signals: bounded, sorted, and equal for equal events.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { findBeyondCatalog } from '#shared/core/telemetry/fast-path.ts'
import { isForbiddenKey } from '#shared/core/telemetry/submission.ts'
import { findUnknownSignals } from '#shared/core/telemetry/unknown-signals.ts'

const none = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }
const find = (signals: Partial<Signals>) => findUnknownSignals({ ...none, ...signals })

describe('unknown signals', () => {
  test('are none where the catalog has all', () => {
    expect(find({})).toEqual([])
    const all = Object.entries(signalCatalog).map(([category, signals]) => [
      category,
      Object.fromEntries(Object.keys(signals).map((name) => [name, null])),
    ])
    expect(find(Object.fromEntries(all))).toEqual([])
  })

  test('are listed by category, sorted, with any values', () => {
    expect(
      find({
        network: { zz_new: false, vpn_active: true },
        root: { su_binary: true, su_Binary: true, nested: { deep: [1] }, gone: null },
        emulator: { su_binary: true, toString: 1, constructor_: 1 },
      }),
    ).toEqual([
      'emulator.constructor_',
      'emulator.su_binary',
      'emulator.toString',
      'network.zz_new',
      'root.gone',
      'root.nested',
      'root.su_Binary',
    ])
  })

  test('with names of more than 64 characters are one per category', () => {
    const root = { ['x'.repeat(64)]: 1, ['y'.repeat(65)]: 1, ['z'.repeat(400)]: 1 }
    const long = 'root.(longer name)'
    expect(find({ root })).toEqual([long, `root.${'x'.repeat(64)}`])
  })

  test('are at most 32 per event, the first ones in it', () => {
    const names = Array.from({ length: 100 }, (_, index) => `n${String(index).padStart(3, '0')}`)
    const tamper = Object.fromEntries(names.toReversed().map((name) => [name, true]))
    expect(find({ tamper })).toEqual(names.slice(-32).map((name) => `tamper.${name}`))
  })

  test('are equal for any order of keys, and as many as ingest counts', () => {
    // Names with a special meaning in other languages are rejected before this.
    const name = fc.stringMatching(/^[a-z_]{1,20}$/).filter((text) => !isForbiddenKey(text))
    const names = fc.uniqueArray(fc.tuple(fc.constantFrom(...categories), name), {
      maxLength: 32,
      selector: (pair) => pair.join('.'),
    })
    const toSignals = (pairs: [Category, string][]) => {
      const signals = structuredClone(none) as Signals
      for (const [category, name] of pairs) signals[category][name] = null
      return signals
    }
    fc.assert(
      fc.property(names, (pairs) => {
        const found = findUnknownSignals(toSignals(pairs))
        expect(findUnknownSignals(toSignals(pairs.toReversed()))).toEqual(found)
        expect(found).toHaveLength(findBeyondCatalog({ signals: toSignals(pairs) }).unknownSignals)
        expect(found).toEqual([...found].sort())
      }),
      { numRuns: 300, verbose: true },
    )
  })
})
