// The pattern of an event scores exactly as the event for every policy that it supports, and
// contains nothing personal.
import { hash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { policySchema } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { toPatternKey } from '#shared/core/scoring/sql/signal-pattern-key.ts'
import {
  findPatternLimits,
  isPatternEnough,
  listWeighed,
  patternBounds,
  patternTexts,
  patternVersion,
  textsByVersion,
  toPatternId,
  toSignalPattern,
} from '#shared/core/scoring/sql/signal-patterns.ts'
import type { ServerSignals, Signals } from '#shared/core/signals/signal-definition.ts'
import { findUnknownSignals } from '#shared/core/telemetry/unknown-signals.ts'
import { seed } from '../../support/process/seed.ts'
import { anyEvent, anyWholePolicy } from '../../support/scoring/backtest-cases.ts'
import { makeBody } from '../../support/telemetry/accepted-events.ts'

const signalsOf = (signals: Record<string, unknown>): Signals =>
  (JSON.parse(makeBody({ signals })) as { signals: Signals }).signals

describe('a pattern', () => {
  it('scores as its event does under every policy that it supports', () => {
    process.stdout.write(`patterns seed ${seed}\n`)
    const context = { sdkVersion: '4.2.1', platform: 'ios', receivedAtMs: Date.UTC(2026, 2, 1) }
    const events = fc.sample(anyEvent, { seed, numRuns: 300 }).map(({ signals, serverSignals }) => {
      const all = signalsOf(signals!)
      return { all, server: serverSignals, pattern: toSignalPattern(all, serverSignals) }
    })
    const policies = [
      ...Object.values(presets),
      ...fc.sample(anyWholePolicy, { seed, numRuns: 15 }),
    ]
    let enough = 0
    for (const policy of policies) {
      const limits = findPatternLimits([policy])
      const score = compilePolicy(policy)
      const verdictOf = (signals: Signals, server: ServerSignals | undefined) => {
        const { score: points, action, reasons } = score(signals, context, server)
        return JSON.stringify([points, action, reasons.map(({ code, weight }) => [code, weight])])
      }
      const weighed = listWeighed([policy])
      for (const { all, server, pattern } of events) {
        if (!isPatternEnough(pattern, limits)) continue
        // A backtest scores an event with a weighed signal that the catalog does not have by itself.
        if (findUnknownSignals(all).some((path) => weighed.includes(path))) continue
        enough++
        expect(verdictOf(pattern.signals, pattern.server)).toBe(verdictOf(all, server))
      }
    }
    expect(enough).toBeGreaterThan((events.length * policies.length) / 8)
  }, 30_000)

  it('supports every preset, for any event', () => {
    const limits = findPatternLimits(Object.values(presets))
    // Only what a later edge might send in another form is not supported.
    const hidden = limits.hidden.filter((path) => !path.startsWith('?'))
    const none = { hidden: [], ranges: [], requirements: [], silenced: [] }
    expect({ ...limits, hidden }).toEqual(none)
  })

  it('names the stores that presets trust, and no other', () => {
    const patternOf = (installer: string) =>
      toSignalPattern(
        signalsOf({ tamper: { installer_package: installer, untrusted_install_source: true } }),
      )
    const [store] = presets.balanced.trustedInstallers!.packages
    const [known, unknown] = [patternOf(store!), patternOf('com.any')]
    expect(known.signals.tamper.installer_package).toBe(store)
    expect(unknown.hidden).toEqual(['tamper.installer_package'])
    // What a policy says of another store depends on the name that is left out.
    const other = { ...presets.balanced, trustedInstallers: { packages: ['com.any'] } }
    const limits = [presets.balanced, other].map((policy) => findPatternLimits([policy]))
    const enough = limits.map((one) => [known, unknown].map((two) => isPatternEnough(two, one)))
    expect(enough).toEqual([
      [true, true],
      [true, false],
    ])
  })

  it('keeps only known texts, numbers and names', () => {
    const kept = new Set<unknown>(['?', -1, true, false, ...patternTexts, ...patternBounds])
    for (const { signals, serverSignals } of fc.sample(anyEvent, { seed, numRuns: 500 })) {
      const pattern = toSignalPattern(signalsOf(signals!), serverSignals)
      const all = [...Object.values(pattern.signals), ...Object.values(pattern.server)]
      const values = all.flatMap((own) => Object.values(own ?? {}).flat())
      for (const value of values) expect(kept).toContain(value)
    }
    const { signals } = toSignalPattern(
      signalsOf({ network: { proxy_address: '10.1.2.3', asn: 'AS1' }, root: { 'mine-7': true } }),
    )
    expect(JSON.stringify(signals)).not.toMatch(/10\.1|AS1|mine/)
  })

  it('is one for all events with one key', () => {
    const idOf = new Map<string, string>()
    let shared = 0
    for (const { signals, serverSignals } of fc.sample(anyEvent, { seed, numRuns: 3_000 })) {
      const all = signalsOf(signals!)
      const key = toPatternKey(all, serverSignals)
      if (key === null) continue
      const id = toPatternId(toSignalPattern(all, serverSignals))
      if (idOf.has(key)) shared++
      expect(idOf.get(key) ?? id).toBe(id)
      idOf.set(key, id)
    }
    expect(shared).toBeGreaterThan(2)
    const long = { tamper: { pi_device_verdict: new Array<string>(600).fill('x') } }
    expect(toPatternKey(signalsOf(long))).toBeNull()
  })

  it('is equal for events that every policy scores alike', () => {
    const of = (signals: Record<string, unknown>) =>
      toPatternId(toSignalPattern(signalsOf(signals)))
    const plain = of({ root: { su_binary: true, custom_rom: false } })
    expect(of({ root: { custom_rom: false, new_one: 'x', su_binary: true } })).toBe(plain)
    expect(of({ root: { custom_rom: false, su_binary: true, rom_name: null } })).toBe(plain)
    expect(of({ root: { custom_rom: true, su_binary: true } })).not.toBe(plain)
    const bought = (app: string) => of({ tamper: { installer_package: app } })
    expect(bought('com.one')).toBe(bought('com.two'))
    const aged = (days: number) => of({ ecosystem: { patch_age_days: days } })
    expect(aged(91)).toBe(aged(99.5))
    expect(aged(90)).not.toBe(aged(89.9))
  })

  it('does not support a policy with another text or a limit inside a range', () => {
    const stricter = (tamper: Record<string, unknown>) => {
      const { categories } = presets.balanced
      const signals = { ...categories.tamper.signals, ...tamper }
      return findPatternLimits([
        policySchema.parse({
          ...presets.balanced,
          categories: { ...categories, tamper: { ...categories.tamper, signals } },
        }),
      ])
    }
    const named = stricter({ installer_package: { values: { 'com.evil': 40 } } })
    expect(named.hidden).toContain('tamper.installer_package')
    const event = toSignalPattern(signalsOf({ tamper: { installer_package: 'com.any' } }))
    expect(isPatternEnough(event, named)).toBe(false)
    const within = stricter({ pi_device_recall_bits: { atLeast: 2.5, weight: 10 } })
    expect(within.ranges).toEqual([
      { category: 'tamper', signal: 'pi_device_recall_bits', from: 2 },
    ])
    const below = stricter({ pi_device_recall_bits: { atLeast: -1, weight: 10 } })
    expect(below.ranges).toEqual([
      { category: 'tamper', signal: 'pi_device_recall_bits', from: -1 },
    ])
  })

  it('has the server signals, and names those that it does not know', () => {
    const of = (server: ServerSignals) => toSignalPattern(signalsOf({}), server)
    const known = of({
      attestation: { rejected: true, os_patch_age_days: 99, pi_device: [], pi_app: 'NEW' },
      connection: { country: 'DE', tor: false, hosting: null },
    })
    expect(known.server).toEqual({
      attestation: { rejected: true, os_patch_age_days: 90, pi_device: [], pi_app: '?' },
      connection: { country: '?', tor: false },
    })
    expect(known.hidden).toEqual(['attestation.pi_app', 'connection.country'])
    const later = of({ attestation: { rejected: 'yes', newer: true } })
    expect(later).toMatchObject({
      server: {},
      hidden: ['?attestation.rejected', '?attestation.newer'],
    })
    const limits = findPatternLimits([presets.balanced])
    expect([known, later].map((one) => isPatternEnough(one, limits))).toEqual([true, false])
    const { serverCategories: _, ...older } = presets.balanced
    expect(isPatternEnough(later, findPatternLimits([policySchema.parse(older)]))).toBe(true)
    expect(new Set([of({}), known, later].map(toPatternId)).size).toBe(3)
  })

  it('of version 1 does not support a policy where it left out the spelling of a value', () => {
    const limits = findPatternLimits([presets.balanced], textsByVersion.get(1))
    expect(limits.hidden).toContain('root.verified_boot_state')
    const kept = toSignalPattern(signalsOf({ root: { verified_boot_state: 'UNVERIFIED' } }))
    expect(isPatternEnough(kept, limits)).toBe(true)
    const leftOut = { ...kept, hidden: ['root.verified_boot_state'] }
    expect(isPatternEnough(leftOut, limits)).toBe(false)
  })

  // Stored patterns keep their meaning only while these are unchanged. Every change needs another
  // patternVersion, and then another digest here.
  it('of one version has fixed texts and ranges', () => {
    const digests = [...textsByVersion].map(([version, texts]) => {
      const text = JSON.stringify([[...texts], patternBounds])
      return [version, hash('sha256', text, 'hex').slice(0, 16)]
    })
    expect(digests).toEqual([
      [1, '6ea569f598ebce71'],
      [2, '84b197aa3ba5cb3d'],
      [patternVersion, 'e68ddd465f1f5b8b'],
    ])
  })
})
