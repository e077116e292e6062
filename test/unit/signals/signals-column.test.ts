// Signals for the JSON column: flat values unchanged, and no shape that costs the store more than
// its size.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { encodeSignals } from '#shared/core/signals/signals-column.ts'

const encode = (signals: unknown): unknown => JSON.parse(encodeSignals(signals as Signals))

describe('signals for the JSON column', () => {
  it('are unchanged when every list has plain values of one type', () => {
    const signals = {
      root: {
        su_binary: true,
        count: 3,
        name: 'x',
        absent: null,
        nested: { deeper: { a: [1, 2] } },
      },
      tamper: { verdicts: ['A', 'B', null], empty: [], flags: [true, false], numbers: [1, 2.5] },
    }
    expect(encode(signals)).toEqual(signals)
  })

  it('have any other list as its JSON text', () => {
    const lists = [[1, 'a'], [{ a: 1 }], [[1], [2]], [null, {}], [true, 1]]
    for (const list of lists) {
      const signals = { root: { list, beside: true, deep: { list } } }
      const text = JSON.stringify(list)
      expect(encode(signals)).toEqual({ root: { list: text, beside: true, deep: { list: text } } })
    }
  })

  it('never contain a list of lists or of objects, for any input', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (signals) => {
        const check = (value: unknown): void => {
          if (typeof value !== 'object' || value === null) return
          if (Array.isArray(value)) {
            for (const item of value) expect(typeof item === 'object' && item !== null).toBe(false)
          } else {
            for (const item of Object.values(value)) check(item)
          }
        }
        check(encode(signals))
      }),
    )
  })
})
