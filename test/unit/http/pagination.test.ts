// Cursors: opaque, bound to one list of one tenant, and safe with any text.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { cursorCharactersMax } from '#shared/core/base/limits/rest-api.ts'
import { idCharactersMax } from '#shared/core/base/limits/telemetry.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import { Problem } from '#shared/core/http/problem.ts'

const scope: CursorScope = { list: 'alerts', tenantId: 'acme', filters: ['OPEN', null] }
const schema = z.tuple([instantMsSchema, z.string().max(idCharactersMax)])

/** The problem of a rejected cursor, or null when it is accepted. */
function refusal(cursor: string, of: CursorScope = scope): Problem | null {
  try {
    decodeCursor(of, cursor, schema)
    return null
  } catch (error) {
    return error as Problem
  }
}

describe('a cursor', () => {
  test('decodes to the position that it was made from', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 4e12 }),
        fc.string({ unit: 'grapheme', maxLength: 80 }),
        (ms, id) => {
          fc.pre(id.length <= idCharactersMax)
          expect(decodeCursor(scope, encodeCursor(scope, [ms, id]), schema)).toEqual([ms, id])
        },
      ),
      { verbose: true },
    )
  })

  test.each<[string, Partial<CursorScope>]>([
    ['tenant', { tenantId: 'other' }],
    ['list', { list: 'sessions' }],
    ['filter', { filters: ['OPEN', 'BLOCK'] }],
    ['filter’s place', { filters: [null, 'OPEN'] }],
  ])('of another %s is refused', (_, other) => {
    const cursor = encodeCursor({ ...scope, ...other }, [1, 'a'])
    expect(refusal(cursor)).toMatchObject({
      code: 'invalid_query',
      errors: [{ path: 'cursor', message: 'is not a cursor of this list and these filters' }],
    })
  })

  test('of another scope, or any other text, is a 400', () => {
    const binding = JSON.parse(
      Buffer.from(encodeCursor(scope, []), 'base64url').toString(),
    ) as string[]
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const cursors = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.base64String(),
      fc.json().map((text) => Buffer.from(text).toString('base64url')),
      fc.array(fc.jsonValue()).map((values) => encode([...binding, ...values])),
    )
    fc.assert(
      fc.property(cursors, (cursor) => {
        const problem = refusal(cursor)
        if (problem === null) {
          const [, ms, id, ...more] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
          expect([typeof ms, typeof id, more]).toEqual(['number', 'string', []])
        } else expect(problem).toBeInstanceOf(Problem)
      }),
      { numRuns: 2_000, verbose: true },
    )
  })

  test.each([
    ['an instant beyond all dates', [8_640_000_000_000_001, 'a']],
    ['a broken millisecond', [1.5, 'a']],
    ['too few values', [1]],
    ['too many values', [1, 'a', 'b']],
    ['values in the wrong order', ['a', 1]],
  ])('with %s is refused', (_, position) => {
    expect(refusal(encodeCursor(scope, position))).toBeInstanceOf(Problem)
  })

  test('has one spelling', () => {
    const cursor = encodeCursor(scope, [1, 'a'])
    for (const other of [`${cursor}=`, `${cursor} `, ` ${cursor}`, `${cursor}A`, `*${cursor}`]) {
      expect(refusal(other)).toBeInstanceOf(Problem)
    }
    expect(refusal(cursor)).toBeNull()
  })

  test('of the longest id is within the limit; a longer one is rejected undecoded', () => {
    const cursor = encodeCursor(scope, [4e12, '\u{ffff}'.repeat(idCharactersMax)])
    expect(cursor.length).toBeLessThan(cursorCharactersMax)
    expect(refusal('A'.repeat(cursorCharactersMax + 4))).toBeInstanceOf(Problem)
  })
})
