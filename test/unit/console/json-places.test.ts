/** The position of a JSON path in a text, and the differences of two documents. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findPlace } from '../../../services/console/web/pages/policies/json-places.ts'
import { findChanges } from '../../../shared/core/policies/policy-changes.ts'

const cut = (text: string, path: string) => {
  const { from, to } = findPlace(text, path)
  return text.slice(from, to)
}

describe('the position of a path', () => {
  const text = '{\n  "a": {"b": [1, {"c": "x, \\"}"}]},\n  "d": null\n}'

  it('is the member with its name, the list item, or the nearest existing parent', () => {
    expect(cut(text, '$.d')).toBe('"d": null')
    expect(cut(text, '$.a.b[0]')).toBe('1')
    expect(cut(text, '$.a.b[1].c')).toBe('"c": "x, \\"}"')
    expect(cut(text, '$.a.b[1].missing')).toBe('{"c": "x, \\"}"}')
    expect(cut(text, '$')).toBe('{')
    expect(cut('', '$.a')).toBe('')
  })

  it('contains the value of every member of any document', () => {
    const name = fc.stringMatching(/^[a-z_]{1,8}$/)
    const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null))
    const inner = fc.oneof(value, fc.array(value), fc.dictionary(name, value))
    fc.assert(
      fc.property(fc.dictionary(name, inner, { minKeys: 1 }), fc.nat(4), (document, indent) => {
        const whole = JSON.stringify(document, null, indent)
        for (const [key, own] of Object.entries(document)) {
          const member = cut(whole, `$.${key}`)
          expect(JSON.parse(`{${member}}`)).toEqual({ [key]: own })
        }
      }),
    )
  })

  it('is inside the text for any text', () => {
    fc.assert(
      fc.property(fc.string(), (any) => {
        const { from, to } = findPlace(any, '$.a[1].b')
        expect(from <= to && to <= any.length).toBe(true)
      }),
    )
  })
})

describe('the differences of two documents', () => {
  it('are listed by path, with added and removed values', () => {
    const before = { a: { b: 1, c: [1] }, d: 'x' }
    const after = { a: { b: 2, c: [1, 2] }, e: true }
    expect(findChanges(before, after)).toEqual([
      { path: 'a.b', before: '1', after: '2' },
      { path: 'a.c', before: '[1]', after: '[1,2]' },
      { path: 'd', before: '"x"', after: null },
      { path: 'e', before: null, after: 'true' },
    ])
    expect(findChanges(before, structuredClone(before))).toEqual([])
  })
})
