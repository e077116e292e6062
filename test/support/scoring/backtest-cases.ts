/**
 * Random policies and events to compare the two compilers of scoring: everything that a policy may
 * contain and that ingest accepts, with many unusual cases.
 */

import fc from 'fast-check'
import {
  type Policy,
  policySchema,
  type SignalWeight,
  type Suppression,
} from '#shared/core/policies/policy.ts'
import {
  type Category,
  categories,
  type ServerSignals,
  type SignalCategory,
  type SignalType,
  serverCategories,
} from '#shared/core/signals/signal-definition.ts'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import { parseTelemetry } from '#shared/core/telemetry/parse-telemetry.ts'
import { type EventFacts, makeBody } from '../telemetry/accepted-events.ts'
import { allServerSignals, allSignals, anyPolicy, anyValue } from './any-policy.ts'

/** Texts that policies use, and similar ones. */
const oddTexts = [
  'MEETS_DEVICE_INTEGRITY',
  'UNLICENSED',
  'LEVEL_4',
  '(empty)',
  '',
  'true',
  'NaN',
  "it's",
  'back\\slash',
  'naïve 😀',
  '["UNLICENSED"]',
  '2024-01-01',
  '{"a":1}',
  '\u0000',
  '--',
]
const text = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...oddTexts) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }) },
)
const numbers = [0, -0, 1, -1, 2, 5, 0.1, 1.5, 4.999999999999999, -1e300, 1.7e308, 5e-324]
const number = fc.oneof(
  fc.constantFrom(...numbers, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !isUnsafe(n)),
)

function isUnsafe(value: number): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value)
}

type AnySignal = (typeof allSignals | typeof allServerSignals)[number]

/** A value of a known signal: of its type, sometimes null. */
function knownValue({ category, name, type }: AnySignal): fc.Arbitrary<unknown> {
  if (type === 'boolean') return fc.constantFrom<unknown>(true, true, true, false, null)
  if (type === 'number') return fc.oneof(number, fc.constant(null))
  const usual = anyValue(category, name)
  if (type === 'string') return fc.oneof(usual, text)
  return fc.oneof(usual, fc.array(text, { maxLength: 4 }))
}

/** Signals that policies declare, by path, with a name in each form. */
const ownSignals = {
  'root.own_flag': 'boolean',
  'emulator.ownCount': 'number',
  'debugger.own_text': 'string',
  'tamper.own_list': 'strings',
  'ecosystem.own_flag': 'boolean',
  'network.Own2': 'strings',
} as const satisfies Record<string, SignalType>
const ownPaths = Object.keys(ownSignals) as (keyof typeof ownSignals)[]

const unknownName = fc.oneof(
  fc.constantFrom('new_signal', 'x.y', '', '.', 'a.', 'é😀', '`', "'", '\\', 'su_binary.', '1'),
  fc.constantFrom(...allSignals.map(({ name }) => `${name}.x`)),
  fc.string({ unit: 'binary', maxLength: 6 }),
)
/** Whole numbers that 64 bits do not hold, as JSON writes them. */
const beyond64Bits = fc.constantFrom(2 ** 64, -(2 ** 64), 3.6e20, -1.6e19)
const unknownValue = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  text,
  number,
  fc.boolean(),
  beyond64Bits,
  fc.array(beyond64Bits, { minLength: 1, maxLength: 2 }),
)

/** A value of a declared signal, often of its type. */
function ownValue(type: SignalType): fc.Arbitrary<unknown> {
  const fit = {
    boolean: fc.boolean(),
    number: fc.oneof(number, fc.constantFrom(2 ** 60, 1e30)),
    string: text,
    strings: fc.array(text, { maxLength: 3 }),
  }[type]
  return fc.oneof(
    { weight: 3, arbitrary: fit },
    { weight: 2, arbitrary: fc.oneof(unknownValue, fc.constant({}), fc.array(text)) },
  )
}

function categoryOf(category: Category): fc.Arbitrary<Record<string, unknown>> {
  const own = allSignals.filter((one) => one.category === category)
  const known = fc
    .constantFrom(...own)
    .chain((one) => knownValue(one).map((value) => [one.name, value] as const))
  const unknown = fc.tuple(unknownName, unknownValue)
  const declared = fc
    .constantFrom(...ownPaths.filter((path) => path.startsWith(`${category}.`)))
    .chain((path) => fc.tuple(fc.constant(path.split('.')[1]!), ownValue(ownSignals[path])))
  const entry = fc.oneof(
    { weight: 9, arbitrary: known },
    { weight: 1, arbitrary: unknown },
    { weight: 1, arbitrary: declared },
  )
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant({}) },
    {
      weight: 5,
      arbitrary: fc.array(entry, { maxLength: 6 }).map((all) => Object.fromEntries(all)),
    },
    {
      weight: 1,
      arbitrary: fc.array(entry, { maxLength: 40 }).map((all) => Object.fromEntries(all)),
    },
  )
}

/** What an edge observed; half of all events have the name of a signal that scores. */
const serverSignals: fc.Arbitrary<ServerSignals> = fc.record(
  Object.fromEntries(
    serverCategories.map((category) => {
      const own = allServerSignals.filter((one) => one.category === category)
      const known = fc
        .constantFrom(...own)
        .chain((one) => knownValue(one).map((value) => [one.name, value] as const))
      const later = fc.tuple(
        fc.constant('later_name'),
        fc.oneof(fc.boolean(), number, fc.constantFrom(...oddTexts), fc.constant(['x'])),
      )
      const entry = fc.oneof({ weight: 12, arbitrary: known }, { weight: 1, arbitrary: later })
      return [category, fc.array(entry, { maxLength: 6 }).map((all) => Object.fromEntries(all))]
    }),
  ),
  { requiredKeys: [] },
)

/** Members of `signals` outside the six categories: kept, and never scored. */
const beside = fc.oneof(
  { weight: 8, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.dictionary(fc.constantFrom(...allSignals.map(({ path }) => path)), unknownValue, {
      maxKeys: 3,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Record<string, unknown>>(
      { '': { root: { su_binary: true } } },
      { attestation: { rejected: true, pi_device: [], verified: true }, connection: { tor: true } },
      { server_signals: { attestation: { rejected: true } } },
      { 'root.': { custom_rom: true }, 'network.': true },
      { root_: {}, beyond: { root: { custom_rom: true } } },
    ),
  },
)

const signals = fc
  .tuple(fc.record(byCategory(categoryOf)), beside, fc.boolean())
  .map(([own, more, first]) => (first ? { ...more, ...own } : { ...own, ...more }))

function byCategory<Value>(make: (category: Category) => Value): Record<Category, Value> {
  return Object.fromEntries(categories.map((one) => [one, make(one)])) as Record<Category, Value>
}

const versions = ['4.2.0', '4.2.1', '4.20.0', '4.2.*', '4.2.', '', 'β.1', "4'\\2"]
const platforms = ['android', 'Android', 'iOS', 'ios', 'İOS', 'ΑΣ', 'K', '']
/** Around the ends of suppressions. */
const instantsMs = [-1, 0, 1].map((ms) => Date.UTC(2026, 2, 1, 9, 30) + ms)

/** Events that ingest accepts. */
export const anyEvent: fc.Arbitrary<EventFacts> = fc
  .record({
    signals,
    serverSignals: fc.option(serverSignals, { nil: undefined }),
    sdkVersion: fc.constantFrom(...versions),
    platform: fc.constantFrom(...platforms),
    receivedAtMs: fc.constantFrom(...instantsMs),
  })
  .map(({ signals, serverSignals, sdkVersion, platform, receivedAtMs }) => ({
    signals,
    ...(serverSignals === undefined ? {} : { serverSignals }),
    receivedAtMs,
    more: { sdk_meta: { sdk_version: sdkVersion, platform, batch_type: '' } },
  }))
  .filter((facts) => {
    const body = Buffer.from(makeBody(facts))
    return parseTelemetry(body, findTenant(body) ?? '').ok
  })

const points = fc.integer({ min: 0, max: 100 })

function weightOf({ type }: { type: SignalType }): fc.Arbitrary<SignalWeight> {
  if (type === 'boolean')
    return fc.oneof(
      points,
      points.map((whenFalse) => ({ whenFalse })),
    )
  if (type === 'number') return fc.record({ atLeast: number, weight: points })
  const values = fc.dictionary(text, points, { maxKeys: 6 })
  return fc.oneof(
    fc.record({ values }),
    fc.record({ values, unless: fc.array(text, { maxLength: 2 }) }),
  )
}

const allPaths = [...allSignals, ...allServerSignals].map(({ path }) => path)

const suppression: fc.Arbitrary<Suppression> = fc
  .record({
    signals: fc.array(
      fc.oneof(
        fc.constantFrom(...allPaths),
        fc.constantFrom(
          ...[...categories, ...serverCategories].map((one) => `${one}.*`),
          'root.unheard_of',
        ),
      ),
      { minLength: 1, maxLength: 12 },
    ),
    sdkVersions: fc.option(some(fc.constantFrom(...versions, '4.*').filter(Boolean)), {
      nil: undefined,
    }),
    platforms: fc.option(some(fc.constantFrom(...platforms, 'ANDROID', 'k').filter(Boolean)), {
      nil: undefined,
    }),
    expiresAt: fc.constantFrom(null, '2026-03-01T09:30:00Z', '2026-03-01T10:30:00.001+01:00'),
  })
  .map(({ signals, sdkVersions, platforms, expiresAt }) => ({
    signals,
    expiresAt,
    reason: 'random',
    ...(sdkVersions === undefined ? {} : { sdkVersions }),
    ...(platforms === undefined ? {} : { platforms }),
  }))

function some<Item>(item: fc.Arbitrary<Item>): fc.Arbitrary<Item[]> {
  return fc.array(item, { minLength: 1, maxLength: 3 })
}

/** Any weight for a part of the signals, in a form that need not match its type. */
const anyWeights = fc
  .array(
    fc
      .constantFrom<AnySignal[]>(...allSignals, ...allServerSignals)
      .chain((one) =>
        fc.tuple(fc.constant(one), weightOf(one), fc.nat(20), weightOf(allSignals[0]!)),
      ),
    { maxLength: 60 },
  )
  .map((all) => all.map(([one, fit, odd, other]) => ({ one, weight: odd === 0 ? other : fit })))

const declaredWeights = fc
  .uniqueArray(fc.constantFrom(...ownPaths), { maxLength: 4 })
  .chain((paths) =>
    fc.tuple(
      ...paths.map((path) =>
        weightOf({ type: ownSignals[path] }).map((weight) => ({ path, weight })),
      ),
    ),
  )

type OwnWeight = { path: keyof typeof ownSignals; weight: SignalWeight }

function toOwnWeights(category: Category, declared: readonly OwnWeight[]) {
  const own = declared.filter(({ path }) => path.startsWith(`${category}.`))
  return Object.fromEntries(own.map(({ path, weight }) => [path.split('.')[1]!, weight]))
}

const anyPath = fc.constantFrom(...allPaths, ...ownPaths)

/** Members that policies may leave out; an absent one is more usual than any other. */
const moreMembers = fc
  .record({
    declared: fc.oneof(fc.constant([]), declaredWeights),
    trustedInstallers: rarely(
      fc.record(
        { packages: some(fc.constantFrom(...oddTexts.filter(Boolean))), silences: some(anyPath) },
        { requiredKeys: ['packages'] },
      ),
    ),
    requiredSignals: rarely(
      fc.record({
        signals: some(fc.oneof(anyPath, fc.constantFrom(...categories.map((one) => `${one}.*`)))),
        weight: points,
      }),
    ),
  })
  .map(({ trustedInstallers, requiredSignals, declared }) => ({
    declared: declared as OwnWeight[],
    ...(trustedInstallers === undefined ? {} : { trustedInstallers }),
    ...(requiredSignals === undefined ? {} : { requiredSignals }),
  }))

function rarely<Item>(item: fc.Arbitrary<Item>): fc.Arbitrary<Item | undefined> {
  return fc.option(item, { nil: undefined, freq: 1 })
}

/** Any policy that the schema accepts, sensible or not, suppressions included. */
export const anyWholePolicy: fc.Arbitrary<Policy> = fc
  .record({
    policy: anyPolicy,
    weights: anyWeights,
    suppressions: fc.oneof(fc.constant([]), fc.array(suppression, { maxLength: 4 })),
    more: moreMembers,
    strong: fc.constantFrom(null, 2, 3, 5),
    // Most sums of full weights end at a cap, where no difference remains.
    divisor: fc.constantFrom(1, 3, 9, 27),
  })
  .map(({ policy, weights, suppressions, more, strong, divisor }) => {
    const { declared, ...members } = more
    const weightsOf = (category: SignalCategory) =>
      Object.fromEntries(
        weights
          .filter(({ one }) => one.category === category)
          .map(({ one, weight }) => [one.name, weight]),
      )
    const own = byCategory((category) => ({
      ...policy.categories[category],
      signals: {
        ...policy.categories[category].signals,
        ...toOwnWeights(category, declared),
        ...weightsOf(category),
      },
    }))
    const server = Object.fromEntries(
      serverCategories.flatMap((category) => {
        const some = policy.serverCategories?.[category]
        if (some === undefined) return []
        return [[category, { ...some, signals: { ...some.signals, ...weightsOf(category) } }]]
      }),
    )
    for (const { signals } of [...Object.values(own), ...Object.values(server)]) {
      for (const [name, weight] of Object.entries(signals)) signals[name] = lighten(weight, divisor)
    }
    const strongEvidence = strong === null ? null : { signals: strong }
    const types = declared.map(({ path }) => [path, { type: ownSignals[path] }])
    const signals = types.length === 0 ? {} : { signals: Object.fromEntries(types) }
    const all = { ...policy, ...members, ...signals }
    const parts = policy.serverCategories === undefined ? {} : { serverCategories: server }
    return policySchema.parse({ ...all, categories: own, ...parts, suppressions, strongEvidence })
  })

function lighten(weight: SignalWeight, divisor: number): SignalWeight {
  const lighter = (points: number) => Math.ceil(points / divisor)
  if (typeof weight === 'number') return lighter(weight)
  if ('whenFalse' in weight) return { whenFalse: lighter(weight.whenFalse) }
  if ('atLeast' in weight) return { ...weight, weight: lighter(weight.weight) }
  const values = Object.entries(weight.values).map(([value, points]) => [value, lighter(points)])
  return { ...weight, values: Object.fromEntries(values) }
}
