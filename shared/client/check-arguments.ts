/**
 * Checks what a caller passes, before anything is sent or verified. Each mistake is a `TypeError`
 * that begins with the name of the argument and says what to do. None shows a value that could be
 * a secret.
 */
import {
  evidenceHeaderCharactersMax,
  installKeyCharacters,
  secretCharactersMin,
} from '#shared/core/base/limits/client.ts'
import { installTokenCharactersMax } from '#shared/core/base/limits/installs.ts'

/** What a webhook secret of the service begins with. */
export const webhookSecretPrefix = 'whsec_'

/** What an install token begins with. */
const installTokenPrefix = 'ins1.'

/**
 * Checks the text of a secret: that it is there, as it was given out.
 * @throws TypeError with the argument's name
 */
export function checkSecretText(name: string, secret: unknown): asserts secret is string {
  if (secret === undefined || secret === null || secret === '') {
    fail(name, `is ${secret === '' ? 'empty' : secret}: is its environment variable set?`)
  }
  if (typeof secret !== 'string') fail(name, `must be a string, not ${describe(secret)}`)
  if (secret.trim() !== secret) {
    fail(name, 'has white space around it: trim what you read from a file')
  }
  if (/^["'`]|["'`]$/.test(secret)) fail(name, 'has quotes around it: remove them')
}

/**
 * Checks a secret of the service by its form alone.
 * @throws TypeError with the argument's name
 */
export function checkSecret(name: string, secret: unknown, kind: 'hmac' | 'webhook'): void {
  checkSecretText(name, secret)
  if (secret.startsWith('dpk_')) {
    fail(name, 'is the public API key; it reads alerts, and signs and verifies nothing')
  }
  if (kind === 'hmac' && secret.startsWith(webhookSecretPrefix)) {
    fail(name, 'is the webhook secret; telemetry needs the HMAC secret')
  }
  if (kind === 'hmac' && secret.startsWith(installTokenPrefix)) {
    fail(name, 'is an install token; pass it as install.token, with install.key')
  }
  if (secret.length < secretCharactersMin) {
    fail(name, `is too short: a secret has at least ${secretCharactersMin} characters`)
  }
}

/**
 * Checks an install token and its key by their forms alone.
 * @param name the option that has them
 * @throws TypeError with the option's name
 */
export function checkInstallCredentials(name: string, install: unknown): void {
  if (typeof install !== 'object' || install === null || Array.isArray(install)) {
    fail(name, `must be an object with token and key, not ${describe(install)}`)
  }
  if ('installToken' in install) {
    fail(name, 'must be { token, key }: pass installToken and installKey by these names')
  }
  const unknown = Object.keys(install).find((key) => key !== 'token' && key !== 'key')
  if (unknown !== undefined) fail(`${name}.${unknown.slice(0, 40)}`, 'is not one of token, key')
  const { token, key } = install as { token?: unknown; key?: unknown }
  checkSecretText(`${name}.token`, token)
  checkSecretText(`${name}.key`, key)
  if (!token.startsWith(installTokenPrefix)) {
    fail(`${name}.token`, `must begin with ${installTokenPrefix}, as the registration gave it`)
  }
  if (token.length > installTokenCharactersMax || !/^[\w.-]+$/.test(token)) {
    fail(`${name}.token`, 'is not as the registration gave it')
  }
  if (key.startsWith(installTokenPrefix)) {
    fail(`${name}.key`, 'is an install token; the key is the other value of the registration')
  }
  if (key.length !== installKeyCharacters || !/^[\w-]+$/.test(key)) {
    fail(`${name}.key`, `must be the ${installKeyCharacters} characters of the registration`)
  }
}

/**
 * Checks the text of evidence for a header: base64 of either alphabet, or a compact token.
 * @throws TypeError with the argument's name
 */
export function checkEvidenceText(name: string, text: unknown): asserts text is string {
  if (typeof text !== 'string') {
    const advice = isPromise(text) ? ': await it' : ''
    fail(name, `must be base64 or a token, not ${describe(text)}${advice}`)
  }
  if (text === '') fail(name, 'is empty: leave it out where there is no evidence')
  if (!/^[\w+/.=-]+$/.test(text)) fail(name, 'must be base64 or a token, without white space')
  if (text.length > evidenceHeaderCharactersMax) {
    fail(name, `is too long: at most ${evidenceHeaderCharactersMax} characters`)
  }
}

const ingestPath = '/v1/rasp/ingest'
/** What a wrong address may end with: the paths of ingest. */
const ownPaths = [ingestPath, '/v1/rasp/installs', '/v1/rasp/challenge']

/**
 * Checks the address of ingest.
 * @returns the address that telemetry is posted to, or that of another path
 * @throws TypeError with the option's name
 */
export function toIngestAddress(ingestUrl: unknown, path = ingestPath): string {
  const name = 'ingestUrl'
  if (ingestUrl === undefined || ingestUrl === null || ingestUrl === '') {
    fail(name, `is ${ingestUrl === '' ? 'empty' : ingestUrl}: is its environment variable set?`)
  }
  if (typeof ingestUrl !== 'string') {
    fail(name, `must be a string, not ${describe(ingestUrl)}; of a URL take its href`)
  }
  const url = parseUrl(ingestUrl)
  if (url === null) {
    fail(name, 'must begin with https:// or http://, such as https://ingest.example.com')
  }
  if (url.username !== '' || url.password !== '') fail(name, 'must have no user and no password')
  if (/[?#]/.test(ingestUrl)) fail(name, 'must have no query and no fragment')
  const start = ingestUrl.replace(/\/$/, '')
  const own = ownPaths.find((one) => start.endsWith(one))
  if (own !== undefined) fail(name, `must end before ${own}, which is added to it`)
  return `${start}${path}`
}

function parseUrl(text: string): URL | null {
  try {
    const url = new URL(text)
    return /^https?:\/\/[^/]/i.test(text) && text.trim() === text ? url : null
  } catch {
    return null
  }
}

/** Options of every call; another name is a mistake, and would be ignored otherwise. */
export const callOptionNames = [
  'ingestUrl',
  'attemptsMax',
  'attemptTimeoutMs',
  'deadlineMs',
  'signal',
  'fetch',
]

/**
 * Checks the options of `sendTelemetry`.
 * @returns the address that telemetry is posted to
 * @throws TypeError with the option's name
 */
export function checkSendOptions(options: unknown): string {
  const names = [...callOptionNames, 'hmacSecret', 'install', 'attestation']
  const values = checkNames('options', options, names)
  const address = toIngestAddress(values.ingestUrl)
  checkSigner(values)
  checkCallOptions(values)
  return address
}

/**
 * Checks the options of `sendBatch`, which a server sends for many devices.
 * @returns the address of telemetry, without `/batch`
 * @throws TypeError with the option's name
 */
export function checkBatchOptions(options: unknown): string {
  const { install } = (options ?? {}) as { install?: unknown }
  if (install !== undefined) {
    fail('install', 'signs telemetry of one device: send each with sendTelemetry')
  }
  const values = checkNames('options', options, [...callOptionNames, 'hmacSecret', 'install'])
  const address = toIngestAddress(values.ingestUrl)
  checkSecret('hmacSecret', values.hmacSecret, 'hmac')
  checkCallOptions(values)
  return address
}

function checkSigner({ hmacSecret, install, attestation }: Record<string, unknown>): void {
  if (install === undefined) {
    if (attestation !== undefined) fail('attestation', 'needs install: its key is the attested one')
    checkSecret('hmacSecret', hmacSecret, 'hmac')
    return
  }
  if (hmacSecret !== undefined) {
    fail('hmacSecret', 'must not be given with install: the key of the install signs')
  }
  checkInstallCredentials('install', install)
  if (attestation !== undefined && typeof attestation !== 'function') {
    checkEvidenceText('attestation', attestation)
  }
}

/**
 * Checks the options that every call has, but for the address.
 * @throws TypeError with the option's name
 */
export function checkCallOptions(values: Record<string, unknown>): void {
  checkNumber('attemptsMax', values.attemptsMax, { min: 1, whole: true })
  checkNumber('attemptTimeoutMs', values.attemptTimeoutMs, { min: 1, unit: 'ms' })
  checkNumber('deadlineMs', values.deadlineMs, { min: 1, unit: 'ms' })
  const { signal, fetch } = values
  checkSignal('signal', signal)
  if (fetch !== undefined && typeof fetch !== 'function') fail('fetch', 'must be a function')
  if (fetch === undefined && typeof globalThis.fetch !== 'function') {
    fail('fetch', 'must be given: this runtime has none')
  }
}

/** Checks an optional `AbortSignal`. */
export function checkSignal(name: string, signal: unknown): void {
  if (signal === undefined || isSignal(signal)) return
  const isController = isSignal((signal as { signal?: unknown } | null)?.signal)
  fail(name, isController ? 'is an AbortController: pass its signal' : notA('AbortSignal'))
}

const notA = (type: string) => `must be an ${type}`

function isSignal(value: unknown): boolean {
  const signal = value as { aborted?: unknown; addEventListener?: unknown } | null | undefined
  return typeof signal?.aborted === 'boolean' && typeof signal.addEventListener === 'function'
}

/** Checks that every member of an object of options is known. */
export function checkNames(
  name: string,
  options: unknown,
  known: readonly string[],
): Record<string, unknown> {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    fail(name, `must be an object, not ${describe(options)}`)
  }
  const unknown = Object.keys(options).find((key) => !known.includes(key))
  if (unknown !== undefined) {
    fail(unknown.slice(0, 40), `is not an option; there are ${known.join(', ')}`)
  }
  return options as Record<string, unknown>
}

type NumberRule = { min: number; unit?: string; whole?: boolean }

/** Checks an optional number. `Infinity` is "without a limit". */
export function checkNumber(name: string, value: unknown, { min, unit, whole }: NumberRule): void {
  if (value === undefined) return
  const isWhole = whole !== true || value === Infinity || Number.isInteger(value)
  if (typeof value === 'number' && value >= min && isWhole) return
  const noun = `${whole === true ? 'a whole number' : 'a number'}${unit ? ` of ${unit}` : ''}`
  fail(name, `must be ${noun}, ${min} or more`)
}

/** Any clock that counts in ms is beyond this, 2001-09-09, and one that counts in s below. */
const clockMsMin = 1e12

/** Checks an optional clock. */
export function checkClock(nowMs: unknown): void {
  if (nowMs === undefined || (typeof nowMs === 'number' && nowMs >= clockMsMin)) return
  fail('nowMs', 'must be a number of ms since 1970, such as Date.now()')
}

/**
 * The bytes of a body; text becomes UTF-8.
 * @param advice what to do when it is an object
 * @throws TypeError with the argument's name
 */
export function toBytes(name: string, body: unknown, advice: string): Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  // By what they are, not by their class: a test runner may have classes of its own.
  if (ArrayBuffer.isView(body)) {
    return Uint8Array.from(new Uint8Array(body.buffer, body.byteOffset, body.byteLength))
  }
  if (toTag(body) === 'ArrayBuffer') return new Uint8Array(body as ArrayBuffer).slice()
  fail(name, `is ${describe(body)}: ${isPromise(body) ? 'await it' : advice}`)
}

const toTag = (value: unknown) => Object.prototype.toString.call(value).slice(8, -1)

export function isPromise(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

/** What a value is, for a person; never what it holds. */
export function describe(value: unknown): string {
  if (value === undefined || value === null) return String(value)
  if (isPromise(value)) return 'a promise'
  if (Array.isArray(value)) return 'an array'
  if (typeof value !== 'object') return `a ${typeof value}`
  const tag = toTag(value)
  return tag === 'Object' ? 'an object' : `a value of the type ${tag}`
}

/** @throws TypeError always */
export function fail(name: string, problem: string): never {
  throw new TypeError(`${name} ${problem}`)
}
