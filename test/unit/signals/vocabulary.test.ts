/** Spellings of values: each scores as the value it means, in both compilers of a policy. */
import { describe, expect, it } from 'vitest'
import { policySchema } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { compileToSql } from '#shared/core/scoring/sql/scoring-sql.ts'
import { type Category, categories } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import {
  allSpellings,
  isKnownValue,
  listValues,
  withSpellings,
} from '#shared/core/signals/vocabulary.ts'
import { allSignals, context, signalsOf } from '../../support/scoring/any-policy.ts'

const enumerated = allSignals.filter(({ values }) => values !== undefined)
const boot = (value: string) => signalsOf({ root: { verified_boot_state: value } })

describe('a vocabulary', () => {
  it('is of texts only, and gives each spelling one meaning', () => {
    expect(enumerated.length).toBeGreaterThanOrEqual(10)
    for (const { type, values, path } of enumerated) {
      expect(['string', 'strings'], path).toContain(type)
      const words = Object.entries(values!).flat(2)
      const plain = words.map((word) => word.toLowerCase().replaceAll('_', ''))
      expect(new Set(plain).size, path).toBe(plain.length)
    }
  })

  it('has every value that a policy of the product weighs', () => {
    for (const policy of Object.values(presets)) {
      for (const category of categories) {
        for (const [name, weight] of Object.entries(policy.categories[category].signals)) {
          if (typeof weight !== 'object' || !('values' in weight)) continue
          if (listValues(category, name) === null) continue
          const named = [...Object.keys(weight.values), ...(weight.unless ?? [])]
          for (const value of named.filter((one) => one !== '(empty)')) {
            expect(listValues(category, name), `${category}.${name}`).toContain(value)
          }
        }
      }
    }
  })

  it('knows every text of a signal that can have any', () => {
    expect(isKnownValue('root', 'rom_name', 'LineageOS')).toBe(true)
    expect(listValues('root', 'rom_name')).toBeNull()
    expect(isKnownValue('root', 'verified_boot_state', 'purple')).toBe(false)
  })
})

describe('a spelling', () => {
  it.each([
    ['orange', 'UNVERIFIED'],
    ['ORANGE', 'UNVERIFIED'],
    ['Orange', 'UNVERIFIED'],
    ['red', 'FAILED'],
    ['YELLOW', 'SELF_SIGNED'],
    ['selfSigned', 'SELF_SIGNED'],
    ['SelfSigned', 'SELF_SIGNED'],
    ['green', 'VERIFIED'],
    ['unverified', 'UNVERIFIED'],
  ])('%s scores as %s under every preset', (spelling, value) => {
    for (const policy of Object.values(presets)) {
      const score = compilePolicy(policy)
      expect(score(boot(spelling), context)).toEqual(score(boot(value), context))
    }
  })

  it('of any signal scores as its value, alone and in a list', () => {
    const score = compilePolicy(presets.strict)
    for (const { category, name, type, values } of enumerated) {
      for (const [value, aliases] of Object.entries(values!)) {
        const scoreOf = (text: string) => {
          const sent = type === 'strings' ? [text] : text
          return score(signalsOf({ [category]: { [name]: sent } }), context)
        }
        for (const word of [value, ...aliases]) {
          expect(scoreOf(word.toLowerCase()), word).toEqual(scoreOf(value))
        }
      }
    }
  })

  it('excuses a list as its value does', () => {
    const score = compilePolicy(presets.balanced)
    const of = (...verdicts: string[]) =>
      score(signalsOf({ tamper: { pi_device_verdict: verdicts } }), context).score
    expect(of('meets_basic_integrity')).toBeGreaterThan(0)
    expect(of('meets_basic_integrity', 'meets_device_integrity')).toBe(0)
  })

  it('that a policy weighs itself keeps its own points', () => {
    const { root } = presets.balanced.categories
    const values = { UNVERIFIED: 30, orange: 55 }
    const signals = { ...root.signals, verified_boot_state: { values } }
    const own = { ...presets.balanced.categories, root: { cap: 70, signals } }
    const score = compilePolicy(policySchema.parse({ ...presets.balanced, categories: own }))
    expect(score(boot('orange'), context).score).toBe(55)
    expect(score(boot('ORANGE'), context).score).toBe(30)
  })

  it('is named by the SQL of a policy with the points of its value', () => {
    const { points } = compileToSql(presets.balanced, {
      prefix: '',
      source: 'columns',
      withFlags: false,
    })
    const sql = points.find((one) => one.sql.includes('verified_boot_state'))!.sql
    for (const spelling of ['orange', 'ORANGE', 'Orange', 'red', 'yellow']) {
      expect(sql).toContain(`'${spelling}'`)
    }
    expect(allSpellings).toContain('orange')
  })

  it('changes no weight of another form or signal', () => {
    expect(withSpellings('root', 'su_binary', 40)).toBe(40)
    const free = { values: { 'com.evil': 10 } }
    expect(withSpellings('tamper', 'installer_package', free)).toBe(free)
    for (const category of Object.keys(signalCatalog) as Category[]) {
      expect(withSpellings(category, 'unheard', { values: { orange: 1 } })).toEqual({
        values: { orange: 1 },
      })
    }
  })
})
