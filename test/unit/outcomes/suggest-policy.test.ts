import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { atAlerts, countAlerts } from '#shared/core/outcomes/score-distribution.ts'
import { scorePeriods } from '#shared/core/outcomes/suggest/compare-policies.ts'
import type { Feature } from '#shared/core/outcomes/suggest/features.ts'
import type { OutcomeRow, OutcomeTable } from '#shared/core/outcomes/suggest/outcome-table.ts'
import { findSimpleRules } from '#shared/core/outcomes/suggest/simple-rules.ts'
import {
  onlyWeights,
  type Suggestion,
  suggestPolicy,
} from '#shared/core/outcomes/suggest/suggest-policy.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { checkPolicy } from '#shared/core/policies/policy-check.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { noServerSignals, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import {
  companionSignals,
  makePlantedFleet,
  toOracleRecall,
  toTrueTable,
  uselessSignals,
} from '../../support/outcomes/planted-fleet.ts'

const everything = { caps: true, floors: true }

function suggest(table: OutcomeTable, active: Policy = balancedPolicy, freed = onlyWeights) {
  const result = suggestPolicy(active, table, { freed, seed: 11 })
  if ('refused' in result) throw new Error(JSON.stringify(result.refused))
  return result.suggestion
}

const pointsOf = (suggestion: Suggestion, feature: string) =>
  suggestion.weights.find((one) => one.feature === feature)!.after

const fleet = makePlantedFleet({ seed: 5, sessions: 2_500_000, labels: 50_000, draws: 5_000 })
const suggestion = suggest(fleet.table)
const freedSuggestion = suggest(fleet.table, balancedPolicy, everything)

describe('a fleet with planted weights', () => {
  const truth = toTrueTable(fleet)
  const active = scorePeriods(balancedPolicy, truth)
  const alerts = countAlerts(active.newer, balancedPolicy.thresholds.review)
  const recallOf = (policy: Policy) => atAlerts(scorePeriods(policy, truth).newer, alerts).recall

  test.each([
    ['only weights', suggestion],
    ['caps and floors too', freedSuggestion],
  ])('recall at the alerts of balanced is within 2 points of the oracle: %s', (_, { policy }) => {
    const oracle = toOracleRecall(fleet, { alerts, period: 'newer' })
    expect(recallOf(policy)).toBeGreaterThan(oracle - 0.02)
    expect(recallOf(policy)).toBeGreaterThan(Math.max(...Object.values(presets).map(recallOf)))
  })

  test('useless signals get 0 points, and those that only go with another one', () => {
    const signals = [...Object.keys(uselessSignals), ...companionSignals]
    const weighed = signals.filter((path) => !path.includes(':') && pointsOf(suggestion, path) > 0)
    expect(weighed).toEqual([])
    expect(pointsOf(suggestion, 'PLATFORM_CHANGED from 15')).toBe(0)
    expect(pointsOf(suggestion, 'MANY_USERS_PER_DEVICE from 20')).toBeGreaterThan(0)
  })

  test('what too few sessions have keeps its points', () => {
    const unseen = suggestion.weights.filter(({ support: { fraud, legitimate } }) => {
      return fraud + legitimate === 0
    })
    expect(unseen.length).toBeGreaterThan(50)
    for (const { before, after, why } of unseen) expect([after, why]).toEqual([before, 'too_few'])
  })

  test('it asks and blocks no more sessions, and blocks no more honest ones', () => {
    const older = fleet.table.rows.filter(({ period }) => period === 'older')
    const table = { ...fleet.table, rows: older }
    const before = scorePeriods(balancedPolicy, table).older
    for (const { policy } of [suggestion, freedSuggestion]) {
      const after = scorePeriods(policy, table).older
      const { review, block } = policy.thresholds
      const was = balancedPolicy.thresholds
      expect(countAlerts(after, review)).toBeLessThanOrEqual(countAlerts(before, was.review))
      expect(countAlerts(after, block)).toBeLessThanOrEqual(countAlerts(before, was.block))
      const honest = (counts: number[], from: number) =>
        counts.slice(from).reduce((sum, count) => sum + count, 0)
      expect(honest(after.legitimate, block)).toBeLessThanOrEqual(
        honest(before.legitimate, was.block),
      )
    }
  })

  test('the document passes the check; nothing but weights and BLOCK changes unasked', () => {
    const { policy } = suggestion
    for (const one of [policy, freedSuggestion.policy]) expect(checkPolicy(one).ok).toBe(true)
    for (const [name, own] of Object.entries(policy.categories)) {
      const was = balancedPolicy.categories[name as keyof Policy['categories']]
      expect([own.cap, own.groups]).toEqual([was.cap, was.groups])
    }
    const { categories, serverCategories, velocity, name, thresholds, ...rest } = policy
    expect(rest).toEqual(
      Object.fromEntries(
        Object.keys(rest).map((key) => [key, balancedPolicy[key as keyof typeof rest]]),
      ),
    )
    expect(name).toBe('balanced, from outcomes')
    expect(thresholds.review).toBe(balancedPolicy.thresholds.review)
  })

  test('the same seed suggests the same', () => {
    expect(suggest(fleet.table)).toEqual(suggestion)
  })
})

const booleans = Object.entries(signalCatalog).flatMap(([category, signals]) =>
  Object.entries(signals).flatMap(([name, { type }]) =>
    type === 'boolean' ? [`${category}.${name}`] : [],
  ),
)

const toSignals = (paths: readonly string[]): Signals => {
  const signals = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }
  for (const path of paths) {
    const [category, name] = path.split('.') as [keyof Signals, string]
    Object.assign(signals[category], { [name]: path !== 'tamper.app_attest_valid' })
  }
  return signals
}

describe('one more detected signal', () => {
  test.each([
    ['only weights', suggestion],
    ['caps and floors too', freedSuggestion],
  ])('never lowers a score: %s', (_, { policy }) => {
    const score = compilePolicy(policy)
    const context = { sdkVersion: '', platform: '', receivedAtMs: 0 }
    const scoreOf = (paths: string[]) => score(toSignals(paths), context, noServerSignals).score
    const some = fc.uniqueArray(fc.constantFrom(...booleans), { maxLength: 8 })
    fc.assert(
      fc.property(some, fc.constantFrom(...booleans), (paths, more) => {
        expect(scoreOf([...paths, more])).toBeGreaterThanOrEqual(scoreOf(paths))
      }),
      { numRuns: 500 },
    )
  })
})

const eventOf = (paths: readonly string[]) => {
  const context = { sdkVersion: '', platform: '', receivedAtMs: 0 }
  return { signals: toSignals(paths), server: {}, context, counts: new Map(), others: [] }
}

const noStakes = { losses: {}, honestUsers: [] }

/** Sessions without a signal, then with the first and the second of two. */
function toTable(rows: (Partial<OutcomeRow> & { paths: string[] })[]): OutcomeTable {
  const none = {
    period: 'older' as const,
    fraud: 0,
    legitimate: 0,
    unlabelled: 0,
    judged: 0,
    ...noStakes,
  }
  return {
    events: rows.map(({ paths }) => eventOf(paths)),
    rows: rows.map(({ paths: _, ...row }, at) => ({ ...none, ...row, events: [at] })),
    days: { older: 21, newer: 9 },
  }
}

describe('a refusal', () => {
  test.each([
    [99, 500, [{ what: 'fraud sessions', have: 99, need: 100 }]],
    [500, 99, [{ what: 'legitimate sessions', have: 99, need: 100 }]],
    [500, 0, [{ what: 'legitimate sessions', have: 0, need: 100 }]],
    [
      0,
      0,
      [
        { what: 'fraud sessions', have: 0, need: 100 },
        { what: 'legitimate sessions', have: 0, need: 100 },
      ],
    ],
  ])(
    'of %i fraud and %i legitimate sessions says what is missing',
    (fraud, legitimate, missing) => {
      const older = { fraud: fraud - Math.min(20, fraud), legitimate: legitimate >> 1 }
      const newer = { fraud: Math.min(20, fraud), legitimate: legitimate - (legitimate >> 1) }
      const table = toTable([
        { paths: [], ...older },
        { paths: [], period: 'newer', ...newer },
      ])
      const result = suggestPolicy(balancedPolicy, table, { freed: onlyWeights, seed: 1 })
      expect(result).toEqual({ refused: { missing } })
    },
  )

  test('a period without one of both is missing it', () => {
    const table = toTable([
      { paths: [], fraud: 200, legitimate: 400 },
      { paths: [], period: 'newer', fraud: 9, legitimate: 100 },
    ])
    const result = suggestPolicy(balancedPolicy, table, { freed: onlyWeights, seed: 1 })
    const missing = [{ what: 'newer fraud sessions', have: 9, need: 10 }]
    expect(result).toEqual({ refused: { missing } })
  })
})

describe('a warning', () => {
  const clean = { paths: [], legitimate: 4_000, fraud: 60, unlabelled: 200_000 }
  const tampered = ['tamper.library_injected']
  const kindsOf = (table: OutcomeTable, feature: string | null) =>
    suggest(table).warnings.flatMap((one) => (one.feature === feature ? one.kind : []))
  const withRows = (...rows: (Partial<OutcomeRow> & { paths: string[] })[]) =>
    toTable([clean, { ...clean, period: 'newer', judged: 0 }, ...rows])

  test('names a signal whose alerts were judged and whose fraud is known by that', () => {
    const row = { paths: tampered, fraud: 120, legitimate: 80, unlabelled: 9_000 }
    const newer = { ...row, period: 'newer' as const }
    expect(kindsOf(withRows({ ...row, judged: 118 }, newer), tampered[0]!)).toEqual(['leak'])
    expect(kindsOf(withRows({ ...row, judged: 60 }, newer), tampered[0]!)).toEqual([])
  })

  test('names a signal that decides what gets a label', () => {
    const row = { paths: tampered, fraud: 120, legitimate: 80, unlabelled: 20 }
    const newer = { ...row, period: 'newer' as const }
    expect(kindsOf(withRows(row, newer), tampered[0]!)).toEqual(['leak'])
  })

  test('names one that seems harmless by the same choice and loses its points', () => {
    // Whoever has it is asked, and of other sessions those that complain.
    const row = { paths: ['root.rooted'], fraud: 2, legitimate: 300, unlabelled: 10 }
    const table = withRows(row, { ...row, period: 'newer' })
    expect(pointsOf(suggest(table), 'root.rooted')).toBeLessThan(
      Number(balancedPolicy.categories.root.signals.rooted),
    )
    expect(kindsOf(table, 'root.rooted')).toEqual(['leak'])
    const some = withRows({ ...row, unlabelled: 9_000 }, { ...row, period: 'newer' })
    expect(kindsOf(some, 'root.rooted')).not.toContain('leak')
  })

  test('names a signal that only fraud has', () => {
    const row = { paths: tampered, fraud: 120, legitimate: 0, unlabelled: 9_000 }
    const newer = { ...row, period: 'newer' as const }
    expect(kindsOf(withRows(row, newer), tampered[0]!)).toEqual(['separation'])
    expect(pointsOf(suggest(withRows(row, newer)), tampered[0]!)).toBeGreaterThan(0)
  })

  test('names a signal that became more or less frequent', () => {
    const row = { paths: tampered, fraud: 120, legitimate: 80, unlabelled: 2_000 }
    const newer = { ...row, period: 'newer' as const, unlabelled: 6_000 }
    expect(kindsOf(withRows(row, newer), tampered[0]!)).toEqual(['drift'])
  })

  test('says when the suggestion may be no better', () => {
    const row = { paths: tampered, fraud: 120, legitimate: 80, unlabelled: 9_000 }
    const newer = { ...row, period: 'newer' as const }
    expect(kindsOf(withRows(row, newer), null)).toEqual(['no_better'])
    expect(suggestion.warnings.filter(({ kind }) => kind === 'no_better')).toEqual([])
  })
})

describe('the threshold of BLOCK', () => {
  test('rises where the suggestion would block sessions that only had a review', () => {
    const rows = [
      { paths: [], fraud: 60, legitimate: 4_000, unlabelled: 200_000 },
      { paths: ['root.magisk_detected'], fraud: 5, legitimate: 300, unlabelled: 20_000 },
      { paths: ['emulator.app_cloned'], fraud: 300, legitimate: 100, unlabelled: 15_000 },
    ]
    const newer = rows.map((row) => ({ ...row, period: 'newer' as const }))
    const table = toTable([...rows, ...newer])
    const { policy, thresholds } = suggest(table)
    const { older } = scorePeriods(policy, table)
    expect(countAlerts(older, policy.thresholds.review)).toBe(15_400)
    expect(countAlerts(older, balancedPolicy.thresholds.block)).toBe(15_400)
    expect(countAlerts(older, policy.thresholds.block)).toBe(0)
    expect(thresholds.after.block).toBeGreaterThan(thresholds.before.block)
  })
})

describe('simple rules', () => {
  test('are found in the older and counted in the newer sessions', () => {
    const both = ['ecosystem.screen_mirrored', 'ecosystem.active_call']
    const row = { paths: both, fraud: 41, legitimate: 2, unlabelled: 5 }
    const single = { fraud: 15, legitimate: 400, unlabelled: 50_000 }
    const plain = { paths: [], fraud: 60, legitimate: 2_000, unlabelled: 100_000 }
    const rows = [row, plain, ...both.map((path) => ({ ...single, paths: [path] }))]
    const table = toTable([
      ...rows,
      ...rows.map((one) => ({ ...one, period: 'newer' as const, fraud: one.fraud - 5 })),
    ])
    const [rule] = suggest(table).rules
    expect(rule!.features.sort()).toEqual(both.sort())
    expect(rule!.found).toMatchObject({ fraud: 41, labelled: 43 })
    expect(rule!.tested).toMatchObject({ fraud: 36, labelled: 38 })
    expect(rule!.tested.alerts_a_week).toBeCloseTo((7 * 43) / 9)
    expect(rule!.tested.precision.low).toBeGreaterThan(0.8)
    const least = Object.fromEntries(both.map((path) => [path, 1]))
    expect(rule!.floor).toEqual({ signals: both.sort(), need: 'all', least })
    const names = both.map((path) => path.split('.')[1])
    expect(rule!.group).toEqual({ category: 'ecosystem', signals: names })
  })

  test('become a floor or a group only where one says the same', () => {
    const signal = (path: string, points: number): Feature => {
      return { name: `${path} ${points}`, today: points, of: { kind: 'signal', path, points } }
    }
    const features: Feature[] = [
      signal('root.verified_boot_state', 12),
      signal('root.verified_boot_state', 30),
      signal('tamper.app_attest_valid', 30),
      {
        name: 'HIGH_VELOCITY',
        today: 20,
        of: { kind: 'velocity', flag: 'HIGH_VELOCITY', points: 20 },
      },
    ]
    const table = toTable([
      ...features.map(() => ({ paths: [], fraud: 30, legitimate: 1 })),
      { paths: [], fraud: 10, legitimate: 900 },
    ])
    const columns = [...features.map((_, at) => [at]), []]
    const rules = findSimpleRules(table.rows, columns, { features, days: table.days })
    const parts = rules.map(({ features: [name], floor, group }) => [name, floor, group])
    const least = { 'tamper.app_attest_valid': { whenFalse: 1 } }
    const floor = { signals: ['tamper.app_attest_valid'], need: 'any', least }
    expect(Object.fromEntries(parts.map(([name, ...rest]) => [name, rest]))).toEqual({
      'root.verified_boot_state 12': [null, null],
      'root.verified_boot_state 30': [null, null],
      'tamper.app_attest_valid 30': [floor, null],
      HIGH_VELOCITY: [null, null],
    })
  })

  test('are floors that the check of policies takes', () => {
    const { policy, rules } = suggestion
    const floors = rules.flatMap(({ floor }) => {
      return floor === null ? [] : [{ score: 75, signals: floor.signals, need: floor.need }]
    })
    expect(floors.length).toBeGreaterThan(2)
    expect(checkPolicy({ ...policy, floors: [...policy.floors, ...floors] })).toMatchObject({
      ok: true,
    })
  })
})
