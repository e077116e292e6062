/**
 * Checks what a caller passes, before anything is sent or verified. Each mistake is a `TypeError`
 * that begins with the name of the argument and says what to do. None shows a value that could be
 * a secret.
 */
import { secretCharactersMin } from '#shared/core/base/limits/client.ts'

/** What a webhook secret of the service begins with. */
export const webhookSecretPrefix = 'whsec_'

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
  if (secret.length < secretCharactersMin) {
    fail(name, `is too short: a secret has at least ${secretCharactersMin} characters`)
  }
}

const ingestPath = '/v1/rasp/ingest'

/**
 * Checks the address of ingest.
 * @returns the address that telemetry is posted to
 * @throws TypeError with the option's name
 */
export function toIngestAddress(ingestUrl: unknown): string {
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
  if (start.endsWith(ingestPath)) fail(name, `must end before ${ingestPath}, which is added to it`)
  return `${start}${ingestPath}`
}

function parseUrl(text: string): URL | null {
  try {
    const url = new URL(text)
    return /^https?:\/\/[^/]/i.test(text) && text.trim() === text ? url : null
  } catch {
    return null
  }
}

/** The options of `sendTelemetry`; another name is a mistake, and would be ignored otherwise. */
const sendOptionNames = [
  'ingestUrl',
  'hmacSecret',
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
  const values = checkNames('options', options, sendOptionNames)
  const address = toIngestAddress(values.ingestUrl)
  checkSecret('hmacSecret', values.hmacSecret, 'hmac')
  checkNumber('attemptsMax', values.attemptsMax, { min: 1, whole: true })
  checkNumber('attemptTimeoutMs', values.attemptTimeoutMs, { min: 1, unit: 'ms' })
  checkNumber('deadlineMs', values.deadlineMs, { min: 1, unit: 'ms' })
  const { signal, fetch } = values
  if (signal !== undefined && !isSignal(signal)) {
    const isController = isSignal((signal as { signal?: unknown } | null)?.signal)
    fail('signal', isController ? 'is an AbortController: pass its signal' : notA('AbortSignal'))
  }
  if (fetch !== undefined && typeof fetch !== 'function') fail('fetch', 'must be a function')
  if (fetch === undefined && typeof globalThis.fetch !== 'function') {
    fail('fetch', 'must be given: this runtime has none')
  }
  return address
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
