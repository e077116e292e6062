/**
 * What an adapter is given by mistake is a `TypeError` that names adapter, argument and what is
 * expected: mapped to nothing it would look like a phone without any finding.
 */
import { describe, expect, it } from 'vitest'
import * as client from '../../../shared/client/exports.ts'

type Adapter = (...args: never[]) => unknown

/** Every adapter with a right call of it, and whether null says "not measured". */
const adapters: Record<string, { right: unknown[]; takesNull?: true }> = {
  fromAppAttest: { right: [{ attestationValid: true }] },
  fromAppdome: { right: [{ platform: 'ios', events: [] }] },
  fromFingerprint: { right: [{ platform: 'ios', event: null }] },
  fromFlutterRasp: { right: [{ platform: 'ios', threats: [] }] },
  fromFreeRasp: { right: [{ platform: 'ios', threats: [] }] },
  fromHuaweiSysIntegrity: { right: [{ basicIntegrity: true }], takesNull: true },
  fromIncognia: { right: [{ platform: 'ios', deviceIntegrity: null }] },
  fromIosSecuritySuite: { right: [{ amIDebugged: false }] },
  fromJailMonkey: { right: [{ platform: 'ios', isJailBroken: false }] },
  fromPlayIntegrity: { right: [{ deviceIntegrity: {} }], takesNull: true },
  fromRootBeer: { right: [{ isRooted: false }] },
  fromSardine: { right: [{ platform: 'ios', signals: null }] },
  fromFields: { right: [{}, {}], takesNull: true },
  mergeSignals: { right: [{ root: {} }] },
}

class Native {
  #isRooted = true
  isRooted() {
    return this.#isRooted
  }
}

const wrong: [what: string, value: unknown, says: string][] = [
  ['undefined', undefined, 'not undefined'],
  ['null', null, 'not null'],
  ['a promise', Promise.resolve({}), 'a promise: await it'],
  ['a function', () => ({}), 'a function: call it'],
  ['an array', [{}], 'not an array'],
  ['a text', 'eyJhbGciOi.e30.e30', 'not a string'],
  ['JSON as text', ' {"isRooted":false}', 'not a string: parse it'],
  ['a number', 7, 'not a number'],
  ['a boolean', true, 'not a boolean'],
  ['a Map', new Map(), 'the type Map'],
  ['an error', new Error('no'), 'the type Error'],
  ['bytes', new Uint8Array(3), 'the type Uint8Array'],
]

const byName: Record<string, unknown> = { ...client }

const call = (name: string, ...args: unknown[]): unknown =>
  (byName[name] as Adapter)(...(args as never[]))

const errorOf = (name: string, ...args: unknown[]): string => {
  try {
    call(name, ...args)
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return (error as TypeError).message
  }
  return 'no error'
}

describe.each(Object.entries(adapters))('%s', (name, { right, takesNull }) => {
  it('takes a right report', () => {
    expect(call(name, ...right)).toBeTypeOf('object')
  })

  it.each(wrong)('says what is expected when it gets %s', (_, value, says) => {
    if (takesNull && (value === null || (name === 'fromFields' && value === undefined))) {
      expect(call(name, value, ...right.slice(1))).toEqual({})
      return
    }
    const message = errorOf(name, value, ...right.slice(1))
    expect(message).toMatch(new RegExp(`^${name}: (report|payload|part 1)`))
    expect(message).toContain(says)
    expect(message).toContain('must be an object, ')
  })

  // A table of one's own reads any object.
  const others = name === 'fromFields' ? [] : [new Native(), { answer: 42 }]
  it('reads nothing of an object of another kind', () => {
    for (const value of others) {
      expect(errorOf(name, value)).toMatch(new RegExp(`^${name}: .*must be`))
    }
  })
})

it('every adapter of the package is here', () => {
  const names = Object.keys(client).filter((name) => /^from|^merge/.test(name))
  expect(names.sort()).toEqual(Object.keys(adapters).sort())
})

describe('a member of another kind is named', () => {
  const promise = Promise.resolve(true)
  it.each<[adapter: string, args: unknown[], says: string]>([
    [
      'fromJailMonkey',
      [{ platform: 'android', isDebuggedMode: promise }],
      'fromJailMonkey: report.isDebuggedMode must be a boolean, not a promise: await it',
    ],
    [
      'fromJailMonkey',
      [{ platform: 'Android' }],
      "fromJailMonkey: report.platform must be 'android' or 'ios', not 'Android'",
    ],
    [
      'fromJailMonkey',
      [{ platform: 'ios', isJailBroken: () => true }],
      'report.isJailBroken must be a boolean, not a function: call it',
    ],
    ['fromRootBeer', [{ isRooted: 'true' }], 'report.isRooted must be a boolean, not a string'],
    ['fromFreeRasp', [{ platform: 'ios' }], 'fromFreeRasp: report.threats is missing'],
    [
      'fromFreeRasp',
      [{ platform: 'ios', threats: 'hooks' }],
      'report.threats must be an array of names, not a string',
    ],
    ['fromFreeRasp', [{ platform: 'ios', threats: [{ name: 'hooks' }] }], 'an array of names'],
    [
      'fromAppdome',
      [{ platform: 'ios', events: null }],
      'fromAppdome: report.events must not be null',
    ],
    [
      'fromFlutterRasp',
      [{ platform: 'ios', threats: { root: 'yes' } }],
      'report.threats.root must be a boolean, not a string',
    ],
    ['fromFingerprint', [{ platform: 'ios' }], 'report.event is missing'],
    ['fromSardine', [{ platform: 'ios', signals: {} }], 'report.signals must be an array'],
    [
      'fromIosSecuritySuite',
      [{ jailbreak: true }],
      'report.jailbreak must be an object, not a boolean',
    ],
    [
      'fromIosSecuritySuite',
      [{ tampering: { checked: [] } }],
      'report.tampering.hitChecks is missing',
    ],
    ['fromPlayIntegrity', [{ token: 'eyJ.e.e.e.e' }], 'it has none of requestDetails'],
    ['fromPlayIntegrity', [{ tokenPayloadExternal: 'e30' }], 'must be an object'],
    [
      'fromPlayIntegrity',
      [{ deviceIntegrity: {} }, { requestPackageName: 'com.example.app' }],
      'fromPlayIntegrity: expected must be what your server asked for; it has none of packageName',
    ],
    ['mergeSignals', [{ root: {} }, undefined], 'mergeSignals: part 2 must be an object'],
    ['mergeSignals', [[{ root: {} }]], 'mergeSignals: part 1 must be an object'],
    ['mergeSignals', [{ isRooted: true }], 'it has none of root'],
    ['mergeSignals', [{ root: true }], 'part 1.root must be an object, not a boolean'],
    ['fromFields', [{}, 'root.rooted'], 'fromFields: fields must be an object'],
  ])('%s %j', (adapter, args, says) => {
    expect(errorOf(adapter, ...args)).toContain(says)
  })
})
