/**
 * Signs telemetry and sends it. The body becomes bytes once, and every attempt sends these bytes:
 * the service counts equal bytes once, so a retry never counts a session twice.
 */
import { clientBatchEventsMax } from '#shared/core/base/limits/ingest.ts'
import {
  checkBatchOptions,
  checkEvidenceText,
  checkSendOptions,
  describe,
  fail,
  isPromise,
  toBytes,
} from './check-arguments.ts'
import { isBatchResult, isIngestResult } from './read-answer.ts'
import { type CallOptions, callService } from './service-call.ts'
import type { BatchResult, IngestResult, Telemetry } from './telemetry.ts'

/** Signs with the tenant's secret. */
export type SendOptions = CallOptions & {
  /** The tenant's private HMAC secret. */
  hmacSecret: string
}

/** What an install signs with instead of the tenant's secret. */
export type InstallCredentials = {
  /** The install token, `ins1.…`: it travels with each event. */
  token: string
  /** The install key of the token, 43 characters: it signs, and is never sent. */
  key: string
}

/**
 * Evidence for exactly one body: base64 of an assertion of App Attest or of a signature of the
 * attested key, or a Play Integrity token; or what makes it of the bytes that are sent.
 */
export type BodyEvidence = string | ((body: Uint8Array) => string | Promise<string>)

/** Signs with the key of an install. */
export type InstallSendOptions = CallOptions & {
  install: InstallCredentials
  /** For the first event of a session, for example. */
  attestation?: BodyEvidence
}

/** Signs a body with a secret or an install key, its characters as UTF-8. */
export type Sign = (body: Uint8Array<ArrayBuffer>, secret: string) => string | Promise<string>

/** Sends telemetry as `sendTelemetry` does, signed by the cryptography of a runtime. */
export async function sendSigned(
  sign: Sign,
  telemetry: Telemetry | string | Uint8Array,
  options: SendOptions | InstallSendOptions,
): Promise<IngestResult> {
  const address = checkSendOptions(options)
  const body = toBody(telemetry)
  const headers = await signHeaders(sign, body, options)
  const request = { subject: 'the telemetry', method: 'POST', address, headers, body } as const
  return callService({ ...request, isResult: isIngestResult }, options)
}

/** Sends many submissions in one signed body, as `sendBatch` does. */
export async function sendSignedBatch(
  sign: Sign,
  events: readonly Telemetry[],
  options: SendOptions,
): Promise<BatchResult> {
  const address = `${checkBatchOptions(options)}/batch`
  const body = toBatchBody(events)
  const headers = await signHeaders(sign, body, options)
  const request = { subject: 'the telemetry', method: 'POST', address, headers, body } as const
  return callService({ ...request, isResult: isBatchResult }, options)
}

/** The headers of a signed body. */
export async function signHeaders(
  sign: Sign,
  body: Uint8Array<ArrayBuffer>,
  options: SendOptions | InstallSendOptions,
): Promise<Record<string, string>> {
  const headers = { 'content-type': 'application/json' }
  if (!('install' in options) || options.install === undefined) {
    const { hmacSecret } = options as SendOptions
    return { ...headers, 'x-service-signature': await sign(body, hmacSecret) }
  }
  const { install, attestation } = options
  const evidence = await toEvidenceText(attestation, body)
  return {
    ...headers,
    'x-service-install': install.token,
    'x-service-signature': await sign(body, install.key),
    ...(evidence === null ? {} : { 'x-service-attestation': evidence }),
  }
}

async function toEvidenceText(
  attestation: BodyEvidence | undefined,
  body: Uint8Array,
): Promise<string | null> {
  if (attestation === undefined) return null
  // A copy, so that what signs it cannot change what is sent.
  const text = typeof attestation === 'function' ? await attestation(body.slice()) : attestation
  checkEvidenceText('attestation', text)
  return text
}

const sendable = 'pass the telemetry as an object, or as the JSON that you made of it'

/**
 * The bytes of a submission.
 * @throws TypeError for what is none
 */
export function toBody(telemetry: unknown): Uint8Array<ArrayBuffer> {
  const isObject = Object.prototype.toString.call(telemetry) === '[object Object]'
  if (!isObject || isPromise(telemetry)) return toBytes('telemetry', telemetry, sendable)
  // Without it the service cannot find the secret, so its answer would be of the signature.
  const { tenant_id: tenantId } = telemetry as { tenant_id?: unknown }
  if (typeof tenantId !== 'string') {
    fail('telemetry.tenant_id', `must be the tenant's name, not ${describe(tenantId)}`)
  }
  return toBytes('telemetry', toJson(telemetry), sendable)
}

function toBatchBody(events: unknown): Uint8Array<ArrayBuffer> {
  if (!Array.isArray(events)) fail('events', `must be an array, not ${describe(events)}`)
  if (events.length === 0) fail('events', 'is empty: there is nothing to send')
  if (events.length > clientBatchEventsMax) {
    fail('events', `has ${events.length} submissions: send at most ${clientBatchEventsMax} at once`)
  }
  const { tenant_id: tenantId } = (events[0] ?? {}) as { tenant_id?: unknown }
  if (typeof tenantId !== 'string') {
    fail('events[0].tenant_id', `must be the tenant's name, not ${describe(tenantId)}`)
  }
  return toBytes('events', toJson({ tenant_id: tenantId, events }), sendable)
}

function toJson(telemetry: unknown): unknown {
  try {
    return JSON.stringify(telemetry)
  } catch (cause) {
    throw new TypeError(`telemetry cannot be written as JSON: ${(cause as Error).message}`, {
      cause,
    })
  }
}
