/**
 * Checks webhook deliveries over the raw body: `X-Service-Signature` of the public interface, and
 * the Standard Webhooks headers, which also cover the id and the time. It asks for each HMAC by a
 * `yield`, so that one check serves runtimes that answer at once and those that answer later.
 */
import {
  webhookSecretsMax,
  webhookSignaturesMax,
  webhookToleranceSeconds,
} from '#shared/core/base/limits/client.ts'
import { signaturePattern } from '#shared/core/telemetry/signature-pattern.ts'
import {
  checkClock,
  checkNames,
  checkNumber,
  checkSecret,
  describe,
  fail,
  toBytes,
  webhookSecretPrefix,
} from './check-arguments.ts'
import { WebhookVerificationError } from './errors.ts'
import type { Alert } from './service-types.ts'

/** Headers as Node, Fetch or a framework has them; names in any case. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

export type VerifyOptions = {
  /** How far the signed time may be from now, in seconds; 300 unless given. */
  toleranceSeconds?: number
  /**
   * Whether a delivery without the Standard Webhooks signature is refused. Only that one is signed
   * with its time, so only it ends replays. Off unless given.
   */
  requireTimestamp?: boolean
  /** The receiver's clock in ms since 1970; the system's unless given. */
  nowMs?: number
}

/** A genuine delivery. */
export type WebhookDelivery = {
  /** `risk.alert`, or `webhook.test` for a test event. */
  event: string
  alert: Alert
  /** The same on every retry. Store it under a unique key, since deliveries repeat. */
  deliveryId: string | null
  /** The signed time of this attempt in ms; null when only `X-Service-Signature` was there. */
  signedAtMs: number | null
}

/** What a delivery is verified with. */
export type WebhookArguments = {
  rawBody: Uint8Array | ArrayBuffer | string
  headers: WebhookHeaders
  secret: string | readonly string[]
  options: VerifyOptions
}

/** A question: is the HMAC-SHA256 of `data` with `key` one of `macs`? Ask it in constant time. */
export type MacQuestion = {
  key: Uint8Array<ArrayBuffer>
  data: Uint8Array<ArrayBuffer>
  /** Each of 32 bytes. */
  macs: readonly Uint8Array<ArrayBuffer>[]
}

/**
 * Checks a delivery. Every signature that is there must be genuine, by one of the secrets.
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws WebhookVerificationError when the delivery must not be acted on
 */
export function* checkWebhook(
  given: WebhookArguments,
): Generator<MacQuestion, WebhookDelivery, boolean> {
  const { body, header, secrets, options } = checkArguments(given)
  const service = header('x-service-signature')
  const standard = header('webhook-signature')
  if (service === undefined && standard === undefined) throw fault('unsigned')
  if (standard === undefined && options.requireTimestamp === true) throw fault('unstamped')
  const stamp = standard === undefined ? null : readStamp(header, standard)
  let genuine = false
  for (const secret of secrets) {
    const hasService = service === undefined || (yield toServiceQuestion(secret, body, service))
    const hasStandard = stamp === null || (yield toStandardQuestion(secret, body, stamp))
    genuine ||= hasService && hasStandard
  }
  if (!genuine) {
    const isOther = secrets.every((secret) => !secret.startsWith(webhookSecretPrefix))
    throw new WebhookVerificationError('forged', isOther ? otherSecretHint : undefined)
  }
  // After the signature, to tell an old delivery from a forged one.
  if (stamp !== null) checkTime(stamp.atSeconds, options)
  return {
    event: header('x-service-event') ?? 'risk.alert',
    alert: parseAlert(body),
    deliveryId: stamp === null ? (header('x-service-delivery') ?? null) : stamp.id,
    signedAtMs: stamp === null ? null : stamp.atSeconds * 1000,
  }
}

const fault = (name: ConstructorParameters<typeof WebhookVerificationError>[0]) =>
  new WebhookVerificationError(name)

const otherSecretHint = `a webhook secret begins with ${webhookSecretPrefix}, and this one does not`

const rawBodyAdvice =
  'pass the raw body, bytes or text from before any JSON parser (express.raw(), request.text())'

function checkArguments({ rawBody, headers, secret, options }: WebhookArguments) {
  const body = toBytes('rawBody', rawBody, rawBodyAdvice)
  const isObject = typeof headers === 'object' && headers !== null
  if (!isObject || Array.isArray(headers)) {
    fail('headers', `must be the request's headers (request.headers), not ${describe(headers)}`)
  }
  const secrets: readonly string[] = Array.isArray(secret) ? secret : [secret as string]
  if (secrets.length === 0) fail('secret', 'is an empty list: pass the webhook secret')
  if (secrets.length > webhookSecretsMax) {
    fail('secret', `has more than ${webhookSecretsMax} entries: drop those that were rotated away`)
  }
  for (const [index, entry] of secrets.entries()) {
    checkSecret(Array.isArray(secret) ? `secret[${index}]` : 'secret', entry, 'webhook')
  }
  checkNames('options', options, ['toleranceSeconds', 'requireTimestamp', 'nowMs'])
  checkNumber('toleranceSeconds', options.toleranceSeconds, { min: 0, unit: 'seconds' })
  checkClock(options.nowMs)
  return { body, header: toReader(headers), secrets, options }
}

type ReadHeader = (name: string) => string | undefined

function toReader(headers: WebhookHeaders): ReadHeader {
  const { get } = headers
  if (typeof get === 'function') return (name) => get.call(headers, name) ?? undefined
  const byName = new Map<string, string>()
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') byName.set(name.toLowerCase(), value)
    else if (Array.isArray(value)) byName.set(name.toLowerCase(), value.join(', '))
  }
  return (name) => byName.get(name)
}

type Stamp = { id: string; atText: string; atSeconds: number; signatures: string[] }

/** Reads the headers of Standard Webhooks. Versions other than `v1` are ignored. */
function readStamp(header: ReadHeader, listed: string): Stamp {
  const id = header('webhook-id') ?? ''
  const atText = header('webhook-timestamp') ?? ''
  // A dot in the id or the time could move bytes between id, time and body.
  if (!/^[^.\s]+$/.test(id) || !/^\d{1,12}$/.test(atText)) throw fault('forged')
  const signatures = listed
    .split(' ', webhookSignaturesMax)
    .map((entry) => (entry.startsWith('v1,') ? entry.slice(3) : ''))
  return { id, atText, atSeconds: Number(atText), signatures }
}

const encode = (text: string) => new TextEncoder().encode(text)

function toServiceQuestion(
  secret: string,
  data: Uint8Array<ArrayBuffer>,
  signature: string,
): MacQuestion {
  return { key: encode(secret), data, macs: toMacs([signature]) }
}

/** One genuine signature of the list is enough, as the specification says. */
function toStandardQuestion(
  secret: string,
  body: Uint8Array<ArrayBuffer>,
  { id, atText, signatures }: Stamp,
): MacQuestion {
  const head = encode(`${id}.${atText}.`)
  const data = new Uint8Array(head.length + body.length)
  data.set(head)
  data.set(body, head.length)
  const key = decodeBase64(
    secret.startsWith(webhookSecretPrefix) ? secret.slice(webhookSecretPrefix.length) : secret,
  )
  return { key, data, macs: toMacs(signatures) }
}

const toMacs = (signatures: readonly string[]) =>
  signatures.filter((text) => signaturePattern.test(text)).map(decodeBase64)

/** Decodes both alphabets, with or without padding; other characters are left out. */
function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const plain = text
    .replaceAll('-', '+')
    .replaceAll('_', '/')
    .replace(/[^A-Za-z0-9+/]/g, '')
  const whole = plain.length % 4 === 1 ? plain.slice(0, -1) : plain
  return Uint8Array.from(atob(whole), (character) => character.charCodeAt(0))
}

function checkTime(
  atSeconds: number,
  { nowMs = Date.now(), toleranceSeconds = webhookToleranceSeconds }: VerifyOptions,
): void {
  if (Math.abs(nowMs / 1000 - atSeconds) > toleranceSeconds) throw fault('stale')
}

function parseAlert(body: Uint8Array): Alert {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Alert
  } catch {
    // Below.
  }
  throw fault('unreadable')
}
