/**
 * The validation of a verified body, error by error, and the equality of the fast path and the
 * schema.
 */
import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { categories } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { scanBody } from '#shared/core/telemetry/body-scan.ts'
import { parseTelemetry } from '#shared/core/telemetry/parse-telemetry.ts'
import { findTenant } from '../../../shared/core/telemetry/body-scan.ts'
import { findJsonErrorOffset } from '../../../shared/core/telemetry/json/json-syntax.ts'

const noSignals = () => Object.fromEntries(categories.map((name) => [name, {}]))

const valid = () => ({
  tenant_id: 'acme',
  device_id: 'device-1',
  session_id: 'session-1',
  sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'session_start' },
  scorer: { rasp_score: 12.5, rasp_action: 'ALLOW', rasp_flags: ['A', 'B'] },
  signals: { ...noSignals(), root: { su_binary: true }, network: { vpn_active: null } },
})

function parse(body: Buffer | string) {
  const bytes = Buffer.from(body)
  return parseTelemetry(bytes, findTenant(bytes) ?? '')
}

const parseValue = (value: unknown) => parse(JSON.stringify(value))

/** A submission in which the member at a dotted path is given as JSON text. */
function withText(path: string, text: string): string {
  const body = structuredClone(valid()) as Record<string, unknown>
  const names = path.split('.')
  let object = body
  for (const name of names.slice(0, -1)) object = object[name] as Record<string, unknown>
  object[names.at(-1)!] = '@@'
  return JSON.stringify(body).replace('"@@"', text)
}

function faultsOf(body: Buffer | string) {
  const parsed = parse(body)
  if (parsed.ok) return []
  return parsed.errors.map(({ path, message }) => `${path} ${message}`)
}

describe('a submission is accepted', () => {
  it('with exactly the six fields', () => {
    expect(parseValue(valid())).toMatchObject({ ok: true, telemetry: valid() })
  })

  it('with extra fields, which are kept', () => {
    const extra = { ...valid(), app: { name: 'x', list: [1, { deep: null }] }, user_id: 'u' }
    expect(parseValue(extra)).toMatchObject({ ok: true, telemetry: extra })
  })

  it.each([
    ['account_id', '"account"'],
    ['occurred_at', '"2026-02-28T23:59:59.123456Z"'],
    ['occurred_at', '"2024-02-29T00:00:00+05:30"'],
    ['occurred_at', '"2024-02-29T00:00:00+0530"'],
    ['occurred_at', '"2024-02-29T00:00Z"'],
    ['occurred_at', '"2024-02-29T00:00:00,5"'],
    ['occurred_at', '"2024-02-29"'],
    ['occurred_at', '"20261125T160000Z"'],
    ['occurred_at', '"2026-06-30T23:59:60Z"'],
    ['occurred_at', '"2026-11-25T16:00:00+01:00[Europe/Paris]"'],
    ['occurred_at', '"yesterday"'],
    ['occurred_at', 'null'],
    ['occurred_at', '1764086400000'],
    ['occurred_at', '{"seconds":1}'],
    ['user_id', 'null'],
    ['user_id', '""'],
    ['account_id', 'null'],
    ['account_id', '""'],
    ['client_ip', 'null'],
    ['client_ip', '""'],
    ['client_ip', '"203.0.113.9"'],
    ['client_ip', '"no address"'],
    ['verdict', 'null'],
    ['verdict', '{"audience":"checkout","nonce":"n"}'],
    ['verdict', '{"audience":"Zahlung 東京 😀","nonce":"n","more":{"a":[1]}}'],
    ['verdict', JSON.stringify({ audience: 'a'.repeat(128), nonce: 'n'.repeat(128) })],
    ['signals.root.unheard', '3.4028235E38'],
    ['signals.root.unheard', '1e16'],
    ['signals.root.unheard', '{"a":[9007199254740993,1e400]}'],
    ['signals.extra', '9007199254740993'],
    ['signals.extra', '-1e400'],
    ['scorer.rasp_score', '1e400'],
    ['extra', '123456789012345678901234567890'],
    ['device_id', JSON.stringify('d'.repeat(256))],
    ['device_id', '"Gerät 東京 😀"'],
    ['device_id', '"\\ud83d\\ude00"'],
    ['sdk_meta.os', '{"version":14}'],
    ['scorer.rasp_score', '-1e-7'],
    ['scorer.extra', '9007199254740990'],
    ['scorer.rasp_flags', '[]'],
    ['scorer.rasp_flags', 'null'],
    ['scorer.rasp_flags', '{"a":{"b":1}}'],
    ['scorer.rasp_score', '"12"'],
    ['scorer.rasp_action', '7'],
    ['scorer', '{}'],
    ['sdk_meta.batch_type', 'null'],
    ['sdk_meta', '{"sdk_version":"1","platform":"ios"}'],
    ['signals.root.never_heard_of', '{"a":[1,2]}'],
    ['signals.future', '{"x":true}'],
    ['signals.emulator.sensor_count', 'null'],
  ])('with %s = %s', (path, text) => {
    expect(faultsOf(withText(path, text))).toEqual([])
  })

  it('nested up to 16 levels', () => {
    const nest = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    expect(faultsOf(withText('extra', nest(15)))).toEqual([])
    expect(faultsOf(withText('extra', nest(16)))).toEqual(['$ is nested deeper than 16 levels'])
  })

  it('with 512 keys in a category, and not with 513', () => {
    const keys = (count: number) =>
      JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at])))
    expect(faultsOf(withText('signals.tamper', keys(512)))).toEqual([])
    expect(faultsOf(withText('signals.tamper', keys(513)))).toEqual([
      '$.signals.tamper has more than 512 keys',
    ])
  })

  it('counting the signals that the catalog does not know', () => {
    const count = (body: string) => {
      const parsed = parse(body)
      return parsed.ok ? parsed.unknownSignals : null
    }
    expect(count(JSON.stringify(valid()))).toBe(0)
    expect(count(withText('signals.root', '{"a":1,"b":null,"su_binary":false}'))).toBe(2)
    expect(count(withText('signals.root', '{"\\u0061":1,"b":null,"su_binary":false}'))).toBe(2)
  })
})

describe('a fault is named by its path', () => {
  it.each(['device_id', 'session_id', 'sdk_meta', 'scorer', 'signals'])('%s missing', (name) => {
    const body: Record<string, unknown> = valid()
    delete body[name]
    expect(faultsOf(JSON.stringify(body))[0]).toBe(`$.${name} is missing`)
  })

  it.each(categories)('signals.%s missing', (name) => {
    const { [name]: _, ...signals } = noSignals()
    const parsed = parseValue({ ...valid(), signals })
    expect(parsed.ok || parsed.errors[0]?.path).toBe(`$.signals.${name}`)
  })

  it.each([
    ['device_id', '""', 'must have at least 1 character'],
    ['device_id', '7', 'must be a string'],
    ['device_id', '"\\u0000"'],
    ['device_id', '"a\\u007fb"'],
    ['session_id', '"a\\nb"', 'must not contain control characters'],
    ['session_id', JSON.stringify('s'.repeat(257)), 'must have at most 256 characters'],
    ['user_id', '7', 'must be a string'],
    ['user_id', '"a\\nb"'],
    ['account_id', '[]'],
    ['client_ip', '7'],
    ['client_ip', '["203.0.113.9"]'],
    ['client_ip', JSON.stringify('1'.repeat(1_000))],
    ['verdict', '""'],
    ['verdict', 'true'],
    ['verdict', '[]'],
    ['sdk_meta', '[]', 'must be an object'],
    ['sdk_meta.platform', '1', 'must be a string'],
    ['sdk_meta.batch_type', '7'],
    ['scorer', '"x"'],
    ['signals', '[]', 'must be an object'],
    ['signals.root', '[]', 'must be an object'],
    ['signals.root', 'null', 'must be an object'],
    ['signals.root.su_binary', '"yes"', 'must be a boolean or null'],
    ['signals.root.su_binary', '1', 'must be a boolean or null'],
    ['signals.emulator.sensor_count', 'true'],
    ['signals.emulator.sensor_count', '9007199254740993'],
    ['signals.emulator.sensor_count', '-1e16'],
    ['signals.emulator.sensor_count', '1e400'],
    ['extra', '"\\ud800"'],
    ['extra', '"\\udc00\\ud800"'],
  ])('%s = %s', (path, text, message = '') => {
    const [fault] = faultsOf(withText(path, text))
    expect(`${fault} `).toContain(`$.${path} ${message}`)
  })

  it.each(['device_id', 'session_id', 'user_id', 'account_id'])(
    '%s that no URL can name',
    (name) => {
      for (const id of ['.', '..']) {
        expect(faultsOf(withText(name, `"${id}"`))).toEqual([
          `$.${name} must not be . or .., which no URL can name`,
        ])
      }
      for (const id of ['...', './', '%2e', ' .']) {
        expect(faultsOf(withText(name, `"${id}"`))).toEqual([])
      }
    },
  )

  it.each([
    ['{"nonce":"n"}', '$.verdict.audience is missing'],
    ['{"audience":"a"}', '$.verdict.nonce is missing'],
    ['{"audience":"","nonce":"n"}', '$.verdict.audience must have at least 1 character'],
    ['{"audience":"a","nonce":7}', '$.verdict.nonce must be a string'],
    ['{"audience":"a","nonce":null}', '$.verdict.nonce must be a string'],
    ['{"audience":"a\\n","nonce":"n"}', '$.verdict.audience must not contain control characters'],
    ['{"audience":"a","nonce":"\\ud800"}', '$.verdict.nonce contains a lone surrogate'],
    [
      JSON.stringify({ audience: 'a', nonce: 'n'.repeat(129) }),
      '$.verdict.nonce must have at most 128 characters',
    ],
    [
      JSON.stringify({ audience: 'a'.repeat(129), nonce: 'n' }),
      '$.verdict.audience must have at most 128 characters',
    ],
  ])('verdict = %s', (text, fault) => {
    expect(faultsOf(withText('verdict', text))).toEqual([fault])
  })

  it.each(['__proto__', 'constructor', 'prototype'])('key %s, at any depth', (name) => {
    const body = JSON.stringify({ ...valid(), x: { y: [{ z: 1 }] } })
    for (const before of ['{"tenant_id', '{"sdk_version', '{"rasp_score', '{"su_binary', '{"z']) {
      const text = body.replace(before, `{"${name}":{},${before.slice(1)}`)
      expect(text).not.toBe(body)
      const [fault, ...others] = faultsOf(text)
      expect(fault).toMatch(new RegExp(`has a key that is not allowed: ${name}$`))
      expect(others).toEqual([])
    }
  })

  it('duplicate keys, at any level and however they are spelled', () => {
    for (const [from, to, path] of [
      ['"device_id":', '"device_id":"x","device_id":', '$.device_id'],
      ['"device_id":', '"device\\u005fid":"x","device_id":', '$.device_id'],
      ['"su_binary":', '"su_binary":false,"su_binary":', '$.signals.root.su_binary'],
      ['"platform":', '"platform":"ios","platform":', '$.sdk_meta.platform'],
      ['"tenant_id":', '"tenant_id":"acme","tenant_id":', '$.tenant_id'],
    ] as const) {
      expect(faultsOf(JSON.stringify(valid()).replace(from, to))).toEqual([
        `${path} is given more than once`,
      ])
    }
    for (const [text, path] of [
      ['[{"a":1,"a":1}]', '$.extra[0].a'],
      ['[[1,[]],{"a":"\\"}"},{"a" : [{}], "b":1,"a" :1}]', '$.extra[2].a'],
      ['{"a":{"b":1},"c":{"b":1},"":2,"":3}', '$.extra.'],
    ]) {
      expect(faultsOf(withText('extra', text!))).toEqual([`${path} is given more than once`])
    }
  })

  it('bytes that are not UTF-8, at any position', () => {
    const body = Buffer.from(withText('extra', '"###"'))
    for (const bytes of ['ff', 'c0af', 'eda080', 'f8888080', '80', 'e28228', 'f4908080', 'c3']) {
      const at = body.indexOf('###')
      const wrong = Buffer.concat([
        body.subarray(0, at),
        Buffer.from(bytes, 'hex'),
        body.subarray(at + 3),
      ])
      expect(faultsOf(wrong), bytes).toEqual([`$ is not valid UTF-8 at byte ${at}, counted from 0`])
    }
  })

  it('and at most 32 faults are listed', () => {
    const root = Object.fromEntries(Object.keys(signalCatalog.root).map((name) => [name, 'x']))
    const text = withText('signals.root', JSON.stringify(root))
    const extra = JSON.stringify(Array.from({ length: 50 }, () => 'x')).replaceAll(
      '"x"',
      '"\\ud800"',
    )
    expect(faultsOf(withText('extra', extra))).toHaveLength(32)
    expect(faultsOf(text).length).toBeGreaterThan(5)
  })
})

describe('a signed body that is not a submission', () => {
  it.each([
    [
      'two tenants',
      '{"tenant_id":"acme","tenant_id":"evil"}',
      '$.tenant_id is given more than once',
    ],
    [
      'two tenants, one escaped',
      '{"tenant_id":"acme","tenant\\u005fid":"evil"}',
      '$.tenant_id is given more than once',
    ],
    [
      'a comma too many',
      '{"tenant_id":"acme",}',
      '$ is not valid JSON at byte 20 of 21, counted from 0',
    ],
    [
      'text after it',
      '{"tenant_id":"acme"} {}',
      '$ is not valid JSON at byte 21 of 23, counted from 0',
    ],
    [
      'a byte order mark',
      '\ufeff{"tenant_id":"acme"}',
      '$ is not valid JSON at byte 0 of 23, counted from 0',
    ],
    [
      'NaN after a letter of two bytes',
      '{"tenant_id":"acme","é":NaN}',
      '$ is not valid JSON at byte 25 of 29, counted from 0',
    ],
    ['cut off', '{"tenant_id":"acme","x', '$ is not valid JSON: it is cut off after 22 bytes'],
  ])('%s', (_name, text, fault) => {
    expect(faultsOf(text)).toEqual([fault])
  })

  it('has at most 4,096 members, at any position', () => {
    const members = (count: number) =>
      JSON.stringify(
        Array.from({ length: count / 50 }, () =>
          Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`k${at}`, 0])),
        ),
      )
    expect(faultsOf(withText('extra', members(4_000)))).toEqual([])
    expect(faultsOf(withText('extra', members(4_100)))).toEqual([
      '$ has more than 4096 members in all',
    ])
  })

  it('has a fault position for every text that JSON.parse rejects, and only for those', () => {
    const whole = JSON.stringify({ ...valid(), more: ['é', -1.5e-7, null, { a: '\n\\' }] })
    const bytes = fc.oneof(
      fc.nat(255),
      fc.constantFrom(...Buffer.from('"\\{}[],:0123456789.eE+-u\n\ttrueflsn')),
    )
    fc.assert(
      fc.property(fc.nat(whole.length), fc.nat(3), fc.array(bytes), (at, drop, more) => {
        const text = Buffer.from(whole)
        const changed = Buffer.concat([
          text.subarray(0, at),
          Buffer.from(more.slice(0, 4)),
          text.subarray(at + drop),
        ])
        fc.pre(isUtf8(changed))
        const fault = findJsonErrorOffset(changed)
        let legal = true
        try {
          JSON.parse(changed.toString('utf8'))
        } catch {
          legal = false
        }
        expect(fault === null).toBe(legal)
        // The fault is where JSON ends: with another byte there, or none, the text may still be
        // JSON.
        if (fault !== null && fault < changed.length) {
          expect(findJsonErrorOffset(changed.subarray(0, fault)) ?? fault).toBe(fault)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('the fast path', () => {
  const odd = fc.oneof(
    fc.constantFrom<unknown>(null, true, false, '', 'x', 0, -1, 1.5, 2 ** 53, -(2 ** 53), 1e300),
    fc.constantFrom<unknown>([], {}, [null], ['a', 1], { a: { b: [] } }, { constructor: 1 }),
    fc.string({ unit: 'binary', maxLength: 5 }).filter((text) => text.isWellFormed()),
    fc.constantFrom(
      'x'.repeat(257),
      'x'.repeat(129),
      '.',
      '..',
      '2026-01-01T00:00:00Z',
      '2026-13-01',
    ),
  )
  const knownSignals = Object.entries(signalCatalog).flatMap(([category, signals]) =>
    Object.keys(signals).map((name) => `signals.${category}.${name}`),
  )
  const path = fc.oneof(
    fc.constantFrom('device_id', 'session_id', 'user_id', 'account_id', 'occurred_at', 'extra'),
    fc.constantFrom('verdict', 'verdict.audience', 'verdict.nonce', 'verdict.more'),
    fc.constantFrom('sdk_meta', 'sdk_meta.sdk_version', 'sdk_meta.platform', 'sdk_meta.more'),
    fc.constantFrom('scorer', 'scorer.rasp_score', 'scorer.rasp_action', 'scorer.rasp_flags'),
    fc.constantFrom('signals', 'signals.more', ...categories.map((name) => `signals.${name}`)),
    fc.constantFrom('signals.root.__proto__', 'prototype', 'signals.root.unheard'),
    fc.constantFrom(...knownSignals),
  )

  it('decides and reports exactly as the schema, for any change', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(path, odd), { maxLength: 3 }), (changes) => {
        const body: Record<string, unknown> = {
          ...valid(),
          verdict: { audience: 'checkout', nonce: 'n-1' },
        }
        for (const [at, value] of changes) change(body, at, value)
        const text = JSON.stringify(body)
        // A body with an escape anywhere is validated by the schema.
        const long = text.replace('"acme"', '"\\u0061cme"')
        expect(scanBody(Buffer.from(long)).unicodeEscape).toBe(true)
        expect(parse(text)).toEqual(parse(long))
      }),
      { numRuns: 1_000 },
    )
  })

  function change(body: Record<string, unknown>, at: string, value: unknown): void {
    const names = at.split('.')
    let object: unknown = body
    for (const name of names.slice(0, -1)) object = (object as Record<string, unknown>)?.[name]
    if (typeof object !== 'object' || object === null) return
    const name = names.at(-1)!
    // A copy: the next run must not see what this one writes.
    const own = { value: structuredClone(value), enumerable: true, configurable: true }
    Object.defineProperty(object, name, own)
  }
})
