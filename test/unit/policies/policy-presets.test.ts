// The shipped policies: complete and valid, and what no set of signals may lead to. Their actions for
// real devices are in device-actions.test.ts.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import { checkPolicy } from '#shared/core/policies/policy-check.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { connectionSignals } from '#shared/core/signals/catalog/connection.ts'
import {
  type Category,
  categories,
  type SignalDefinition,
} from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import {
  anyServerSignals,
  anySignals,
  context,
  signalsOf,
} from '../../support/scoring/any-policy.ts'

const named = Object.entries(presets)

describe('every preset', () => {
  it.each(named)('%s is a document that an operator may set without changes', (name, preset) => {
    expect(preset.name).toBe(name)
    const stored = JSON.parse(JSON.stringify(preset)) as unknown
    expect(checkPolicy(stored)).toEqual({ ok: true, policy: preset })
    expect(toPolicyHash(policySchema.parse(stored))).toBe(toPolicyHash(preset))
  })

  it.each(named)('%s has a weight for every signal of the catalog', (_, preset) => {
    for (const category of categories) {
      expect(Object.keys(preset.categories[category].signals).sort()).toEqual(
        Object.keys(signalCatalog[category]).sort(),
      )
    }
  })

  it('differs from all others, and the default is balanced', () => {
    expect(new Set(named.map(([, preset]) => toPolicyHash(preset))).size).toBe(named.length)
    expect(defaultPolicy).toBe(balancedPolicy)
    expect(balancedPolicy.thresholds).toEqual({ review: 40, block: 75 })
  })
})

const lineage = {
  root: {
    bootloader_unlocked: true,
    verified_boot_state: 'UNVERIFIED',
    custom_rom: true,
    test_keys: true,
    dangerous_props: true,
    busybox_binary: true,
    oem_unlock_allowed: true,
  },
  tamper: { pi_device_verdict: ['MEETS_BASIC_INTEGRITY'] },
  ecosystem: { developer_mode: true, adb_enabled: true },
}

const everything = (category: Category): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(signalCatalog[category] as Record<string, SignalDefinition>)
      .filter(([, { type }]) => type === 'boolean')
      .map(([name]) => [name, true]),
  )

describe('network and ecosystem alone', () => {
  const genuine = { ...everything('network'), forged_request: false }
  const soft = signalsOf({ ecosystem: everything('ecosystem'), network: genuine })

  it.each(['permissive', 'balanced', 'strict', 'mobility'] as const)(
    'block under %s only by a forged request',
    (name) => {
      const score = compilePolicy(presets[name])
      expect(score(soft, context).action).not.toBe('BLOCK')
      const forged = signalsOf({ network: { forged_request: true } })
      expect(score(forged, context).action).toBe(name === 'permissive' ? 'REVIEW' : 'BLOCK')
      fc.assert(
        fc.property(anySignals, ({ ecosystem, network }) => {
          const signals = signalsOf({ ecosystem, network: { ...network, forged_request: false } })
          expect(score(signals, context).action).not.toBe('BLOCK')
        }),
        { numRuns: 300 },
      )
    },
  )

  it('block under regulated-banking also by interception and by a caller who steers', () => {
    const score = compilePolicy(presets['regulated-banking'])
    const ecosystem = { ...soft.ecosystem, active_call: false }
    const network = { ...soft.network, mitm_detected: false }
    expect(score({ ...soft, network }, context).action).toBe('BLOCK')
    expect(score({ ...soft, ecosystem }, context).action).toBe('BLOCK')
    expect(score({ ...soft, ecosystem, network }, context)).toMatchObject({
      score: 74,
      action: 'REVIEW',
    })
    fc.assert(
      fc.property(anySignals, (any) => {
        const signals = signalsOf({
          ecosystem: { ...any.ecosystem, active_call: false },
          network: { ...any.network, mitm_detected: false, forged_request: false },
        })
        expect(score(signals, context).action).not.toBe('BLOCK')
      }),
      { numRuns: 300 },
    )
  })

  it('stay one point below BLOCK under balanced, with any number of signals', () => {
    expect(compilePolicy(balancedPolicy)(soft, context).score).toBe(74)
  })
})

describe('the address of a client', () => {
  const kinds = ['tor', 'proxy', 'hosting', 'vpn', 'relay', 'country_mismatch'] as const
  const anyAddress: fc.Arbitrary<Record<string, unknown>> = fc.record(
    Object.fromEntries([
      ...kinds.map((name) => [name, fc.boolean()] as const),
      ['country', fc.constantFrom('DE', 'KP')],
      ['asn', fc.constantFrom('AS64500', 'AS1')],
    ]),
    { requiredKeys: [] },
  )
  const all = Object.fromEntries(kinds.map((name) => [name, true]))

  it.each(named)('leads to no review by itself under %s, but Tor to a bank', (name, policy) => {
    const score = compilePolicy(policy)
    fc.assert(
      fc.property(anyAddress, (connection) => {
        if (name === 'regulated-banking' && connection.tor === true) {
          expect(score(signalsOf({}), context, { connection }).action).toBe('REVIEW')
          return
        }
        const scored = score(signalsOf({}), context, { connection })
        expect(scored.score).toBeLessThan(policy.thresholds.review / 2)
        expect(scored.action).toBe('ALLOW')
      }),
    )
  })

  it.each(named)('is weighed under %s by each kind, each with its flag', (_, policy) => {
    const score = compilePolicy(policy)
    for (const kind of kinds) {
      const { reasons } = score(signalsOf({}), context, { connection: { [kind]: true } })
      expect(reasons.map(({ code }) => code)).toEqual([connectionSignals[kind].flag])
      expect(reasons[0]!.weight).toBeGreaterThan(0)
    }
    const many = score(signalsOf({}), context, { connection: { ...all, tor: false } })
    expect(many.score).toBe(12)
    expect(new Set(many.reasons.map(({ code }) => code))).toEqual(
      new Set(kinds.filter((kind) => kind !== 'tor').map((kind) => connectionSignals[kind].flag)),
    )
  })

  it('blocks under strict beside no signal of network and ecosystem', () => {
    const score = compilePolicy(presets.strict)
    const network = { ...everything('network'), forged_request: false }
    const soft = signalsOf({ ecosystem: everything('ecosystem'), network })
    expect(score(soft, context, { connection: all })).toMatchObject({
      score: presets.strict.thresholds.block - 1,
      action: 'REVIEW',
    })
  })
})

describe('the order of presets', () => {
  const rank = ['ALLOW', 'REVIEW', 'BLOCK']
  it.each([
    ['balanced', 'permissive'],
    ['strict', 'balanced'],
    ['regulated-banking', 'balanced'],
    ['mobility', 'balanced'],
  ] as const)('%s never answers any signals more mildly than %s', (strong, weak) => {
    const [high, low] = [compilePolicy(presets[strong]), compilePolicy(presets[weak])]
    fc.assert(
      fc.property(anySignals, anyServerSignals, (signals, server) => {
        const [ours, theirs] = [high(signals, context, server), low(signals, context, server)]
        expect(rank.indexOf(ours.action)).toBeGreaterThanOrEqual(rank.indexOf(theirs.action))
      }),
      { numRuns: 1000 },
    )
  })
})

describe('permissive', () => {
  it('scores as balanced does, reviews what balanced blocks, and blocks nothing', () => {
    const permissive = compilePolicy(presets.permissive)
    const balanced = compilePolicy(balancedPolicy)
    // Its soft limit is higher, like its threshold, so soft categories are left out here.
    const hard = anySignals.map((signals) => ({ ...signals, ecosystem: {}, network: {} }))
    fc.assert(
      fc.property(hard, (signals) => {
        const [ours, theirs] = [permissive(signals, context), balanced(signals, context)]
        expect(ours.score).toBe(theirs.score)
        expect(ours.action).toBe(theirs.action === 'BLOCK' ? 'REVIEW' : 'ALLOW')
      }),
      { numRuns: 300 },
    )
  })
})

describe('balanced', () => {
  it('blocks no set of custom ROM signals, not even with a basic verdict and adb', () => {
    const [group] = balancedPolicy.categories.root.groups!
    const all = Object.fromEntries(group!.signals.map((name) => [name, true]))
    const root = {
      ...all,
      verified_boot_state: 'UNVERIFIED',
      system_integrity: 'POSSIBLY_COMPROMISED',
    }
    const { score, action } = compilePolicy(balancedPolicy)(
      signalsOf({ ...lineage, root }),
      context,
    )
    expect({ score, action }).toEqual({ score: 30 + 12 + 15 + 8, action: 'REVIEW' })
  })
})
