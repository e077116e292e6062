/**
 * The client for Node and Bun, with the cryptography of `node:crypto`: signs and sends telemetry,
 * verifies webhooks and verdicts, and maps what mobile SDKs report to `signals`. It needs no
 * package.
 */
import { createHmac, timingSafeEqual, webcrypto } from 'node:crypto'
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
export function signBody(body: Uint8Array | ArrayBuffer | string, secret: string): string {
  checkSecretText('secret', secret)
  return sign(toBytes('body', body, 'pass the bytes or the text that you send'), secret)
}

const sign = (body: Uint8Array, secret: string) =>
  createHmac('sha256', secret).update(body).digest('base64')

/**
 * Sends telemetry and waits until the service stored it. It tries again after network faults, and
 * after 408, 429, 502, 503 and 504, with random waits, which `Retry-After` lengthens.
 * @param telemetry the submission, or the bytes of one that was serialized already
 * @returns the service's score and action, which replace the client's
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws TelemetryRefusedError when the service refuses the telemetry for good
 * @throws TelemetryUnavailableError when the attempts or the time are used up
 */
export function sendTelemetry(
  telemetry: Telemetry | string | Uint8Array,
  options: SendOptions | InstallSendOptions,
): Promise<IngestResult> {
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
export function sendBatch(
  events: readonly Telemetry[],
  options: SendOptions,
): Promise<BatchResult> {
  return sendSignedBatch(sign, events, options)
}

/**
 * Fetches a challenge for evidence. It is good for two minutes, and needs no secret.
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws TelemetryRefusedError when the service refuses for good
 * @throws TelemetryUnavailableError when the attempts or the time are used up
 */
export function fetchChallenge(options: CallOptions): Promise<Challenge> {
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
export function registerInstall(options: RegisterOptions): Promise<Install> {
  return registerSigned(sign, options)
}

/**
 * Makes a sender of one install's telemetry. It registers at the first event, renews the token in
 * time, and registers once more when the service refuses it.
 * @throws TypeError for an argument that is a mistake of the caller
 */
export function createInstallSender(options: InstallSenderOptions): InstallSender {
  return makeInstallSender({ register: registerInstall, send: sendTelemetry }, options)
}

/**
 * Verifies a delivery and returns its alert. Every signature that is there must be genuine.
 * @param rawBody the body exactly as received, before any parser
 * @param secret the tenant's webhook secret, `whsec_...`; during a rotation the new and the old one
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws WebhookVerificationError when the delivery must not be acted on
 */
export function verifyWebhook(
  rawBody: Uint8Array | ArrayBuffer | string,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): WebhookDelivery {
  const check = checkWebhook({ rawBody, headers, secret, options })
  let step = check.next()
  while (step.done !== true) step = check.next(hasMac(step.value))
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
export function verifyVerdict(token: string, options: VerifyVerdictOptions): Promise<Verdict> {
  return checkVerdict(webcrypto.subtle as unknown as VerdictCrypto, token, options)
}

function hasMac({ key, data, macs }: MacQuestion): boolean {
  const expected = createHmac('sha256', key).update(data).digest()
  let found = false
  for (const mac of macs) {
    if (timingSafeEqual(expected, mac)) found = true
  }
  return found
}
