import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { flags } from '#shared/core/flags.ts'
import { balancedPolicy } from '#shared/core/policies/balanced.ts'
import { policySchema, toPolicyHash } from '#shared/core/policy.ts'
import { compilePolicy, shareOut, toAction, toSeverity } from '#shared/core/scoring.ts'
import { type SignalDefinition, signalCatalog } from '#shared/core/signals.ts'
import { type Category, categories, type Signals } from '#shared/core/telemetry.ts'

const score = compilePolicy(balancedPolicy)

function signals(partial: Partial<Signals> = {}): Signals {
  return {
    root: {},
    emulator: {},
    debugger: {},
    tamper: {},
    ecosystem: {},
    network: {},
    ...partial,
  }
}

type Vector = {
  name: string
  signals: Partial<Signals>
  rasp_score: number
  rasp_action: string
  flags: string[]
}

const vectors = JSON.parse(
  readFileSync(join(import.meta.dirname, '../vectors/scores.json'), 'utf8'),
) as { vectors: Vector[] }

describe('golden scores under the default policy', () => {
  it.each(vectors.vectors)('$name', (vector) => {
    const result = score(signals(vector.signals))
    expect({
      rasp_score: result.score,
      rasp_action: result.action,
      flags: result.reasons.map((reason) => reason.code),
    }).toEqual({
      rasp_score: vector.rasp_score,
      rasp_action: vector.rasp_action,
      flags: vector.flags,
    })
  })
})

/** Any signals of the catalog with values of their type, unknown ones and nulls among them. */
const anySignals: fc.Arbitrary<Signals> = fc.record(
  Object.fromEntries(categories.map((category) => [category, anyCategory(category)])) as Record<
    Category,
    fc.Arbitrary<Record<string, unknown>>
  >,
)

function anyCategory(category: Category): fc.Arbitrary<Record<string, unknown>> {
  const known = Object.entries(signalCatalog[category] as Record<string, SignalDefinition>).map(
    ([name, definition]) => fc.tuple(fc.constant(name), anyValue(definition, category, name)),
  )
  const unknown = fc.tuple(fc.constantFrom('new_signal', 'x.y', ''), fc.jsonValue())
  return fc
    .array(
      fc.oneof({ weight: 9, arbitrary: fc.oneof(...known) }, { weight: 1, arbitrary: unknown }),
      {
        maxLength: 8,
      },
    )
    .map((entries) => Object.fromEntries(entries))
}

function anyValue(
  definition: SignalDefinition,
  category: Category,
  name: string,
): fc.Arbitrary<unknown> {
  const weight = balancedPolicy.categories[category].signals[name]
  const values =
    typeof weight === 'object' && 'values' in weight ? Object.keys(weight.values) : ['OTHER']
  const text = fc.constantFrom(...values, 'OTHER')
  if (definition.type === 'boolean') return fc.constantFrom(true, false, null)
  if (definition.type === 'number')
    return fc.oneof(fc.integer({ min: -1, max: 20 }), fc.constant(null))
  if (definition.type === 'string') return fc.oneof(text, fc.constant(null))
  return fc.oneof(fc.array(text, { maxLength: 3 }), fc.constant(null))
}

describe('the score, whatever the signals', () => {
  it('lies within 0 and 100 and is a whole number', () => {
    fc.assert(
      fc.property(anySignals, (input) => {
        const result = score(input)
        expect(Number.isInteger(result.score)).toBe(true)
        expect(result.score).toBeGreaterThanOrEqual(0)
        expect(result.score).toBeLessThanOrEqual(100)
      }),
      { numRuns: 2_000 },
    )
  })

  it('is explained to the last point by reasons in descending weight, each flag once', () => {
    fc.assert(
      fc.property(anySignals, (input) => {
        const { score: total, reasons } = score(input)
        expect(reasons.reduce((sum, reason) => sum + reason.weight, 0)).toBe(total)
        const weights = reasons.map((reason) => reason.weight)
        expect(weights).toEqual([...weights].sort((a, b) => b - a))
        expect(new Set(reasons.map((reason) => reason.code)).size).toBe(reasons.length)
        for (const reason of reasons) {
          expect(reason.weight).toBeGreaterThanOrEqual(0)
          expect(Object.hasOwn(flags, reason.code)).toBe(true)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it('never falls when one more boolean signal is detected', () => {
    const booleans = categories.flatMap((category) =>
      Object.entries(signalCatalog[category] as Record<string, SignalDefinition>)
        .filter(([name, { type }]) => type === 'boolean' && name !== 'app_attest_valid')
        .map(([name]) => ({ category, name })),
    )
    fc.assert(
      fc.property(anySignals, fc.constantFrom(...booleans), (input, { category, name }) => {
        const without = { ...input, [category]: { ...input[category], [name]: false } }
        const detected = { ...input, [category]: { ...input[category], [name]: true } }
        expect(score(detected).score).toBeGreaterThanOrEqual(score(without).score)
      }),
      { numRuns: 5_000 },
    )
  })

  it('never blocks for network and ecosystem alone', () => {
    fc.assert(
      fc.property(anySignals, (input) => {
        const soft = signals({ ecosystem: input.ecosystem, network: input.network })
        expect(score(soft).action).not.toBe('BLOCK')
      }),
      { numRuns: 2_000 },
    )
    const all = (category: Category) =>
      Object.fromEntries(Object.keys(signalCatalog[category]).map((name) => [name, true]))
    const everything = signals({ ecosystem: all('ecosystem'), network: all('network') })
    expect(score(everything).score).toBe(74)
  })

  it('does not depend on the order of keys', () => {
    fc.assert(
      fc.property(anySignals, (input) => {
        const reversed = Object.fromEntries(
          Object.entries(input)
            .reverse()
            .map(([category, values]) => [
              category,
              Object.fromEntries(Object.entries(values).reverse()),
            ]),
        ) as Signals
        expect(score(reversed)).toEqual(score(input))
      }),
      { numRuns: 1_000 },
    )
  })

  it('reads absent and null as not measured, never as false', () => {
    expect(score(signals({ tamper: { app_attest_valid: false } })).score).toBe(30)
    expect(score(signals({ tamper: { app_attest_valid: null } })).score).toBe(0)
    expect(score(signals()).score).toBe(0)
  })

  it('gives keys of the object prototype no weight', () => {
    const hostile = JSON.parse('{"constructor":true,"toString":true,"hasOwnProperty":true}')
    expect(score(signals({ root: hostile as Record<string, unknown> })).score).toBe(0)
  })
})

describe('halving', () => {
  it('counts root half on a confirmed emulator and says so', () => {
    const result = score(signals({ root: { su_binary: true }, emulator: { is_emulator: true } }))
    expect(result.score).toBe(65)
    const rooted = result.reasons.find((reason) => reason.code === 'ROOTED')
    expect(rooted).toEqual({
      code: 'ROOTED',
      weight: 20,
      evidence: { signals: ['root.su_binary'], capped: true, halved_by: 'emulator' },
    })
  })
})

describe('the default policy', () => {
  it('is a valid policy document that weighs every signal of the catalog', () => {
    expect(policySchema.safeParse(balancedPolicy).error).toBeUndefined()
    for (const category of categories) {
      expect(Object.keys(balancedPolicy.categories[category].signals).sort()).toEqual(
        Object.keys(signalCatalog[category]).sort(),
      )
    }
  })

  it('names only catalog signals in floors and halving', () => {
    const paths = new Set(
      categories.flatMap((category) =>
        Object.keys(signalCatalog[category]).map((name) => `${category}.${name}`),
      ),
    )
    const named = [
      ...balancedPolicy.floors.flatMap((floor) => floor.signals),
      ...(balancedPolicy.halving?.confirmedBy ?? []),
    ]
    expect(named.filter((path) => !paths.has(path))).toEqual([])
  })

  it('is addressed by its content', () => {
    const other = { ...balancedPolicy, name: 'other' }
    expect(toPolicyHash(balancedPolicy)).toMatch(/^[0-9a-f]{32}$/)
    expect(toPolicyHash(other)).not.toBe(toPolicyHash(balancedPolicy))
  })
})

describe('thresholds and severity', () => {
  it('draws the lines where the contract does', () => {
    const thresholds = balancedPolicy.thresholds
    expect([0, 39, 40, 74, 75, 100].map((at) => toAction(at, thresholds))).toEqual([
      'ALLOW',
      'ALLOW',
      'REVIEW',
      'REVIEW',
      'BLOCK',
      'BLOCK',
    ])
    expect([0, 39, 40, 59, 60, 79, 80, 100].map(toSeverity)).toEqual([
      'LOW',
      'LOW',
      'MEDIUM',
      'MEDIUM',
      'HIGH',
      'HIGH',
      'CRITICAL',
      'CRITICAL',
    ])
  })
})

describe('shareOut', () => {
  it('splits whole points so that they add up, and gives nobody more than the proportion', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 0, max: 100 }),
        (parts, total) => {
          const shares = shareOut(parts, total)
          expect(shares.reduce((a, b) => a + b, 0)).toBe(total)
          const sum = parts.reduce((a, b) => a + b, 0)
          shares.forEach((share, index) => {
            expect(Math.abs(share - (parts[index]! * total) / sum)).toBeLessThan(1)
          })
        },
      ),
    )
  })
})
