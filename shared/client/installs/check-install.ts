/** Checks what a caller passes to the registration of an install, before anything is sent. */
import {
  callOptionNames,
  checkCallOptions,
  checkInstallCredentials,
  checkNames,
  checkSecret,
  describe,
  fail,
  isPromise,
  toIngestAddress,
} from '../check-arguments.ts'
import type { Install, InstallEvidence } from './install-types.ts'

const challengePath = '/v1/rasp/challenge'
const installsPath = '/v1/rasp/installs'

/**
 * Checks the options of `fetchChallenge`.
 * @returns the address of the challenge
 * @throws TypeError with the option's name
 */
export function checkChallengeOptions(options: unknown): string {
  const values = checkNames('options', options, callOptionNames)
  const address = toIngestAddress(values.ingestUrl, challengePath)
  checkCallOptions(values)
  return address
}

const registerNames = [
  ...callOptionNames,
  'tenantId',
  'deviceId',
  'hmacSecret',
  'app',
  'deviceModel',
  'getEvidence',
  'challenge',
  'evidence',
]

/**
 * Checks the options of `registerInstall`.
 * @returns the address that a registration is posted to
 * @throws TypeError with the option's name
 */
export function checkRegisterOptions(options: unknown): string {
  const values = checkNames('options', options, registerNames)
  const address = checkRegistration(values)
  const { getEvidence, challenge, evidence } = values
  if (getEvidence !== undefined) {
    const other = challenge === undefined ? 'evidence' : 'challenge'
    if ((challenge ?? evidence) !== undefined) {
      fail(other, 'must not be given with getEvidence, which makes evidence for a new challenge')
    }
    checkFunction('getEvidence', getEvidence)
    return address
  }
  if (challenge === undefined && evidence === undefined) {
    fail('getEvidence', "is undefined: it makes the evidence, or returns { provider: 'none' }")
  }
  checkText('challenge', challenge, 'the challenge that the evidence is for')
  checkEvidence('evidence', evidence)
  checkAppOf(values.app, evidence)
  return address
}

const keepingNames = ['deviceId', 'install', 'onInstall', 'nowMs']
/** What an app that registers through its own server does not have. */
const registeringNames = ['tenantId', 'hmacSecret', 'app', 'deviceModel', 'getEvidence']

/**
 * Checks the options of `createInstallSender`.
 * @throws TypeError with the option's name
 */
export function checkSenderOptions(options: unknown): void {
  const names = [...callOptionNames, ...keepingNames, ...registeringNames, 'register']
  const values = checkNames('options', options, names)
  if (values.register === undefined) {
    checkRegistration(values)
    checkFunction('getEvidence', values.getEvidence)
  } else {
    const other = registeringNames.find((name) => values[name] !== undefined)
    if (other !== undefined) fail(other, 'must not be given with register, which registers')
    toIngestAddress(values.ingestUrl)
    checkText('deviceId', values.deviceId, 'the device id of the telemetry')
    checkCallOptions(values)
  }
  for (const name of ['register', 'onInstall', 'nowMs']) {
    if (values[name] !== undefined) checkFunction(name, values[name])
  }
  if (values.install !== undefined) checkInstall('install', values.install)
}

function checkRegistration(values: Record<string, unknown>): string {
  const address = toIngestAddress(values.ingestUrl, installsPath)
  checkText('tenantId', values.tenantId, "the tenant's name")
  checkText('deviceId', values.deviceId, 'the device id of the telemetry')
  checkSecret('hmacSecret', values.hmacSecret, 'hmac')
  if (values.app !== undefined) checkApp(values.app)
  if (values.deviceModel !== undefined) {
    checkText('deviceModel', values.deviceModel, "the phone's model")
  }
  checkCallOptions(values)
  return address
}

function checkApp(app: unknown): void {
  if (typeof app !== 'object' || app === null) {
    fail('app', `must be an object with platform and id, not ${describe(app)}`)
  }
  const { platform, id } = app as { platform?: unknown; id?: unknown }
  if (platform !== 'android' && platform !== 'ios') fail('app.platform', 'must be android or ios')
  checkText('app.id', id, 'the package name or the bundle id')
}

/**
 * Checks that evidence says which app it is of.
 * @throws TypeError with the option's name
 */
export function checkAppOf(app: unknown, { provider }: InstallEvidence): void {
  if (app !== undefined || provider === 'none') return
  fail('app', 'is undefined: evidence is of an app, { platform, id }')
}

/**
 * Checks an install that the caller kept, or that its server registered.
 * @throws TypeError with the argument's name
 */
export function checkInstall(name: string, install: unknown): asserts install is Install {
  if (typeof install !== 'object' || install === null || isPromise(install)) {
    fail(name, `must be what registerInstall returned, not ${describe(install)}`)
  }
  const { installToken, installKey, expiresAt } = install as Record<string, unknown>
  if (installToken === undefined) fail(name, 'must be what registerInstall returned')
  checkInstallCredentials(name, { token: installToken, key: installKey })
  if (typeof expiresAt !== 'string' || Number.isNaN(Date.parse(expiresAt))) {
    fail(`${name}.expiresAt`, 'must be an instant in ISO-8601')
  }
}

const evidenceProviders = ['key_attestation', 'app_attest', 'play_integrity', 'none']

/**
 * Checks that evidence has the form of its provider. What it proves is the service's to judge.
 * @throws TypeError with the argument's name
 */
export function checkEvidence(
  name: string,
  evidence: unknown,
): asserts evidence is InstallEvidence {
  if (typeof evidence !== 'object' || evidence === null || Array.isArray(evidence)) {
    fail(name, `must be an object with a provider, not ${describe(evidence)}`)
  }
  if (isPromise(evidence)) fail(name, 'is a promise: await it')
  const { provider, chain, key_id, attestation, token } = evidence as Record<string, unknown>
  if (!evidenceProviders.includes(provider as string)) {
    fail(`${name}.provider`, `must be one of ${evidenceProviders.join(', ')}`)
  }
  if (provider === 'key_attestation') {
    if (!Array.isArray(chain) || chain.length === 0) {
      fail(`${name}.chain`, 'must be an array of certificates in base64, leaf first')
    }
    chain.forEach((one, index) => {
      checkText(`${name}.chain[${index}]`, one, 'base64 of a certificate in DER')
    })
  }
  if (provider === 'app_attest') {
    checkText(`${name}.key_id`, key_id, 'the key id that generateKey returned')
    checkText(`${name}.attestation`, attestation, 'base64 of what attestKey returned')
  }
  if (provider === 'play_integrity')
    checkText(`${name}.token`, token, 'the token of Play Integrity')
}

function checkText(name: string, value: unknown, meaning: string): asserts value is string {
  if (value === undefined || value === '') {
    fail(name, `is ${value === '' ? 'empty' : value}: it must be ${meaning}`)
  }
  if (typeof value !== 'string') fail(name, `must be a string, not ${describe(value)}`)
}

function checkFunction(name: string, value: unknown): void {
  if (typeof value !== 'function') fail(name, `must be a function, not ${describe(value)}`)
}
