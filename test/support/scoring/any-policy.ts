/**
 * Random policies and random signals for properties of scoring: every kind of weight, groups,
 * floors, halving that confirms itself or is circular, and values that match.
 */
import fc from 'fast-check'
import { findCategoryPolicy, type Policy, type SignalWeight } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import type { ScoringContext } from '#shared/core/scoring/suppressions.ts'
import {
  categories,
  isServerCategory,
  type ServerSignals,
  type SignalCategory,
  type SignalDefinition,
  type Signals,
  serverCategories,
} from '#shared/core/signals/signal-definition.ts'
import { fullCatalog, signalCatalog } from '#shared/core/signals/signals.ts'
import { allSpellings, isKnownValue } from '#shared/core/signals/vocabulary.ts'

/** Every signal of the catalog. */
export const allSignals = categories.flatMap((category) =>
  Object.entries(signalCatalog[category] as Record<string, SignalDefinition>).map(
    ([name, definition]) => ({ category, name, path: `${category}.${name}`, ...definition }),
  ),
)

/** Every server signal of the catalog. */
export const allServerSignals = serverCategories.flatMap((category) =>
  Object.entries(fullCatalog[category]).map(([name, definition]) => ({
    category,
    name,
    path: `${category}.${name}`,
    ...definition,
  })),
)

/** The sender of events, unless a test changes it. */
export const context: ScoringContext = {
  sdkVersion: '4.2.0',
  platform: 'android',
  receivedAtMs: Date.UTC(2026, 2, 1),
}

/** Signals with the missing categories empty. */
export function signalsOf(partial: Partial<Signals> = {}): Signals {
  const empty = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }
  return { ...empty, ...partial }
}

/** A value of the signal's type, often one that counts, sometimes null. */
export function anyValue(category: SignalCategory, name: string): fc.Arbitrary<unknown> {
  const { type } = fullCatalog[category][name]!
  const weight = presetWeight(category, name)
  const known = typeof weight === 'object' && 'values' in weight ? Object.keys(weight.values) : []
  const spelled = allSpellings.filter((one) => isKnownValue(category, name, one))
  const text = fc.oneof(
    fc.constantFrom(...known, 'MEETS_DEVICE_INTEGRITY', 'OTHER'),
    fc.constantFrom(...spelled),
  )
  if (type === 'boolean') return fc.constantFrom<unknown>(true, true, false, null)
  if (type === 'number') return fc.oneof(fc.integer({ min: -1, max: 20 }), fc.constant(null))
  if (type === 'string') return fc.oneof(text, fc.constant(null))
  return fc.oneof(fc.array(text, { maxLength: 3 }), fc.constant(null))
}

const presetWeight = (category: SignalCategory, name: string): SignalWeight | undefined =>
  findCategoryPolicy(balancedPolicy, category)?.signals[name]

function anyCategory(category: SignalCategory): fc.Arbitrary<Record<string, unknown>> {
  const names = Object.keys(fullCatalog[category])
  const known = fc
    .constantFrom(...names)
    .chain((name) => fc.tuple(fc.constant(name), anyValue(category, name)))
  const unknown = fc.tuple(fc.constantFrom('new_signal', 'x.y', ''), fc.jsonValue())
  return fc
    .array(fc.oneof({ weight: 9, arbitrary: known }, { weight: 1, arbitrary: unknown }), {
      maxLength: 8,
    })
    .map((entries) => Object.fromEntries(entries))
}

/** Signals of the catalog with values of their type, including unknown ones and nulls. */
export const anySignals: fc.Arbitrary<Signals> = fc.record({
  root: anyCategory('root'),
  emulator: anyCategory('emulator'),
  debugger: anyCategory('debugger'),
  tamper: anyCategory('tamper'),
  ecosystem: anyCategory('ecosystem'),
  network: anyCategory('network'),
})

/** Server signals, often none; sometimes with a name that a later edge knows. */
export const anyServerSignals: fc.Arbitrary<ServerSignals> = fc.record(
  { attestation: anyCategory('attestation'), connection: anyCategory('connection') },
  { requiredKeys: [] },
)

const points = fc.integer({ min: 0, max: 100 })
const allPaths = [...allSignals, ...allServerSignals].map((signal) => signal.path)
const somePaths = fc.subarray(allPaths, { maxLength: 30 })

function anyWeight({
  type,
  path,
}: (typeof allSignals | typeof allServerSignals)[number]): fc.Arbitrary<SignalWeight> {
  if (type === 'number') {
    return fc.record({ atLeast: fc.integer({ min: 0, max: 10 }), weight: points })
  }
  if (type === 'boolean') {
    return path === 'tamper.app_attest_valid' ? points.map((whenFalse) => ({ whenFalse })) : points
  }
  const [category, name] = path.split('.') as [SignalCategory, string]
  return fc.constant(presetWeight(category, name) ?? 0)
}

function anyCategoryPolicy(category: SignalCategory) {
  const all: readonly (typeof allSignals | typeof allServerSignals)[number][] = isServerCategory(
    category,
  )
    ? allServerSignals
    : allSignals
  const own = all.filter((signal) => signal.category === category)
  const names = own.map((signal) => signal.name)
  return fc.record({
    cap: points,
    signals: fc.record(Object.fromEntries(own.map((one) => [one.name, anyWeight(one)]))),
    groups: fc.array(fc.record({ cap: points, signals: fc.subarray(names, { minLength: 2 }) }), {
      maxLength: 2,
    }),
  })
}

const pastSoftLimit = fc.constantFrom(true, undefined)

const anyFloor: fc.Arbitrary<Policy['floors'][number]> = fc.oneof(
  fc.record({ score: points, signals: somePaths, pastSoftLimit }),
  fc.record({
    score: points,
    signals: fc.subarray(['tamper.pi_device_verdict', 'attestation.pi_device']),
    values: fc.subarray(['MEETS_BASIC_INTEGRITY', 'MEETS_VIRTUAL_INTEGRITY', '(empty)'], {
      minLength: 1,
    }),
  }),
  fc.record({
    score: points,
    // Few events have more than two of a hundred signals.
    signals: fc.array(fc.constantFrom(...allPaths), {
      minLength: 1,
      maxLength: 2,
    }),
    need: fc.constantFrom<'any' | 'all'>('any', 'all', 'all'),
    pastSoftLimit,
  }),
)

/** Any policy that the schema accepts, sensible or not. */
export const anyPolicy: fc.Arbitrary<Policy> = fc
  .record({
    review: fc.integer({ min: 1, max: 60 }),
    above: fc.integer({ min: 0, max: 41 }),
    categories: fc.record({
      root: anyCategoryPolicy('root'),
      emulator: anyCategoryPolicy('emulator'),
      debugger: anyCategoryPolicy('debugger'),
      tamper: anyCategoryPolicy('tamper'),
      ecosystem: anyCategoryPolicy('ecosystem'),
      network: anyCategoryPolicy('network'),
    }),
    serverCategories: fc.option(
      fc.record(
        {
          attestation: anyCategoryPolicy('attestation'),
          connection: anyCategoryPolicy('connection'),
        },
        { requiredKeys: [] },
      ),
      { nil: undefined },
    ),
    halving: fc.array(
      fc.record({ category: fc.constantFrom(...categories), confirmedBy: somePaths }),
      { maxLength: 6 },
    ),
    strongEvidence: fc.constantFrom(null, { signals: 2 }),
    floors: fc.array(anyFloor, { maxLength: 3 }),
    softCategories: fc.subarray([...categories, ...serverCategories]),
  })
  .map(({ review, above, ...rest }) => ({
    ...balancedPolicy,
    ...rest,
    name: 'random',
    thresholds: { review, block: review + above },
  }))
