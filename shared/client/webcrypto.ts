/**
 * The same client for runtimes without Node's modules, such as Workers and Deno: it needs `fetch`
 * and WebCrypto (`crypto.subtle`). What signs or verifies is asynchronous.
 */
import { checkSecretText, toBytes } from './check-arguments.ts'
import {
  type InstallSender,
  type InstallSenderOptions,
  makeInstallSender,
} from './installs/install-sender.ts'
import type { Challenge, Install, RegisterOptions } from './installs/install-types.ts'
import { fetchChallenge as getChallenge, registerSigned } from './installs/register-install.ts'
import {
  type InstallSendOptions,
  type SendOptions,
  sendSigned,
  sendSignedBatch,
} from './send-telemetry.ts'
import type { CallOptions } from './service-call.ts'
import type { BatchResult, IngestResult, Telemetry } from './telemetry.ts'
import type { Verdict } from './verdicts/verdict-token.ts'
import {
  checkVerdict,
  type VerdictCrypto,
  type VerifyVerdictOptions,
} from './verdicts/verify-verdict.ts'
import {
  checkWebhook,
  type MacQuestion,
  type VerifyOptions,
  type WebhookDelivery,
  type WebhookHeaders,
} from './webhook-check.ts'

export * from './exports.ts'

/**
 * Signs a body as SDKs do.
 * @param body the exact bytes that are sent; text is UTF-8
 * @param secret the tenant's HMAC secret, its characters as UTF-8
 * @returns 44 base64 characters for `X-Service-Signature`
 * @throws TypeError for an argument that is a mistake of the caller
 */
export async function signBody(
  body: Uint8Array | ArrayBuffer | string,
  secret: string,
): Promise<string> {
  checkRuntime()
  checkSecretText('secret', secret)
  return sign(toBytes('body', body, 'pass the bytes or the text that you send'), secret)
}

async function sign(body: Uint8Array<ArrayBuffer>, secret: string): Promise<string> {
  const mac = await makeMac(new TextEncoder().encode(secret), body)
  return btoa(String.fromCharCode(...mac))
}

/**
 * Sends telemetry and waits until the service stored it. It tries again after network faults, and
 * after 408, 429, 502, 503 and 504, with random waits, which `Retry-After` lengthens.
 * @param telemetry the submission, or the bytes of one that was serialized already
 * @returns the service's score and action, which replace the client's
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws TelemetryRefusedError when the service refuses the telemetry for good
 * @throws TelemetryUnavailableError when the attempts or the time are used up
 */
export async function sendTelemetry(
  telemetry: Telemetry | string | Uint8Array,
  options: SendOptions | InstallSendOptions,
): Promise<IngestResult> {
  checkRuntime({ isOwnKey: (options as Partial<InstallSendOptions> | null)?.install !== undefined })
  return sendSigned(sign, telemetry, options)
}

/**
 * Sends up to 100 submissions of one tenant in one signed body, 512 KiB at most, and waits until
 * the service stored them. Each counts as if it was sent alone. It tries again as `sendTelemetry`
 * does, with the same bytes, so what was stored before counts once.
 * @returns one entry for each submission, in their order: its score and action, or its errors
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws TelemetryRefusedError when the service refuses the batch as a whole for good
 * @throws TelemetryUnavailableError when the attempts or the time are used up
 */
export async function sendBatch(
  events: readonly Telemetry[],
  options: SendOptions,
): Promise<BatchResult> {
  checkRuntime()
  return sendSignedBatch(sign, events, options)
}

/**
 * Fetches a challenge for evidence. It is good for two minutes, and needs no secret.
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws TelemetryRefusedError when the service refuses for good
 * @throws TelemetryUnavailableError when the attempts or the time are used up
 */
export async function fetchChallenge(options: CallOptions): Promise<Challenge> {
  checkRuntime({ isOwnKey: true })
  return getChallenge(options)
}

/**
 * Registers an install: fetches a challenge, gets evidence for it and sends both, signed with the
 * tenant's secret. Evidence that does not hold registers too: `attestation` of the answer says so.
 * @returns the token and the key with which the install signs its telemetry
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws TelemetryRefusedError when the service refuses for good
 * @throws TelemetryUnavailableError when the attempts or the time are used up
 */
export async function registerInstall(options: RegisterOptions): Promise<Install> {
  checkRuntime()
  return registerSigned(sign, options)
}

/**
 * Makes a sender of one install's telemetry. It registers at the first event, renews the token in
 * time, and registers once more when the service refuses it.
 * @throws TypeError for an argument that is a mistake of the caller
 */
export function createInstallSender(options: InstallSenderOptions): InstallSender {
  checkRuntime({ isOwnKey: options?.register !== undefined })
  return makeInstallSender({ register: registerInstall, send: sendTelemetry }, options)
}

/**
 * Verifies a delivery and returns its alert. Every signature that is there must be genuine.
 * @param rawBody the body exactly as received, before any parser
 * @param secret the tenant's webhook secret, `whsec_...`; during a rotation the new and the old one
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws WebhookVerificationError when the delivery must not be acted on
 */
export async function verifyWebhook(
  rawBody: Uint8Array | ArrayBuffer | string,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookDelivery> {
  checkRuntime()
  const check = checkWebhook({ rawBody, headers, secret, options })
  let step = check.next()
  while (step.done !== true) step = check.next(await hasMac(step.value))
  return step.value
}

/**
 * Verifies a verdict token, which an app hands to its backend, without a call to the service.
 * @param token the `verdict_token` of the answer of ingest, as the app passed it on
 * @returns the service's action and score, with the device, the session and the user
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws VerdictVerificationError when the token must not be believed
 * @throws VerdictKeysError when the keys cannot be fetched
 */
export async function verifyVerdict(
  token: string,
  options: VerifyVerdictOptions,
): Promise<Verdict> {
  // It needs no secret, so it may run in a browser as well.
  requireWebCrypto()
  return checkVerdict(crypto.subtle as unknown as VerdictCrypto, token, options)
}

async function hasMac({ key, data, macs }: MacQuestion): Promise<boolean> {
  const expected = await makeMac(key, data)
  let found = false
  for (const mac of macs) {
    if (isEqual(expected, mac)) found = true
  }
  return found
}

async function makeMac(
  key: Uint8Array<ArrayBuffer>,
  data: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const imported = await crypto.subtle.importKey('raw', key, hmac, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, data))
}

/** Compares 32 bytes with the same work wherever they differ. */
function isEqual(expected: Uint8Array, given: Uint8Array): boolean {
  let difference = expected.length ^ given.length
  for (const [index, byte] of expected.entries()) difference |= byte ^ given[index]!
  return difference === 0
}

/** @throws TypeError where WebCrypto is missing */
function requireWebCrypto(): void {
  if (typeof globalThis.crypto?.subtle === 'object') return
  throw new TypeError('crypto.subtle is missing: on Node 18 import device-intelligence-client')
}

/**
 * A page, a web worker and a service worker hold no secret: everyone who opens the page reads what
 * they have loaded. An app holds none of the tenant's either, but the key of its own install.
 * Server runtimes have other names in `navigator.userAgent`, or none.
 * @param options.isOwnKey whether the call needs no secret of the tenant
 * @throws TypeError in a browser, in an app without a key of its own, and without WebCrypto
 */
function checkRuntime({ isOwnKey = false } = {}): void {
  requireWebCrypto()
  const { navigator } = globalThis as { navigator?: { userAgent?: unknown; product?: unknown } }
  const isBrowser = /^Mozilla\//.test(String(navigator?.userAgent))
  const isApp = navigator?.product === 'ReactNative'
  if (!isBrowser && (!isApp || isOwnKey)) return
  throw new TypeError(
    'this client is for servers: a secret in a browser, a service worker or an app is no secret. ' +
      'Send the signals to your own server, and sign there (WHO-SIGNS.md)',
  )
}
