/**
 * Signals from the reports of mobile SDKs: golden vectors, every documented name, only signals of
 * the catalog, and no BLOCK by alarms of stock phones.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { appAttestFields, fromAppAttest } from '../../../shared/client/mappings/app-attest.ts'
import {
  appdomeEvents,
  appdomeIgnored,
  fromAppdome,
} from '../../../shared/client/mappings/appdome.ts'
import {
  fingerprintDetails,
  fingerprintFields,
  fingerprintTimes,
  fromFingerprint,
} from '../../../shared/client/mappings/fingerprint.ts'
import {
  flutterRaspThreats,
  fromFlutterRasp,
} from '../../../shared/client/mappings/flutter-rasp.ts'
import { freeRaspThreats, fromFreeRasp } from '../../../shared/client/mappings/freerasp.ts'
import {
  fromHuaweiSysIntegrity,
  huaweiDetails,
  huaweiFields,
} from '../../../shared/client/mappings/huawei-sys-integrity.ts'
import {
  fromIncognia,
  incogniaFields,
  incogniaStoreField,
} from '../../../shared/client/mappings/incognia.ts'
import {
  fromIosSecuritySuite,
  integrityChecks,
  jailbreakChecks,
  plainCalls,
  reverseEngineeringChecks,
} from '../../../shared/client/mappings/ios-security-suite.ts'
import { fromJailMonkey, jailMonkeyCalls } from '../../../shared/client/mappings/jail-monkey.ts'
import { mergeSignals } from '../../../shared/client/mappings/merge-signals.ts'
import {
  fromFields,
  type PlatformSignals,
} from '../../../shared/client/mappings/platform-signals.ts'
import {
  fromPlayIntegrity,
  playIntegrityFields,
} from '../../../shared/client/mappings/play-integrity.ts'
import { fromRootBeer, rootBeerChecks } from '../../../shared/client/mappings/rootbeer.ts'
import { fromSardine, sardineSignals } from '../../../shared/client/mappings/sardine.ts'
import type { PartialSignals } from '../../../shared/client/telemetry.ts'
import { balancedPolicy } from '../../../shared/core/policies/presets/balanced.ts'
import { compilePolicy } from '../../../shared/core/scoring/scoring.ts'
import { type Category, categories } from '../../../shared/core/signals/signal-definition.ts'
import { checkKnownSignals, findSignal } from '../../../shared/core/signals/signals.ts'
import { findSignalWarnings } from '../../../shared/core/telemetry/signal-warnings.ts'
import { context } from '../../support/scoring/any-policy.ts'
import golden from '../../vectors/sdk-reports.json' with { type: 'json' }

type Adapter = (report: never, expected?: never) => PartialSignals

const adapters: Record<string, Adapter> = {
  freerasp: fromFreeRasp,
  rootbeer: fromRootBeer,
  ios_security_suite: fromIosSecuritySuite,
  play_integrity: fromPlayIntegrity,
  app_attest: fromAppAttest,
  jail_monkey: fromJailMonkey,
  flutter_rasp: fromFlutterRasp,
  appdome: fromAppdome,
  fingerprint: fromFingerprint,
  incognia: fromIncognia,
  sardine: fromSardine,
  huawei_sys_integrity: fromHuaweiSysIntegrity,
}

type Vector = {
  name: string
  sdk: string
  report: unknown
  expected?: unknown
  signals: PartialSignals
  rasp_action: string
  stock_phone?: boolean
}
const vectors = golden.vectors as unknown as Vector[]

const signalsOf = ({ sdk, report, expected }: Vector) =>
  adapters[sdk]!(report as never, expected as never)

const score = compilePolicy(balancedPolicy)
const assess = (...parts: PartialSignals[]) => score(mergeSignals(...parts), context)

/** Signals of a mapping's table: each name with the signals it can give. */
const tables: Record<string, Record<string, string[]>> = {
  freeRASP: Object.fromEntries(
    freeRaspThreats.map(({ name, android, ios }) => [
      name,
      [android, ios].filter((one) => one !== undefined),
    ]),
  ),
  RootBeer: listed(rootBeerChecks),
  'IOSSecuritySuite jailbreak': listed(jailbreakChecks),
  'IOSSecuritySuite reverse engineering': listed(reverseEngineeringChecks),
  'IOSSecuritySuite integrity': listed(integrityChecks),
  'IOSSecuritySuite calls': listed(plainCalls),
  'Play Integrity': listed(playIntegrityFields),
  'App Attest': listed(appAttestFields),
  'jail-monkey': Object.fromEntries(
    Object.entries(jailMonkeyCalls).map(([name, signals]) => [name, Object.values(signals)]),
  ),
  flutter_rasp: Object.fromEntries(
    Object.entries(flutterRaspThreats).map(([name, signals]) => [name, Object.values(signals)]),
  ),
  Appdome: perPlatform(appdomeEvents),
  Fingerprint: perPlatform(fingerprintFields),
  'Fingerprint details': listed(fingerprintDetails),
  'Fingerprint times': { ...fingerprintTimes } as unknown as Record<string, string[]>,
  Incognia: perPlatform(incogniaFields),
  'Incognia store': listed(incogniaStoreField),
  Sardine: perPlatform(sardineSignals),
  'Huawei reasons': listed(huaweiDetails),
  'Huawei fields': listed(huaweiFields),
}

function perPlatform(table: Readonly<Record<string, PlatformSignals>>): Record<string, string[]> {
  const entries = Object.entries(table)
  return Object.fromEntries(entries.map(([name, signals]) => [name, Object.values(signals)]))
}

function listed(table: Record<string, string>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(table).map(([name, signal]) => [name, [signal]]))
}

describe('the vectors', () => {
  it.each(vectors.map((vector) => [vector.name, vector] as const))('%s', (_, vector) => {
    const signals = signalsOf(vector)
    expect(signals).toEqual(vector.signals)
    expect(assess(signals).action).toBe(vector.rasp_action)
  })

  it('have values of the right type for every signal in the catalog', () => {
    for (const vector of vectors) {
      const signals = signalsOf(vector) as Record<Category, Record<string, unknown>>
      const errors: { path: string; message: string }[] = []
      for (const category of categories) {
        checkKnownSignals(category, signals[category] ?? {}, errors)
      }
      expect(errors, vector.name).toEqual([])
    }
  })

  it('have no name and no value that a sandbox would warn of, except new threats', () => {
    const warned = vectors.filter(
      (one) => findSignalWarnings(mergeSignals(signalsOf(one))).length > 0,
    )
    expect(warned.map(({ name }) => name)).toEqual([
      'a threat that this version does not know is kept',
    ])
  })

  it('use every adapter, with and without an alarm', () => {
    for (const sdk of Object.keys(adapters)) {
      const actions = vectors.filter((one) => one.sdk === sdk).map((one) => one.rasp_action)
      expect(actions, sdk).toContain('ALLOW')
      expect(new Set(actions).size, sdk).toBeGreaterThan(1)
    }
  })
})

describe('stock phones', () => {
  const stock = vectors.filter((vector) => vector.stock_phone === true)

  it('stay below BLOCK with the checks that are known to flag them', () => {
    expect(stock.length).toBeGreaterThan(15)
    for (const vector of stock) {
      expect(assess(signalsOf(vector)).action, vector.name).not.toBe('BLOCK')
    }
  })

  it('stay below BLOCK in developer mode, with adb, a VPN and a basic verdict as well', () => {
    const around: PartialSignals = {
      ecosystem: { developer_mode: true, adb_enabled: true },
      network: { vpn_active: true },
      tamper: { pi_device_verdict: ['MEETS_BASIC_INTEGRITY'] },
    }
    for (const vector of stock.filter(({ sdk }) => sdk === 'rootbeer')) {
      expect(assess(signalsOf(vector), around).action, vector.name).not.toBe('BLOCK')
    }
  })
})

describe('generic signals', () => {
  it.each([
    ['root', 'rooted', 'REVIEW'],
    ['root', 'jailbroken', 'REVIEW'],
    ['debugger', 'hooking_detected', 'REVIEW'],
    ['ecosystem', 'mock_location_possible', 'ALLOW'],
  ])('%s.%s alone is a weak check, which never blocks', (category, name, action) => {
    expect(assess({ [category]: { [name]: true } }).action).toBe(action)
  })

  it('and all details of root together do not block', () => {
    const checks = Object.values(rootBeerChecks).map((path) => [path.split('.')[1]!, true])
    const { score, action } = assess({ root: { ...Object.fromEntries(checks), rooted: true } })
    expect({ score, action }).toEqual({ score: 70, action: 'REVIEW' })
  })
})

describe('merging', () => {
  it('prefers detected over clean values, and otherwise takes the last value', () => {
    const parts: PartialSignals[] = [
      { root: { su_binary: false, test_keys: true }, tamper: { app_attest_valid: false } },
      { root: { su_binary: true, test_keys: false }, tamper: { app_attest_valid: true } },
      { root: { su_binary: null, busybox_binary: false }, emulator: { sensor_count: 3 } },
      { root: { su_binary: false }, emulator: { sensor_count: 4 } },
    ]
    expect(mergeSignals(...parts)).toEqual({
      root: { su_binary: true, test_keys: true, busybox_binary: false },
      emulator: { sensor_count: 4 },
      debugger: {},
      tamper: { app_attest_valid: false },
      ecosystem: {},
      network: {},
    })
  })

  it('of no reports gives the six empty categories', () => {
    expect(Object.keys(mergeSignals())).toEqual([...categories])
  })
})

describe('an unknown name of an SDK', () => {
  it.each(['__proto__', 'constructor', 'toString', 'x'.repeat(500), '🔑', ''])(
    '%s is kept with the prefix of the SDK, scores 0 and does no harm',
    (name) => {
      const reports = [
        fromFreeRasp({ platform: 'android', threats: [name] }),
        fromFlutterRasp({ platform: 'ios', threats: [name] }),
        fromIosSecuritySuite({
          jailbreak: { jailbroken: true, failedChecks: [{ check: name }] },
        }),
        fromAppdome({ platform: 'ios', events: [name] }),
        fromHuaweiSysIntegrity({ basicIntegrity: false, detail: [name] }),
      ]
      for (const signals of reports) {
        const names = Object.keys(signals.ecosystem ?? {})
        expect(names).toHaveLength(1)
        expect(names[0]).toMatch(/^(freerasp|flutter_rasp|iss|appdome|huawei)_[a-z0-9_]{0,40}$/)
        expect(assess({ ecosystem: signals.ecosystem! }).score).toBe(0)
      }
    },
  )
})

describe('what is not measured', () => {
  it.each([null, undefined, 'true', 1, 'high', {}])('%s is not "clean"', (value) => {
    const fields = Object.keys(fingerprintFields).map((name) => [name, value])
    const event = Object.fromEntries(fields)
    const level = value as string
    for (const platform of ['android', 'ios'] as const) {
      expect(fromFingerprint({ platform, event })).toEqual({})
      const deviceIntegrity = { probable_root: value, from_official_store: value } as never
      expect(fromIncognia({ platform, deviceIntegrity })).toEqual({})
      if (value === 'true' || value === 'high') continue
      expect(fromSardine({ platform, signals: [{ key: 'VPN', value: level }] })).toEqual({})
    }
    expect(fromFields({ a: value }, { a: 'root.rooted' })).toEqual({})
  })

  it('is every signal of a service that could not be asked', () => {
    expect(fromPlayIntegrity(null, { nonce: 'x' })).toEqual({})
    expect(fromHuaweiSysIntegrity(null, { nonce: 'x', packageName: 'x' })).toEqual({})
    expect(fromFingerprint({ platform: 'android', event: null })).toEqual({})
    expect(fromIncognia({ platform: 'android', deviceIntegrity: null })).toEqual({})
    expect(fromSardine({ platform: 'android', signals: null })).toEqual({})
    expect(fromFields(null, { a: 'root.rooted' })).toEqual({})
  })

  it('is a check of another platform', () => {
    const event = { root_apps: false, emulator: false, tampering: false, jailbroken: false }
    expect(fromFingerprint({ platform: 'ios', event })).toEqual({ root: { jailbroken: false } })
  })
})

describe('a table of your own', () => {
  it('maps the booleans of any SDK', () => {
    const report = { isRooted: true, usesVpn: false, score: 7, isHooked: null }
    const fields = {
      isRooted: 'root.rooted',
      usesVpn: 'network.vpn_active',
      isHooked: 'debugger.hooking_detected',
      isEmulated: 'emulator.is_emulator',
    } as const
    expect(fromFields(report, fields)).toEqual({
      root: { rooted: true },
      network: { vpn_active: false },
    })
  })
})

describe('the table in MAPPINGS.md', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../shared/client/MAPPINGS.md'), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| '))
  const entries = Object.entries(tables).flatMap(([sdk, table]) =>
    Object.entries(table).map(([name, signals]) => ({ sdk, name, signals })),
  )

  it.each(entries)('has $sdk $name, with signals of the catalog', ({ name, signals }) => {
    expect(signals.length).toBeGreaterThan(0)
    for (const signal of signals) {
      const [category, known] = signal.split('.') as [Category, string]
      expect(findSignal(category, known), signal).toBeDefined()
      const row = rows.find(
        (line) => line.includes(`\`${name}\``) && line.includes(`\`${signal}\``),
      )
      expect(row, `a row with ${name} and ${signal}`).toBeDefined()
    }
  })

  it.each([...appdomeIgnored])('says that Appdome’s %s is ignored', (name) => {
    expect(page).toContain(`\`${name}\``)
  })
})
