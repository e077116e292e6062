/** Warnings of sandbox answers about the parts of a submission beside its signals. */
import { describe, expect, it } from 'vitest'
import {
  envelopeWarningsMax,
  warningNamesMax,
  warningsMax,
} from '#shared/core/base/limits/telemetry.ts'
import { categories } from '#shared/core/signals/signal-definition.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { findEnvelopeWarnings } from '#shared/core/telemetry/warnings/envelope-warnings.ts'
import { findWarnings } from '#shared/core/telemetry/warnings/find-warnings.ts'

const receivedAtMs = Date.UTC(2026, 2, 1)
const right = {
  tenant_id: 'acme',
  device_id: '4f6c1d8e-device',
  session_id: 'launch-3',
  sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'session_start' },
  scorer: { rasp_score: -1, rasp_action: '', rasp_flags: [] },
  signals: {
    ...Object.fromEntries(categories.map((name) => [name, {}])),
    root: { su_binary: false },
  },
} as unknown as Telemetry

type Change = Record<string, unknown>
const warn = (change: Change, raspScore: number | null = 0) =>
  findEnvelopeWarnings({ ...right, ...change } as Telemetry, { raspScore, receivedAtMs })
const told = (change: Change, raspScore?: number) =>
  warn(change, raspScore).map(({ path, code, nearest }) => [path, code, nearest])
const meta = (change: Change) => ({ sdk_meta: { ...right.sdk_meta, ...change } })
const scorer = (change: Change) => ({ scorer: { ...right.scorer, ...change } })

describe('a right submission', () => {
  it.each<[string, Change]>([
    ['with the six members', {}],
    ['of iOS', meta({ platform: 'ios' })],
    [
      'with every optional member',
      {
        user_id: 'u-1',
        account_id: 'a-1',
        occurred_at: '2026-02-28T23:00:00Z',
        app: { version: '7.1.0', build: 12 },
        device: {
          os_version: '16',
          brand: 'Google',
          model: 'Pixel 9',
          build: 'BP2A.250605.031.A3',
          storage_bytes: 128e9,
          memory_bytes: 12e9,
          screen: '1080x2424',
          locale: 'de-DE',
          time_zone: 'Europe/Berlin',
          carrier: '',
          boot_at: '2026-02-27T06:12:45.120Z',
          identifiers: { android_id: '9f2c4be01d7a8836' },
        },
      },
    ],
    ['with members of its own', { order: { id: 7 }, experiment: 'b', region: 'eu' }],
    ['with a score', scorer({ rasp_score: 10, rasp_action: 'ALLOW' })],
    ['without users', { user_id: undefined, account_id: undefined, occurred_at: null }],
  ])('%s has no warning', (_, change) => {
    expect(warn(change)).toEqual([])
  })
})

describe('what is told of a phone', () => {
  const plain = 'imei-352099001761481'
  it.each<[string, Change, string, string]>([
    ['a size as a text', { storage_bytes: '128 GB' }, 'storage_bytes', 'unreadable_value'],
    ['a size below one', { memory_bytes: 0 }, 'memory_bytes', 'unreadable_value'],
    ['a screen as a list', { screen: [1080, 2400] }, 'screen', 'unreadable_value'],
    ['a build that is too long', { build: 'b'.repeat(129) }, 'build', 'unreadable_value'],
    ['an uptime', { boot_at: 86_400 }, 'boot_at', 'unreadable_value'],
    ['identifiers as a text', { identifiers: plain }, 'identifiers', 'unreadable_value'],
    ['a number', { identifiers: { a: 7 } }, 'identifiers.a', 'unreadable_value'],
    ['a long one', { identifiers: { a: plain.repeat(20) } }, 'identifiers.a', 'unreadable_value'],
    ['another name', { identifiers: { IMEI: plain } }, 'identifiers.IMEI', 'unreadable_value'],
    [
      'a taken name',
      { identifiers: { attested_key: plain } },
      'identifiers.attested_key',
      'unreadable_value',
    ],
    ['a placeholder', { identifiers: { a: 'Unknown' } }, 'identifiers.a', 'placeholder_id'],
  ])('has a warning without its value: %s', (_, device, path, code) => {
    const warnings = warn({ device })
    expect(warnings.map((one) => [one.path, one.code])).toEqual([[`$.device.${path}`, code]])
    expect(JSON.stringify(warnings)).not.toContain(plain)
  })

  it('has a warning for each identifier beyond the eighth', () => {
    const names = [...'abcdefghij']
    const identifiers = Object.fromEntries(names.map((name) => [name, `${name}-7f3a`]))
    expect(told({ device: { identifiers } }).map(([path]) => path)).toEqual([
      '$.device.identifiers.i',
      '$.device.identifiers.j',
    ])
  })

  it('is asked for in its place, where identifiers are somewhere else and so not hashed', () => {
    for (const [place, change] of [
      ['identifiers', { identifiers: { a: plain } }],
      ['sdk_meta.identifiers', meta({ identifiers: { a: plain } })],
      ['device.device_ids', { device: { device_ids: { a: plain } } }],
    ] as const) {
      expect(told(change)).toEqual([[`$.${place}`, 'unknown_member', 'device.identifiers']])
    }
  })
})

describe('an optional member', () => {
  it.each<[string, Change, string, string]>([
    ['userId', { userId: 'u' }, '$.userId', 'user_id'],
    ['user_ID', { user_ID: 'u' }, '$.user_ID', 'user_id'],
    ['usr_id', { usr_id: 'u' }, '$.usr_id', 'user_id'],
    ['uid', { uid: 'u' }, '$.uid', 'user_id'],
    ['clientIp', { clientIp: '203.0.113.9' }, '$.clientIp', 'client_ip'],
    ['accountId', { accountId: 'u' }, '$.accountId', 'account_id'],
    ['timestamp', { timestamp: 1 }, '$.timestamp', 'occurred_at'],
    ['occuredAt', { occuredAt: 1 }, '$.occuredAt', 'occurred_at'],
    ['appVersion', { appVersion: '1' }, '$.appVersion', 'app.version'],
    ['app.appVersion', { app: { appVersion: '1' } }, '$.app.appVersion', 'app.version'],
    ['app.versionName', { app: { versionName: '1' } }, '$.app.versionName', 'app.version'],
    ['device.osVersion', { device: { osVersion: '1' } }, '$.device.osVersion', 'device.os_version'],
    ['manufacturer', { device: { manufacturer: 'x' } }, '$.device.manufacturer', 'device.brand'],
    ['a user in sdk_meta', meta({ user_id: 'u' }), '$.sdk_meta.user_id', 'user_id'],
    ['deviceModel', meta({ deviceModel: 'x' }), '$.sdk_meta.deviceModel', 'device.model'],
  ])('as %s has a warning with its name', (_, change, path, nearest) => {
    expect(told(change)).toEqual([[path, 'unknown_member', nearest]])
    expect(warn(change)[0]!.message).toContain(`did you mean ${nearest}?`)
  })

  it('that is also sent by its name has no warning', () => {
    expect(warn({ userId: 'u', user_id: 'u', app: { version: '1' }, appVersion: '1' })).toEqual([])
  })

  it('of another type has a warning', () => {
    expect(told({ app: '7.1.0' })).toEqual([['$.app', 'unreadable_value', null]])
    expect(told({ app: { version: 7 } })).toEqual([['$.app.version', 'unreadable_value', null]])
    expect(told(meta({ app_version: 7 }))).toEqual([
      ['$.sdk_meta.app_version', 'unreadable_value', null],
    ])
  })
})

describe('a time', () => {
  it.each<[unknown, string, string]>([
    ['yesterday', 'unreadable_value', 'no time with its offset'],
    [1_772_000_000, 'unreadable_value', 'seconds; send milliseconds'],
    [receivedAtMs + 2 * 86_400_000, 'out_of_range', 'ahead'],
  ])('%s has a warning', (value, code, text) => {
    const [warning] = warn({ occurred_at: value })
    expect(warning).toMatchObject({ path: '$.occurred_at', code })
    expect(warning!.message).toContain(text)
  })
})

describe('an id', () => {
  it('that is a placeholder has a warning, in each field', () => {
    const ids = {
      device_id: 'unknown',
      session_id: '00000000-0000-0000-0000-000000000000',
      user_id: 'anonymous',
      account_id: 'null',
    }
    expect(told(ids)).toEqual(Object.keys(ids).map((name) => [`$.${name}`, 'placeholder_id', null]))
  })

  it('that is also another one has a warning', () => {
    expect(told({ session_id: right.device_id })).toEqual([['$.session_id', 'same_id', null]])
    expect(told({ user_id: right.device_id })).toEqual([['$.user_id', 'same_id', null]])
    expect(told({ user_id: right.session_id })).toEqual([['$.user_id', 'same_id', null]])
  })
})

describe('sdk_meta', () => {
  it.each([
    ['Android', 'android'],
    ['IOS', 'ios'],
    ['iPhone', 'ios'],
    ['andriod', null],
    ['androd', 'android'],
    ['flutter', null],
    ['', null],
  ])('with the platform %s has a warning, nearest %s', (platform, nearest) => {
    expect(told(meta({ platform }))).toEqual([['$.sdk_meta.platform', 'unknown_value', nearest]])
  })

  it.each(['', 'unknown', 'null'])('with the version "%s" has a warning', (version) => {
    expect(told(meta({ sdk_version: version }))).toEqual([
      ['$.sdk_meta.sdk_version', 'unknown_value', null],
    ])
  })
})

describe('scorer', () => {
  it('in another form is named, and taken', () => {
    expect(told(scorer({ rasp_score: '12', rasp_action: null, rasp_flags: null }))).toEqual([
      ['$.scorer.rasp_score', 'wrong_type', null],
      ['$.scorer.rasp_action', 'wrong_type', null],
      ['$.scorer.rasp_flags', 'wrong_type', null],
    ])
  })

  it.each([250, -2, 1e9])('with the score %s has a warning', (score) => {
    expect(told(scorer({ rasp_score: score }))).toEqual([
      ['$.scorer.rasp_score', 'out_of_range', null],
    ])
  })

  it.each([
    ['allow', 'ALLOW'],
    ['BLOK', 'BLOCK'],
    ['CHALLENGE', null],
    ['x'.repeat(128), null],
  ])('with the action %s has a warning, nearest %s', (action, nearest) => {
    expect(told(scorer({ rasp_action: action }))).toEqual([
      ['$.scorer.rasp_action', 'unknown_value', nearest],
    ])
  })

  it('of 0 and ALLOW has a warning where the signals score high, and says how to send none', () => {
    const change = scorer({ rasp_score: 0, rasp_action: 'ALLOW' })
    expect(told(change, 80)).toEqual([['$.scorer.rasp_score', 'score_mismatch', null]])
    expect(warn(change, 80)[0]!.message).toContain('send -1 and an empty rasp_action')
    expect(warn(change, 10)).toEqual([])
    expect(warn({}, 80)).toEqual([])
    expect(warn(scorer({ rasp_score: 0 }), 80)).toEqual([])
  })
})

describe('signals', () => {
  it('without a measured one have a warning', () => {
    const signals = { ...right.signals, root: { su_binary: null } }
    expect(told({ signals })).toEqual([['$.signals', 'no_signals', null]])
  })
})

describe('many unknown signals', () => {
  it('have a warning that says what they use up', () => {
    const root = (count: number) => ({
      signals: {
        ...right.signals,
        root: Object.fromEntries(Array.from({ length: count }, (_, n) => [`pasted_${n}`, true])),
      },
    })
    expect(told(root(15))).toEqual([])
    expect(told(root(16))).toEqual([['$.signals', 'many_unknown_signals', null]])
    expect(warn(root(100))[0]!.message).toMatch(/^has 32 or more names .* 64 .*`di signals free`$/)
  })
})

describe('all warnings', () => {
  it('are bounded in number, and those of both kinds are shown', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`su_binary_${n}`, 1]))
    const body = {
      ...right,
      device_id: 'unknown',
      session_id: 'null',
      user_id: 'none',
      account_id: 'guest',
      occurred_at: 'x',
      app: 1,
      device: 1,
      ...meta({ platform: 'x', sdk_version: '' }),
      ...scorer({ rasp_score: 250, rasp_action: 'x' }),
      signals: { ...right.signals, root: many },
    } as unknown as Telemetry
    const warnings = findWarnings(body, { raspScore: 0, receivedAtMs })
    expect(warnings).toHaveLength(warningsMax)
    const ofSignals = warnings.filter(({ path }) => path.startsWith('$.signals.'))
    expect(ofSignals).toHaveLength(warningsMax - envelopeWarningsMax)
  })

  it('cost the same for any number of unknown members', () => {
    const names = Array.from({ length: 4_000 }, (_, n) => `${'user_id'.repeat(8)}${n}`)
    let read = 0
    const many = new Proxy(Object.fromEntries(names.map((name) => [name, 1])), {
      getOwnPropertyDescriptor: (object, key) => {
        read++
        return Reflect.getOwnPropertyDescriptor(object, key)
      },
    })
    expect(warn({ app: many })).toEqual([])
    expect(read).toBeLessThanOrEqual(warningNamesMax + 2)
  })
})

describe('what is taken and is probably a slip', () => {
  it.each<[string, Change, string]>([
    ['a device with a space', { device_id: 'pixel-1 ' }, 'device_id'],
    ['a session with an invisible mark', { session_id: 'launch\u200b3' }, 'session_id'],
    ['a user with capital letters', { user_id: 'Ada@example.com' }, 'user_id'],
    ['a share for a score', scorer({ rasp_score: 0.73 }), 'scorer.rasp_score'],
  ])('%s', (_, change, path) => {
    expect(warn(change).map((one) => one.path)).toEqual([`$.${path}`])
  })

  it('is an address that the tenant does not take', () => {
    const body = { ...right, client_ip: '8.8.8.8' } as Telemetry
    const ask = (clientAddress: 'connection' | 'body') =>
      findEnvelopeWarnings(body, { raspScore: 0, receivedAtMs, clientAddress })
    expect(ask('body')).toEqual([])
    expect(ask('connection').map(({ path }) => path)).toEqual(['$.client_ip'])
  })

  it('is a detected signal of another platform', () => {
    const body = (platform: string, value: boolean) =>
      ({
        ...right,
        ...meta({ platform }),
        signals: { ...right.signals, root: { magisk_detected: value } },
      }) as unknown as Telemetry
    const told = (platform: string, value: boolean) =>
      findWarnings(body(platform, value), { raspScore: null, receivedAtMs }).map(({ code }) => code)
    expect(told('ios', true)).toEqual(['other_platform'])
    expect(told('ios', false)).toEqual([])
    expect(told('android', true)).toEqual([])
  })
})
