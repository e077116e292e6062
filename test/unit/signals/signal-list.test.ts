// The catalog as a tenant sees it: complete, with the weights of its policy, and only documented
// fields.
import { describe, expect, test } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import {
  findCategoryPolicy,
  type Policy,
  policySchema,
  type Suppression,
  toPolicyHash,
} from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import { flags } from '#shared/core/signals/flags.ts'
import { isServerCategory, type SignalCategory } from '#shared/core/signals/signal-definition.ts'
import {
  type ListedSignal,
  signalListSchema,
  toSignalList,
} from '#shared/core/signals/signal-list.ts'
import { findSignal, fullCatalog } from '#shared/core/signals/signals.ts'

const nowMs = Date.UTC(2026, 5, 1)

function list(policy: Policy = defaultPolicy) {
  const policyHash = toPolicyHash(policy)
  return toSignalList({ policy, version: 3, policyHash }, nowMs)
}

function signalsOf(policy?: Policy): Map<string, ListedSignal> {
  const all = list(policy).categories.flatMap(({ signals }) => signals)
  const byPath = new Map(all.map((one) => [one.signal, one]))
  expect(byPath.size).toBe(all.length)
  return byPath
}

const catalogPaths = Object.entries(fullCatalog).flatMap(([category, signals]) =>
  Object.keys(signals).map((name) => `${category}.${name}`),
)

const suppression = (one: Partial<Suppression>): Suppression => ({
  signals: ['root.su_binary'],
  expiresAt: null,
  reason: 'a bad release',
  ...one,
})

const suppressing = (...suppressions: Suppression[]): Policy =>
  policySchema.parse({ ...defaultPolicy, suppressions })

describe('the flag of a signal that a tenant declared', () => {
  const tenants = catalogPaths.filter((path) => {
    const [category, name] = path.split('.') as [SignalCategory, string]
    return findSignal(category, name)!.flag === 'TENANT_SIGNAL'
  })

  test('is that of no signal that the service makes', () => {
    expect(
      tenants.filter((path) => isServerCategory(path.split('.')[0] as SignalCategory)),
    ).toEqual([])
  })

  test.each(Object.entries(presets))('is that of nothing that %s weighs', (_, preset) => {
    const listed = signalsOf(policySchema.parse(preset))
    expect(
      tenants.filter((path) => ![0, null].includes(listed.get(path)!.weight as never)),
    ).toEqual([])
  })
})

describe('the signal list', () => {
  test('has every signal of the catalog once, in order, unchanged', () => {
    expect([...signalsOf().keys()]).toEqual(catalogPaths)
    expect(catalogPaths.length).toBeGreaterThan(100)
    for (const [path, { signal, name, weight, suppressed, values, ...rest }] of signalsOf()) {
      const [category, known] = path.split('.') as [SignalCategory, string]
      expect({ signal, name }).toEqual({ signal: path, name: known })
      const { seen_by: seenBy, ...described } = rest
      expect(findSignal(category, known)).toMatchObject(described)
      expect(seenBy).toBe(isServerCategory(category) ? 'server' : 'client')
      expect(values).toEqual(findSignal(category, known)!.values ?? null)
      expect(flagCodes).toContain(rest.flag)
    }
  })

  test('has the signals that the policy declares after those of the catalog', () => {
    const ecosystem = structuredClone(defaultPolicy.categories.ecosystem)
    ecosystem.signals.my_sdk_flag = 25
    const declaring = policySchema.parse({
      ...defaultPolicy,
      categories: { ...defaultPolicy.categories, ecosystem },
      signals: { 'ecosystem.my_sdk_flag': { type: 'boolean', description: 'Ours.' } },
    })
    const listed = signalsOf(declaring)
    expect(listed.size).toBe(catalogPaths.length + 1)
    expect(signalListSchema.parse(list(declaring))).toEqual(list(declaring))
    expect(listed.get('ecosystem.my_sdk_flag')).toMatchObject({
      type: 'boolean',
      flag: 'TENANT_SIGNAL',
      description: 'Ours.',
      weight: 25,
      sources: [],
    })
  })

  test('names the policy and the cap of each category', () => {
    const { policy, categories, flags: listed } = list()
    expect(policy).toEqual({
      name: defaultPolicy.name,
      version: 3,
      policy_hash: toPolicyHash(defaultPolicy),
      thresholds: { review: 40, block: 75 },
    })
    expect(Object.keys(listed)).toEqual(Object.keys(flags))
    expect(listed.ROOTED).toBe('The Android device is rooted.')
    expect(categories.map((one) => one.category)).toEqual(Object.keys(fullCatalog))
    for (const { category, seen_by: seenBy, cap, soft, groups } of categories) {
      const of = findCategoryPolicy(defaultPolicy, category)
      expect({ cap, groups }).toEqual({ cap: of?.cap ?? 0, groups: of?.groups ?? [] })
      expect(seenBy).toBe(Object.hasOwn(defaultPolicy.categories, category) ? 'client' : 'server')
      expect(soft).toBe(defaultPolicy.softCategories.includes(category))
    }
  })

  test('matches its schema, which has no other field', () => {
    const policy = suppressing(suppression({ sdkVersions: ['4.2.*'], platforms: ['ios'] }))
    for (const one of [list(), list(policy)]) {
      expect(signalListSchema.strict().parse(one)).toEqual(one)
    }
  })

  test('gives each signal the weight that the policy gives it, in public spelling', () => {
    const root = {
      su_binary: 17,
      verified_boot_state: { values: { FAILED: 30, '(empty)': 1 }, unless: ['VERIFIED'] },
      rom_name: { values: { lineage: 3 } },
      test_keys: { whenFalse: 9 },
      dangerous_props: { atLeast: 2.5, weight: 8 },
      busybox_binary: 0,
    }
    const policy = policySchema.parse({
      ...defaultPolicy,
      categories: { ...defaultPolicy.categories, root: { cap: 33, signals: root } },
    })
    const signals = signalsOf(policy)
    const weightOf = (name: string) => signals.get(`root.${name}`)?.weight
    expect(weightOf('su_binary')).toBe(17)
    expect(weightOf('verified_boot_state')).toEqual(root.verified_boot_state)
    expect(weightOf('rom_name')).toEqual({ values: { lineage: 3 } })
    expect(weightOf('test_keys')).toEqual({ when_false: 9 })
    expect(weightOf('dangerous_props')).toEqual({ at_least: 2.5, weight: 8 })
    expect(weightOf('busybox_binary')).toBe(0)
    expect(weightOf('magisk_detected'), 'one that the policy does not name').toBe(0)
  })

  test('is the default policy’s, weight by weight', () => {
    for (const [path, { weight }] of signalsOf()) {
      const [category, name] = path.split('.') as [SignalCategory, string]
      const given = findCategoryPolicy(defaultPolicy, category)?.signals[name] ?? 0
      const spelled = JSON.stringify(given)
        .replace('"whenFalse"', '"when_false"')
        .replace('"atLeast"', '"at_least"')
      expect(JSON.parse(spelled), path).toEqual(weight)
    }
  })
})

describe('suppressions', () => {
  test('are on the signals they name, and on no other', () => {
    const signals = signalsOf(
      suppressing(
        suppression({
          signals: ['root.su_binary', 'debugger.frida_detected'],
          sdkVersions: ['4.2.0', '4.3.*'],
          platforms: ['android'],
          expiresAt: '2026-07-01T02:00:00+02:00',
          reason: 'SDK 4.2 sees su everywhere',
        }),
        suppression({ signals: ['network.*'], reason: 'an outage of the lookup' }),
        suppression({ signals: ['root.su_binary'] }),
      ),
    )
    const first = {
      sdk_versions: ['4.2.0', '4.3.*'],
      platforms: ['android'],
      expires_at: '2026-07-01T00:00:00.000Z',
      reason: 'SDK 4.2 sees su everywhere',
    }
    const forGood = { expires_at: null, reason: 'a bad release' }
    const outage = { expires_at: null, reason: 'an outage of the lookup' }
    for (const [path, { suppressed }] of signals) {
      if (path === 'root.su_binary') expect(suppressed).toEqual([first, forGood])
      else if (path === 'debugger.frida_detected') expect(suppressed).toEqual([first])
      else if (path.startsWith('network.')) expect(suppressed, path).toEqual([outage])
      else expect(suppressed, path).toEqual([])
    }
  })

  test('are absent from the instant at which they expire', () => {
    const suppressedAt = (expiresMs: number) => {
      const expiresAt = new Date(expiresMs).toISOString()
      return signalsOf(suppressing(suppression({ expiresAt }))).get('root.su_binary')?.suppressed
    }
    expect(suppressedAt(nowMs + 1)).toHaveLength(1)
    expect(suppressedAt(nowMs)).toEqual([])
    expect(suppressedAt(nowMs - 1)).toEqual([])
  })
})
