// Validation of an operator's policy: all faults at once, each with its path.
import { describe, expect, it, test } from 'vitest'
import { z } from 'zod'
import { policySchema } from '#shared/core/policies/policy.ts'
import { checkPolicy, toPolicyJsonSchema } from '#shared/core/policies/policy-check.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { readRows } from '../../support/process/text-tables.ts'

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

type Members = Record<string, unknown>

/** Changes a member, as in `thresholds.block = 102`; without a value it goes. */
function change(document: object, text: string): void {
  const [path = '', json = ''] = text.split(/ = ?/)
  const names = path.split('.')
  const parent = names
    .slice(0, -1)
    .reduce((value, name) => value[name] as Members, document as Members)
  if (json === '') delete parent[names.at(-1)!]
  else parent[names.at(-1)!] = JSON.parse(json)
}

const changedBy = (changes: readonly string[]) => (document: Draft) => {
  for (const text of changes) change(document, text)
}

/** The path of the fault, what is wrong, and what differs from the balanced policy. */
const refusedRows = readRows(`
$.weights | an unknown key | weights = {}
$.categories.wifi | an unknown category | categories.wifi = {}
$.categories.root.signals.foo | an unknown signal | categories.root.signals.foo = 1
$.categories.root.signals.frida_maps | one of another category
  | categories.root.signals.frida_maps = 1
$.categories.root.signals.su_binary | a weight above 100 | categories.root.signals.su_binary = 101
$.categories.root.signals.su_binary | half a point | categories.root.signals.su_binary = 0.5
$.categories.root.signals.su_binary | a weight that is none
  | categories.root.signals.su_binary = "heavy"
$.categories.root.signals.su_binary | values for a boolean
  | categories.root.signals.su_binary = {"values":{"true":1}}
$.categories.root.signals.su_binary | a threshold for a boolean
  | categories.root.signals.su_binary = {"atLeast":1,"weight":1}
$.categories.root.signals.verified_boot_state | a number for a text
  | categories.root.signals.verified_boot_state = 30
$.categories.root.signals.verified_boot_state.values.FAILED | a value above 100
  | categories.root.signals.verified_boot_state.values = {"FAILED":300}
$.categories.root.signals.verified_boot_state.other | an unknown key of a weight
  | categories.root.signals.verified_boot_state = {"values":{},"other":1}
$.categories.debugger.signals.tracer_pid | a number for a number
  | categories.debugger.signals.tracer_pid = 45
$.categories.debugger.signals.tracer_pid.weight | a threshold without a weight
  | categories.debugger.signals.tracer_pid.weight =
$.categories.debugger.signals.tracer_pid.atLeast | a threshold without end
  | categories.debugger.signals.tracer_pid = {"atLeast":1e999,"weight":1}
$.categories.tamper.signals.pi_device_verdict | a threshold for a list
  | categories.tamper.signals.pi_device_verdict = {"atLeast":1,"weight":1}
$.categories.root.groups[0].signals[1] | an unknown signal in a group
  | categories.root.groups.0 = {"cap":1,"signals":["su_binary","foo"]}
$.categories.root.groups[1].signals[0] | a signal in two groups
  | categories.root.groups = [{"cap":1,"signals":["su_binary","test_keys"]},{"cap":1,
  "signals":["test_keys","eng_build"]}]
$.thresholds | thresholds that are equal | thresholds.review = 75
$.thresholds | thresholds in the wrong order | thresholds.review = 80
$.thresholds.block | a threshold beyond never | thresholds.block = 102
$.floors[0].signals[0] | an unknown signal of a floor | floors.0.signals = ["root.foo"]
$.floors[0].signals[0] | a floor for a category | floors.0.signals = ["root.*"]
$.halving[0].confirmedBy[0] | an unknown confirmation | halving.0.confirmedBy = ["emulator.foo"]
$.halving[1] | a second halving of one category
  | halving = [{"category":"root","confirmedBy":[]},{"category":"root","confirmedBy":[]}]
$.halving[0].category | halving of nothing | halving.0 = {"category":"wifi","confirmedBy":[]}
$.suppressions[0].signals[0] | an unknown suppressed signal
  | suppressions = [{"signals":["root.foo"],"expiresAt":null,"reason":"test"}]
$.suppressions[0].signals[1] | an unknown suppressed category
  | suppressions = [{"signals":["root.*","wifi.*"],"expiresAt":null,"reason":"test"}]
$.suppressions[0].signals | a suppression of nothing
  | suppressions = [{"signals":[],"expiresAt":null,"reason":"test"}]
$.suppressions[0].sdkVersions[0] | a star in the middle
  | suppressions = [{"signals":["root.su_binary"],"expiresAt":null,"reason":"test",
  "sdkVersions":["4.*.1"]}]
$.suppressions[0].sdkVersions[1] | a star alone
  | suppressions = [{"signals":["root.su_binary"],"expiresAt":null,"reason":"test",
  "sdkVersions":["4.*","*"]}]
$.suppressions[0].expiresAt | a day that is none
  | suppressions = [{"signals":["root.su_binary"],"expiresAt":"2026-02-30T00:00:00Z",
  "reason":"test"}]
$.suppressions[0].reason | a suppression without a reason
  | suppressions = [{"signals":["root.su_binary"],"expiresAt":null,"reason":""}]
$.velocity[0].metric | an unknown metric | velocity.0.metric = "logins"
$.velocity[1] | a metric and window given twice
  | velocity.1 = {"metric":"sessions_per_device","windowSeconds":300,"threshold":20,"weight":1,
  "steps":[{"above":29,"weight":45}]}
$.name | no name | name =
$.schema | another format | schema = 2
$.signals.root.own flag | a name with a space | signals = {"root.own flag":{"type":"boolean"}}
$.signals.boot.own_flag | an unknown category | signals = {"boot.own_flag":{"type":"boolean"}}
$.signals.root.su_binary | a signal of the catalog
  | signals = {"root.su_binary":{"type":"boolean"}}
$.signals.root.own_flag.type | an unknown type | signals = {"root.own_flag":{"type":"date"}}
$.floors[0].signals | a floor that needs all of one
  | floors = [{"score":60,"signals":["root.rooted"],"need":"all"}]
$.floors[0].need | another need | floors = [{"score":60,"signals":["root.rooted"],"need":"most"}]
$.trustedInstallers.packages | no package | trustedInstallers = {"packages":[]}
$.trustedInstallers.silences[0] | an unknown silenced signal
  | trustedInstallers = {"packages":["a"],"silences":["tamper.other"]}
$.requiredSignals.signals[0] | an unknown required signal
  | requiredSignals = {"signals":["tamper.other"],"weight":5}
$.requiredSignals.weight | no weight | requiredSignals = {"signals":["tamper.*"]}
$.velocity[0].steps[0].above | a step below the threshold
  | velocity = [{"metric":"sessions_per_device","windowSeconds":300,"threshold":20,"weight":30,
  "steps":[{"above":20,"weight":45}]}]
$.velocity[0].steps[0].weight | a step that weighs no more
  | velocity = [{"metric":"sessions_per_device","windowSeconds":300,"threshold":20,"weight":30,
  "steps":[{"above":30,"weight":30}]}]
$.velocity[0].steps[1].above | a step below another
  | velocity = [{"metric":"sessions_per_device","windowSeconds":300,"threshold":20,"weight":30,
  "steps":[{"above":30,"weight":40},{"above":25,"weight":50}]}]
$.velocity[0].threshold | a threshold for new devices
  | velocity = [{"metric":"new_device_of_user","windowSeconds":2592000,"threshold":1,"weight":10}]
$.velocity[0].windowSeconds | a day for new devices
  | velocity = [{"metric":"new_device_of_user","windowSeconds":86400,"threshold":0,"weight":10}]
$.velocity[0].threshold | a threshold for impossible travel
  | velocity = [{"metric":"impossible_travel","windowSeconds":86400,"threshold":1,"weight":10}]
$.velocity[0].windowSeconds | more than a day for impossible travel
  | velocity = [{"metric":"impossible_travel","windowSeconds":86401,"threshold":0,"weight":10}]
$.categories.root.signals.own_flag | a weight without a declaration
  | categories.root.signals.own_flag = 5
$.categories.root.signals.own_flag | a weight of another form
  | signals = {"root.own_flag":{"type":"number"}} | categories.root.signals.own_flag = 5
`)

const acceptedRows = readRows(`
a declared boolean
  | signals = {"root.own_flag":{"type":"boolean"}}
  | categories.root.signals.own_flag = {"whenFalse":9}
a declared text
  | signals = {"root.own_flag":{"type":"string"}}
  | categories.root.signals.own_flag = {"values":{"a":9}}
a floor of a declared signal
  | signals = {"root.own_flag":{"type":"boolean"}} | categories.root.signals.own_flag = 5
  | floors = [{"score":60,"signals":["root.own_flag","root.su_binary"],"need":"all"}]
a suppressed declared signal
  | signals = {"root.own_flag":{"type":"boolean"}} | categories.root.signals.own_flag = 5
  | suppressions = [{"signals":["root.own_flag"],"expiresAt":null,"reason":"x"}]
required signals | requiredSignals = {"signals":["root.*","root.rooted"],"weight":45}
a trusted installer | trustedInstallers = {"packages":["com.acme"]}
a step | velocity.0.steps = [{"above":29,"weight":45}]
a rule on new devices
  | velocity = [{"metric":"new_device_of_user","windowSeconds":2592000,"threshold":0,"weight":10}]
a rule on impossible travel
  | velocity = [{"metric":"impossible_travel","windowSeconds":86400,"threshold":0,"weight":10}]
`)

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

  it.each(refusedRows)('is rejected at %s: %s', (path, _, ...changes) => {
    expect(faultsOf(changedBy(changes))).toEqual([path])
  })

  it.each(acceptedRows)('may have %s', (_, ...changes) => {
    expect(faultsOf(changedBy(changes))).toEqual([])
  })

  it('is rejected with more than 64 signals of its own', () => {
    const names = Array.from({ length: 65 }, (_, n) => [`root.own_${n}`, { type: 'boolean' }])
    const signals = Object.fromEntries(names)
    expect(faultsOf((document) => Object.assign(document, { signals }))).toEqual(['$.signals'])
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
