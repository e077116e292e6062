/** Warnings of sandbox answers: unknown signals and misspelt values, each with the nearest name. */
import { describe, expect, it } from 'vitest'
import { warningTextsMax } from '#shared/core/base/limits/telemetry.ts'
import { categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { findSignalWarnings } from '#shared/core/telemetry/signal-warnings.ts'
import { allSignals } from '../../support/scoring/any-policy.ts'

const empty = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }
const warn = (signals: Partial<Signals>) => findSignalWarnings({ ...empty, ...signals })
const nearest = (signals: Partial<Signals>) => warn(signals).map((one) => one.nearest)

describe('a name', () => {
  it.each([
    ['su_binay', 'root.su_binary'],
    ['suBinary', 'root.su_binary'],
    ['SU-BINARY', 'root.su_binary'],
    ['magisk_detectd', 'root.magisk_detected'],
    ['vpn_active', 'network.vpn_active'],
    ['frobnicated', null],
    ['', null],
    ['x'.repeat(400), null],
  ])('%s in root is near to %s', (name, expected) => {
    expect(nearest({ root: { [name]: true } })).toEqual([expected])
  })

  it('know what the policy of the tenant declares, and say when a value has another type', () => {
    const policy = { signals: { 'ecosystem.suBinary': { type: 'boolean' as const } } }
    const warnOf = (value: unknown) =>
      findSignalWarnings({ ...empty, ecosystem: { suBinary: value } }, policy)
    expect(findSignalWarnings({ ...empty, ecosystem: { suBinary: true } })).toHaveLength(1)
    expect([true, false, null].flatMap(warnOf)).toEqual([])
    expect(warnOf('yes')).toEqual([
      {
        path: '$.signals.ecosystem.suBinary',
        code: 'wrong_type',
        message: 'is declared as a boolean or null: this value is kept and weighs nothing',
        nearest: null,
      },
    ])
  })

  it('that is known has no warning, and is nearest to itself', () => {
    for (const category of categories) {
      for (const name of Object.keys(signalCatalog[category])) {
        expect(warn({ [category]: { [name]: null } })).toEqual([])
        const shouted = nearest({ [category]: { [name.toUpperCase()]: true } })
        expect(shouted).toEqual([`${category}.${name}`])
      }
    }
  })

  it('is in the path, and the message names the remedy', () => {
    expect(warn({ root: { su_binay: true } })).toEqual([
      {
        path: '$.signals.root.su_binay',
        code: 'unknown_signal',
        message: expect.stringContaining('did you mean root.su_binary?'),
        nearest: 'root.su_binary',
      },
    ])
  })
})

describe('a value', () => {
  it.each([
    ['verified_boot_state', 'UNVERIFIE', 'UNVERIFIED'],
    ['verified_boot_state', 'oranje', null],
    ['verified_boot_state', 'SELF-SIGNED', 'SELF_SIGNED'],
    ['system_integrity', 'Compromise', 'COMPROMISED'],
    ['verified_boot_state', 'something else', null],
    ['verified_boot_state', 'X', null],
    ['verified_boot_state', 'x'.repeat(400), null],
    ['verified_boot_state', '', null],
  ])(
    'outside the vocabulary of %s, %s, has a warning with the nearest: %s',
    (name, value, near) => {
      const [warning, ...others] = warn({ root: { [name]: value } })
      expect(warning).toMatchObject({ code: 'unknown_value', nearest: near })
      expect(warning!.message).toContain('scores nothing')
      expect(warning!.message).toContain(near ?? 'it can be ')
      expect(others).toEqual([])
    },
  )

  it('in any spelling of the vocabulary has no warning, nor has a text of a free signal', () => {
    for (const { category, name, type, values } of allSignals) {
      for (const word of Object.entries(values ?? {}).flat(2)) {
        for (const text of [word, word.toLowerCase(), word.toUpperCase()]) {
          const sent = type === 'strings' ? [text] : text
          expect(warn({ [category]: { [name]: sent } })).toEqual([])
        }
      }
    }
    expect(warn({ root: { rom_name: 'LineageOS', verified_boot_state: null } })).toEqual([])
  })

  it('in a list is checked, too', () => {
    const verdicts = ['MEETS_DEVICE_INTEGRITY', 'MEETS_BASIC_INTEGRTY']
    expect(nearest({ tamper: { pi_device_verdict: verdicts } })).toEqual(['MEETS_BASIC_INTEGRITY'])
  })
})

describe('the cost', () => {
  it('is bounded for as many unknown names as a submission may have', () => {
    const names = Array.from({ length: 512 }, (_, at) => `${'ab_'.repeat(20)}${at}`)
    const many = Object.fromEntries(names.map((name) => [name, true]))
    const signals = Object.fromEntries(categories.map((category) => [category, many])) as Signals
    expect(findSignalWarnings(signals)).toHaveLength(16)
  })

  it('is bounded for a list of as many texts as a submission may have', () => {
    let read = 0
    const texts = new Proxy(Array(4_000).fill('UNKNOWN_INSTALLED'), {
      get: (list, at) => {
        if (typeof at === 'string' && /^\d+$/.test(at)) read++
        return Reflect.get(list, at)
      },
    })
    const signals = Object.fromEntries(categories.map((category) => [category, {}])) as Signals
    signals.tamper = { pi_app_access_risk: texts }
    expect(findSignalWarnings(signals)).toEqual([])
    expect(read).toBeLessThanOrEqual(warningTextsMax + 1)
  })
})
