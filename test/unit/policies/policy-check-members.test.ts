// What the check of a policy says about the members that older documents lack.
import { describe, expect, it } from 'vitest'
import { checkPolicy } from '#shared/core/policies/policy-check.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'

type Draft = Record<string, unknown>

const rule = { metric: 'sessions_per_device', windowSeconds: 300, threshold: 20, weight: 30 }
const newDevice = {
  metric: 'new_device_of_user',
  windowSeconds: 2_592_000,
  threshold: 0,
  weight: 10,
}
const travel = { metric: 'impossible_travel', windowSeconds: 86_400, threshold: 0, weight: 10 }
const many = Object.fromEntries(
  Array.from({ length: 65 }, (_, n) => [`root.own_${n}`, { type: 'boolean' }]),
)
const weighing = (signals: Draft, weight: unknown): Draft => {
  const { root } = balancedPolicy.categories
  const own = { ...root, signals: { ...root.signals, own_flag: weight } }
  return { signals, categories: { ...balancedPolicy.categories, root: own } }
}

const accepted: [string, Draft][] = [
  ['a declared boolean', weighing({ 'root.own_flag': { type: 'boolean' } }, { whenFalse: 9 })],
  ['a declared text', weighing({ 'root.own_flag': { type: 'string' } }, { values: { a: 9 } })],
  [
    'a floor of a declared signal',
    {
      ...weighing({ 'root.own_flag': { type: 'boolean' } }, 5),
      floors: [{ score: 60, signals: ['root.own_flag', 'root.su_binary'], need: 'all' }],
    },
  ],
  [
    'a suppressed declared signal',
    {
      ...weighing({ 'root.own_flag': { type: 'boolean' } }, 5),
      suppressions: [{ signals: ['root.own_flag'], expiresAt: null, reason: 'x' }],
    },
  ],
  ['required signals', { requiredSignals: { signals: ['root.*', 'root.rooted'], weight: 45 } }],
  ['a trusted installer', { trustedInstallers: { packages: ['com.acme'] } }],
  ['steps', { velocity: [{ ...rule, steps: [{ above: 29, weight: 45 }] }] }],
  ['a rule on new devices', { velocity: [newDevice] }],
  ['a rule on impossible travel', { velocity: [travel] }],
]

const refused: [path: string, what: string, change: Draft][] = [
  [
    '$.signals.root.own flag',
    'a name with a space',
    { signals: { 'root.own flag': { type: 'boolean' } } },
  ],
  [
    '$.signals.boot.own_flag',
    'an unknown category',
    { signals: { 'boot.own_flag': { type: 'boolean' } } },
  ],
  [
    '$.signals.root.su_binary',
    'a signal of the catalog',
    { signals: { 'root.su_binary': { type: 'boolean' } } },
  ],
  [
    '$.signals.root.own_flag.type',
    'an unknown type',
    { signals: { 'root.own_flag': { type: 'date' } } },
  ],
  ['$.signals', 'more than 64 signals', { signals: many }],
  ['$.categories.root.signals.own_flag', 'a weight without a declaration', weighing({}, 5)],
  [
    '$.categories.root.signals.own_flag',
    'a weight of another form',
    weighing({ 'root.own_flag': { type: 'number' } }, 5),
  ],
  [
    '$.floors[0].signals',
    'a floor that needs all of one',
    { floors: [{ score: 60, signals: ['root.rooted'], need: 'all' }] },
  ],
  [
    '$.floors[0].need',
    'another need',
    { floors: [{ score: 60, signals: ['root.rooted'], need: 'most' }] },
  ],
  ['$.trustedInstallers.packages', 'no package', { trustedInstallers: { packages: [] } }],
  [
    '$.trustedInstallers.silences[0]',
    'an unknown silenced signal',
    { trustedInstallers: { packages: ['a'], silences: ['tamper.other'] } },
  ],
  [
    '$.requiredSignals.signals[0]',
    'an unknown required signal',
    { requiredSignals: { signals: ['tamper.other'], weight: 5 } },
  ],
  ['$.requiredSignals.weight', 'no weight', { requiredSignals: { signals: ['tamper.*'] } }],
  [
    '$.velocity[0].steps[0].above',
    'a step below the threshold',
    { velocity: [{ ...rule, steps: [{ above: 20, weight: 45 }] }] },
  ],
  [
    '$.velocity[0].steps[0].weight',
    'a step that weighs no more',
    { velocity: [{ ...rule, steps: [{ above: 30, weight: 30 }] }] },
  ],
  [
    '$.velocity[0].steps[1].above',
    'a step below another',
    {
      velocity: [
        {
          ...rule,
          steps: [
            { above: 30, weight: 40 },
            { above: 25, weight: 50 },
          ],
        },
      ],
    },
  ],
  [
    '$.velocity[0].threshold',
    'a threshold for new devices',
    { velocity: [{ ...newDevice, threshold: 1 }] },
  ],
  [
    '$.velocity[0].windowSeconds',
    'a day for new devices',
    { velocity: [{ ...newDevice, windowSeconds: 86_400 }] },
  ],
  [
    '$.velocity[0].threshold',
    'a threshold for impossible travel',
    { velocity: [{ ...travel, threshold: 1 }] },
  ],
  [
    '$.velocity[0].windowSeconds',
    'more than a day for impossible travel',
    { velocity: [{ ...travel, windowSeconds: 86_401 }] },
  ],
]

const check = (change: Draft) => checkPolicy({ ...structuredClone(balancedPolicy), ...change })

describe('a policy document', () => {
  it.each(accepted)('may have %s', (_, change) => {
    expect(check(change)).toMatchObject({ ok: true })
  })

  it.each(refused)('is rejected at %s: %s', (path, _, change) => {
    const checked = check(change)
    expect(checked.ok).toBe(false)
    expect(checked.ok ? [] : checked.errors.map((one) => one.path)).toEqual([path])
  })
})
