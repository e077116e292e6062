// The SQL text of a compiled policy: an operator's text never becomes grammar, and unused parts are
// omitted. Tests with the real engine show that it computes the same as the closure.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Policy, policySchema } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import {
  flagBitsPerWord,
  listFlagWords,
  readFlagWords,
} from '#shared/core/scoring/sql/flag-words.ts'
import { compileToSql, toScoringQuery } from '#shared/core/scoring/sql/scoring-sql.ts'
import { quoteNumber, quoteText } from '#shared/core/scoring/sql/scoring-sql-text.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import { seed } from '../../support/process/seed.ts'

function toSql(policy: Policy): string {
  const compiled = compileToSql(policy, { prefix: 'n_', source: 'columns', withFlags: true })
  return toScoringQuery([compiled], { from: 'telemetry', keep: [] })
}

describe('a literal', () => {
  it('is the text or its bytes, and never ends early', () => {
    process.stdout.write(`literals seed ${seed}\n`)
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom("'", '\\', "\\'; drop"))
    fc.assert(
      fc.property(text, (value) => {
        const literal = quoteText(value)
        if (literal.startsWith('unhex')) {
          expect(literal).toMatch(/^unhex\('[0-9a-f]*'\)$/)
          const bytes = Buffer.from(literal.slice(7, -2), 'hex')
          expect(bytes.equals(Buffer.from(value, 'utf8'))).toBe(true)
        } else {
          expect(literal).toBe(`'${value}'`)
          expect(value).toMatch(/^[\x20-\x7e]*$/)
          expect(value).not.toMatch(/['\\]/)
        }
      }),
      { seed },
    )
  })

  it('of a number keeps every bit', () => {
    expect(quoteNumber(-5)).toBe('toInt64(-5)')
    expect(quoteNumber(0.1)).toBe("reinterpretAsFloat64(unhex('9a9999999999b93f'))")
  })
})

describe('a compiled policy', () => {
  it('omits signals of weight 0', () => {
    expect(toSql(presets.balanced)).not.toContain('signals.network.asn')
    expect(toSql(presets.balanced)).toContain('signals.network.vpn_active')
  })

  it('reads no signal outside the catalog', () => {
    const { categories } = presets.balanced
    const root = { ...categories.root, signals: { "x'; drop table telemetry": 50, su_binary: 1 } }
    const policy = policySchema.parse({ ...presets.balanced, categories: { ...categories, root } })
    expect(toSql(policy)).not.toContain('drop table')
  })

  it('keeps the texts of suppressions out of the grammar', () => {
    const policy = policySchema.parse({
      ...presets.balanced,
      suppressions: [
        { signals: ['root.*'], sdkVersions: ["') or 1 --"], expiresAt: null, reason: 'test' },
      ],
    })
    expect(toSql(policy)).not.toContain('or 1 --')
  })

  it('names flags by bits that decode to the same flags, however many there are', () => {
    expect(readFlagWords([0, 0])).toEqual([])
    expect(readFlagWords([0b1000001, 0])).toEqual(['EMULATOR', 'ROOTED'])
    // More than the bits of one number.
    expect(flagCodes.length).toBeGreaterThan(53)
    expect(
      readFlagWords([0, 2 ** (flagCodes.indexOf('SANDBOX_FORCED') - flagBitsPerWord)]),
    ).toEqual(['SANDBOX_FORCED'])
    const codes = Array.from({ length: 200 }, (_, n) => `FLAG_${String(n).padStart(3, '0')}`)
    const full = listFlagWords(codes).map(() => 2 ** flagBitsPerWord - 1)
    expect(full).toHaveLength(4)
    expect(readFlagWords(full, codes)).toEqual(codes)
    expect(readFlagWords([0, 0, 2 ** 51 + 1], codes)).toEqual(['FLAG_104', 'FLAG_155'])
  })
})
