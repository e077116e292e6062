// The shipped policies: complete and valid, and their actions for the same devices.
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
  type Signals,
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

type Row = [device: string, signals: Partial<Signals>, actions: string]

/** Actions under permissive, balanced, strict and regulated-banking: A, R or B. */
const table: Row[] = [
  ['a stock phone', { root: { su_binary: false } }, 'AAAA'],
  ['a rooted phone', { root: { su_binary: true } }, 'ARRB'],
  ['a rooted phone, twice sure', { root: { su_binary: true, magisk_detected: true } }, 'ARBB'],
  ['a jailbroken phone', { root: { jailbroken: true } }, 'ARRB'],
  ['root by a general verdict', { root: { rooted: true } }, 'ARRB'],
  ['hidden root', { root: { root_hiding: true } }, 'ARBB'],
  ['an unlocked bootloader', { root: { bootloader_unlocked: true } }, 'AAAB'],
  ['an unverified boot', { root: { verified_boot_state: 'UNVERIFIED' } }, 'AARB'],
  ['a self-signed boot', { root: { verified_boot_state: 'SELF_SIGNED' } }, 'AAAA'],
  ['a LineageOS phone', lineage, 'ARBB'],
  ['an emulator', { emulator: { is_emulator: true } }, 'ARBB'],
  ['an iOS simulator', { emulator: { is_simulator: true } }, 'ARBB'],
  ['a cloud phone', { emulator: { cloud_phone: true } }, 'ARBB'],
  ['a cloud phone farm', { emulator: { cloud_phone: true, device_farm_suspected: true } }, 'RBBB'],
  ['adb on', { ecosystem: { adb_enabled: true } }, 'AAAB'],
  ['wireless adb on', { ecosystem: { wireless_adb: true } }, 'AAAB'],
  ['adb and developer mode on', { ecosystem: { adb_enabled: true, developer_mode: true } }, 'AARB'],
  ['a debugger', { debugger: { debugger_attached: true } }, 'ARBB'],
  ['a debuggable app', { debugger: { app_debuggable: true } }, 'AAAB'],
  ['Frida', { debugger: { frida_detected: true } }, 'RBBB'],
  ['Frida, by its maps', { debugger: { frida_maps: true } }, 'RBBB'],
  ['hooks by a general verdict', { debugger: { hooking_detected: true } }, 'ARBB'],
  ['Frida, perhaps', { debugger: { frida_threads: true } }, 'AARA'],
  ['native hooks', { debugger: { native_hooks: true } }, 'RBBB'],
  ['Xposed', { debugger: { xposed_detected: true } }, 'ARBB'],
  ['an injected library', { tamper: { library_injected: true } }, 'ARBB'],
  ['another signature', { tamper: { signature_mismatch: true } }, 'RBBB'],
  ['another package name', { tamper: { package_name_mismatch: true } }, 'RBBB'],
  ['changed code', { tamper: { code_integrity_failed: true } }, 'ARBB'],
  ['an app from elsewhere', { tamper: { untrusted_install_source: true } }, 'AARA'],
  ['a VPN', { network: { vpn_active: true, timezone_mismatch: true } }, 'AAAA'],
  ['a forged request', { network: { forged_request: true } }, 'ARRR'],
  ['malware', { ecosystem: { malware_detected: true } }, 'AARA'],
  ['an accessibility service', { debugger: { accessibility_abuse: true } }, 'AAAA'],
  ['a changed device binding', { tamper: { device_binding_changed: true } }, 'AAAA'],
]

describe('the actions of permissive, balanced, strict and regulated-banking for', () => {
  it.each(table)('%s', (_, signals, expected) => {
    const initials = named.map(
      ([, preset]) => compilePolicy(preset)(signalsOf(signals), context).action[0],
    )
    expect(initials.join('')).toBe(expected)
  })
})

const everything = (category: Category): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(signalCatalog[category] as Record<string, SignalDefinition>)
      .filter(([, { type }]) => type === 'boolean')
      .map(([name]) => [name, true]),
  )

describe('network and ecosystem alone', () => {
  const soft = signalsOf({ ecosystem: everything('ecosystem'), network: everything('network') })

  it.each(['permissive', 'balanced', 'strict'] as const)('never block under %s', (name) => {
    const score = compilePolicy(presets[name])
    expect(score(soft, context).action).not.toBe('BLOCK')
    fc.assert(
      fc.property(anySignals, ({ ecosystem, network }) => {
        expect(score(signalsOf({ ecosystem, network }), context).action).not.toBe('BLOCK')
      }),
      { numRuns: 1_000 },
    )
  })

  it('block under regulated-banking only by adb', () => {
    const score = compilePolicy(presets['regulated-banking'])
    const withoutAdb = { ...soft.ecosystem, adb_enabled: false, wireless_adb: false }
    expect(score(soft, context).action).toBe('BLOCK')
    expect(score({ ...soft, ecosystem: withoutAdb }, context)).toMatchObject({
      score: 74,
      action: 'REVIEW',
    })
  })

  it('stay one point below BLOCK under balanced, with any number of signals', () => {
    expect(compilePolicy(balancedPolicy)(soft, context).score).toBe(74)
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
      { numRuns: 1_000 },
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
