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
import {
  type Category,
  categories,
  type SignalDefinition,
} from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { anySignals, context, signalsOf } from '../../support/scoring/any-policy.ts'

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
  const soft = signalsOf({ ecosystem: everything('ecosystem'), network: everything('network') })

  it.each(['permissive', 'balanced', 'strict', 'mobility'] as const)(
    'never block under %s',
    (name) => {
      const score = compilePolicy(presets[name])
      expect(score(soft, context).action).not.toBe('BLOCK')
      fc.assert(
        fc.property(anySignals, ({ ecosystem, network }) => {
          expect(score(signalsOf({ ecosystem, network }), context).action).not.toBe('BLOCK')
        }),
        { numRuns: 300 },
      )
    },
  )

  it('block under regulated-banking only by adb and by interception', () => {
    const score = compilePolicy(presets['regulated-banking'])
    const ecosystem = { ...soft.ecosystem, adb_enabled: false, wireless_adb: false }
    const network = { ...soft.network, mitm_detected: false }
    const forged = { ...network, forged_request: false }
    expect(score({ ...soft, network }, context).action).toBe('BLOCK')
    expect(score({ ...soft, ecosystem }, context).action).toBe('BLOCK')
    expect(score({ ...soft, ecosystem, network: forged }, context)).toMatchObject({
      score: 74,
      action: 'REVIEW',
    })
    fc.assert(
      fc.property(anySignals, (any) => {
        const signals = signalsOf({
          ecosystem: { ...any.ecosystem, adb_enabled: false, wireless_adb: false },
          network: { ...any.network, mitm_detected: false },
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
  const anyAddress = fc.record(
    Object.fromEntries([
      ...kinds.map((name) => [name, fc.boolean()] as const),
      ['country', fc.constantFrom('DE', 'KP')],
      ['asn', fc.constantFrom('AS64500', 'AS1')],
    ]),
    { requiredKeys: [] },
  )
  const all = Object.fromEntries(kinds.map((name) => [name, true]))

  it.each(named)('leads to no review by itself under %s', (_, policy) => {
    const score = compilePolicy(policy)
    fc.assert(
      fc.property(anyAddress, (connection) => {
        const scored = score(signalsOf({}), context, { connection })
        expect(scored.score).toBeLessThan(policy.thresholds.review / 2)
        expect(scored.action).toBe('ALLOW')
      }),
    )
  })

  it('weighs where new signals are trusted, and nothing elsewhere', () => {
    const points = named.map(([name, policy]) => {
      const { score } = compilePolicy(policy)(signalsOf({}), context, { connection: all })
      return [name, score]
    })
    expect(Object.fromEntries(points)).toEqual({
      permissive: 0,
      balanced: 0,
      strict: 12,
      'regulated-banking': 12,
      mobility: 0,
    })
  })

  it('blocks under strict beside no signal of network and ecosystem', () => {
    const score = compilePolicy(presets.strict)
    const soft = signalsOf({ ecosystem: everything('ecosystem'), network: everything('network') })
    expect(score(soft, context, { connection: all })).toMatchObject({
      score: presets.strict.thresholds.block - 1,
      action: 'REVIEW',
    })
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
