// Validation of an operator's policy: all faults at once, each with its path.
import { describe, expect, it, test } from 'vitest'
import { z } from 'zod'
import { policySchema } from '#shared/core/policies/policy.ts'
import { checkPolicy, toPolicyJsonSchema } from '#shared/core/policies/policy-check.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'

/** A document for changes. */
type Draft = {
  [key: string]: unknown
  thresholds: Record<string, unknown>
  categories: Record<string, { signals: Record<string, unknown>; groups?: unknown }>
  floors: { score: number; signals: string[] }[]
  velocity: Record<string, unknown>[]
}

function draft(change: (draft: Draft) => void): unknown {
  const document = structuredClone(balancedPolicy) as unknown as Draft
  change(document)
  return document
}

function faultsOf(change: (draft: Draft) => void): string[] {
  const checked = checkPolicy(draft(change))
  return checked.ok ? [] : checked.errors.map((error) => error.path)
}

const root = (document: Draft) => document.categories.root!.signals
const suppression = { signals: ['root.su_binary'], expiresAt: null, reason: 'test' }

describe('a policy document', () => {
  it('is returned with its defaults, as it is stored', () => {
    const checked = checkPolicy(
      draft((document) => {
        delete document.suppressions
        delete document.scoreMismatch
      }),
    )
    expect(checked).toMatchObject({ ok: true, policy: { suppressions: [], scoreMismatch: null } })
  })

  const faults: [string, string, (document: Draft) => void][] = [
    ['$.weights', 'an unknown key', (one) => Object.assign(one, { weights: {} })],
    [
      '$.categories.wifi',
      'an unknown category',
      (one) => Object.assign(one.categories, { wifi: {} }),
    ],
    [
      '$.categories.root.signals.foo',
      'an unknown signal',
      (one) => Object.assign(root(one), { foo: 1 }),
    ],
    [
      '$.categories.root.signals.frida_maps',
      'one of another category',
      (one) => Object.assign(root(one), { frida_maps: 1 }),
    ],
    [
      '$.categories.root.signals.su_binary',
      'a weight above 100',
      (one) => Object.assign(root(one), { su_binary: 101 }),
    ],
    [
      '$.categories.root.signals.su_binary',
      'half a point',
      (one) => Object.assign(root(one), { su_binary: 0.5 }),
    ],
    [
      '$.categories.root.signals.su_binary',
      'a weight that is none',
      (one) => Object.assign(root(one), { su_binary: 'heavy' }),
    ],
    [
      '$.categories.root.signals.su_binary',
      'values for a boolean',
      (one) => Object.assign(root(one), { su_binary: { values: { true: 1 } } }),
    ],
    [
      '$.categories.root.signals.su_binary',
      'a threshold for a boolean',
      (one) => Object.assign(root(one), { su_binary: { atLeast: 1, weight: 1 } }),
    ],
    [
      '$.categories.root.signals.verified_boot_state',
      'a number for a text',
      (one) => Object.assign(root(one), { verified_boot_state: 30 }),
    ],
    [
      '$.categories.root.signals.verified_boot_state.values.FAILED',
      'a value above 100',
      (one) => Object.assign(root(one), { verified_boot_state: { values: { FAILED: 300 } } }),
    ],
    [
      '$.categories.root.signals.verified_boot_state.other',
      'an unknown key of a weight',
      (one) => Object.assign(root(one), { verified_boot_state: { values: {}, other: 1 } }),
    ],
    [
      '$.categories.debugger.signals.tracer_pid',
      'a number for a number',
      (one) => Object.assign(one.categories.debugger!.signals, { tracer_pid: 45 }),
    ],
    [
      '$.categories.debugger.signals.tracer_pid.weight',
      'a threshold without a weight',
      (one) => Object.assign(one.categories.debugger!.signals, { tracer_pid: { atLeast: 1 } }),
    ],
    [
      '$.categories.debugger.signals.tracer_pid.atLeast',
      'a threshold without end',
      (one) =>
        Object.assign(one.categories.debugger!.signals, {
          tracer_pid: { atLeast: Number.POSITIVE_INFINITY, weight: 1 },
        }),
    ],
    [
      '$.categories.tamper.signals.pi_device_verdict',
      'a threshold for a list',
      (one) =>
        Object.assign(one.categories.tamper!.signals, {
          pi_device_verdict: { atLeast: 1, weight: 1 },
        }),
    ],
    [
      '$.categories.root.groups[0].signals[1]',
      'an unknown signal in a group',
      (one) =>
        Object.assign(one.categories.root!, {
          groups: [{ cap: 1, signals: ['su_binary', 'foo'] }],
        }),
    ],
    [
      '$.categories.root.groups[1].signals[0]',
      'a signal in two groups',
      (one) =>
        Object.assign(one.categories.root!, {
          groups: [
            { cap: 1, signals: ['su_binary', 'test_keys'] },
            { cap: 1, signals: ['test_keys', 'eng_build'] },
          ],
        }),
    ],
    [
      '$.thresholds',
      'thresholds that are equal',
      (one) => Object.assign(one.thresholds, { review: 75 }),
    ],
    [
      '$.thresholds',
      'thresholds in the wrong order',
      (one) => Object.assign(one.thresholds, { review: 80 }),
    ],
    [
      '$.thresholds.block',
      'a threshold beyond never',
      (one) => Object.assign(one.thresholds, { block: 102 }),
    ],
    [
      '$.floors[0].signals[0]',
      'an unknown signal of a floor',
      (one) => Object.assign(one.floors[0]!, { signals: ['root.foo'] }),
    ],
    [
      '$.floors[0].signals[0]',
      'a floor for a category',
      (one) => Object.assign(one.floors[0]!, { signals: ['root.*'] }),
    ],
    [
      '$.halving[0].confirmedBy[0]',
      'an unknown confirmation',
      (one) =>
        Object.assign(one, { halving: [{ category: 'root', confirmedBy: ['emulator.foo'] }] }),
    ],
    [
      '$.halving[1]',
      'a second halving of one category',
      (one) =>
        Object.assign(one, {
          halving: [
            { category: 'root', confirmedBy: [] },
            { category: 'root', confirmedBy: [] },
          ],
        }),
    ],
    [
      '$.halving[0].category',
      'halving of nothing',
      (one) => Object.assign(one, { halving: [{ category: 'wifi', confirmedBy: [] }] }),
    ],
    [
      '$.suppressions[0].signals[0]',
      'an unknown suppressed signal',
      (one) => Object.assign(one, { suppressions: [{ ...suppression, signals: ['root.foo'] }] }),
    ],
    [
      '$.suppressions[0].signals[1]',
      'an unknown suppressed category',
      (one) =>
        Object.assign(one, { suppressions: [{ ...suppression, signals: ['root.*', 'wifi.*'] }] }),
    ],
    [
      '$.suppressions[0].signals',
      'a suppression of nothing',
      (one) => Object.assign(one, { suppressions: [{ ...suppression, signals: [] }] }),
    ],
    [
      '$.suppressions[0].sdkVersions[0]',
      'a star in the middle',
      (one) => Object.assign(one, { suppressions: [{ ...suppression, sdkVersions: ['4.*.1'] }] }),
    ],
    [
      '$.suppressions[0].sdkVersions[1]',
      'a star alone',
      (one) =>
        Object.assign(one, { suppressions: [{ ...suppression, sdkVersions: ['4.*', '*'] }] }),
    ],
    [
      '$.suppressions[0].expiresAt',
      'a day that is none',
      (one) =>
        Object.assign(one, {
          suppressions: [{ ...suppression, expiresAt: '2026-02-30T00:00:00Z' }],
        }),
    ],
    [
      '$.suppressions[0].reason',
      'a suppression without a reason',
      (one) => Object.assign(one, { suppressions: [{ ...suppression, reason: '' }] }),
    ],
    [
      '$.velocity[0].metric',
      'an unknown metric',
      (one) => Object.assign(one.velocity[0]!, { metric: 'logins' }),
    ],
    [
      '$.velocity[1]',
      'a metric and window given twice',
      (one) => Object.assign(one.velocity[1]!, { ...one.velocity[0], weight: 1 }),
    ],
    ['$.name', 'no name', (one) => delete one.name],
    ['$.schema', 'another format', (one) => Object.assign(one, { schema: 2 })],
  ]

  it.each(faults)('is rejected at %s: %s', (path, _, change) => {
    expect(faultsOf(change)).toEqual([path])
  })

  it('lists every fault at once, and each unknown key separately', () => {
    const found = faultsOf((document) => {
      Object.assign(document, { one: 1, two: 2 })
      Object.assign(root(document), { su_binary: -1 })
    })
    expect(found.sort()).toEqual(['$.categories.root.signals.su_binary', '$.one', '$.two'])
  })

  it.each([null, [], 'text', 7, undefined])('is not %j', (document) => {
    const checked = checkPolicy(document)
    expect(checked).toMatchObject({ ok: false, errors: [{ path: '$' }] })
  })

  it('may give any signal no weight, and may omit signals', () => {
    const found = faultsOf((document) => {
      for (const name of Object.keys(root(document))) root(document)[name] = 0
      document.categories.network!.signals = {}
    })
    expect(found).toEqual([])
  })

  it('describes the form of a weight', () => {
    const checked = checkPolicy(
      draft((document) => Object.assign(root(document), { verified_boot_state: 30 })),
    )
    expect(checked).toMatchObject({
      errors: [{ message: 'weighs a text: must be {"values"} or 0' }],
    })
  })
})

describe('the JSON Schema of policies', () => {
  test('accepts every preset and rejects what the service rejects', () => {
    const schema = z.fromJSONSchema(toPolicyJsonSchema() as Parameters<typeof z.fromJSONSchema>[0])
    for (const preset of Object.values(presets)) {
      expect(schema.safeParse(preset).error).toBeUndefined()
    }
    const refused = [
      draft((document) => Object.assign(document, { weights: {} })),
      draft((document) => Object.assign(root(document), { foo: 'much' })),
      draft((document) => Object.assign(root(document), { verified_boot_state: 30 })),
      draft((document) => Object.assign(root(document), { su_binary: { values: {} } })),
      draft((document) => Object.assign(document, { halving: null })),
    ]
    for (const document of refused) expect(schema.safeParse(document).success).toBe(false)
    // A schema cannot know which signals the same document declares, so it takes any name.
    const unknown = draft((document) => Object.assign(root(document), { foo: 1 }))
    expect(schema.safeParse(unknown).success).toBe(true)
    expect(checkPolicy(unknown).ok).toBe(false)
    // Policies that were stored under older rules are still read.
    expect(policySchema.safeParse(refused.at(-1)).success).toBe(true)
  })
})
