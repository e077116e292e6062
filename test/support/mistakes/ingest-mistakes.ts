/** The usual mistakes in sending telemetry, in the order in which an integrator meets them. */
import { createHash, createHmac } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { signBody } from '#shared/core/telemetry/signature.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import type { Mistake, Sent } from './mistake.ts'

/** What a right submission of a sandbox tenant is made of. */
export type RightSubmission = {
  secret: string
  webhookSecret: string
  apiKey: string
  /** Of a suspended tenant. */
  suspended: { tenantId: string; secret: string }
  fields: Telemetry
}

export type SubmissionMistake = Mistake<RightSubmission>
type Answer = [status: number, code: string | null, ...says: string[]]

const path = '/v1/rasp/ingest'
export const type = { 'content-type': 'application/json' }
const textOf = ({ fields }: RightSubmission): string => JSON.stringify(fields)

export const post = (
  body: string | Uint8Array | undefined,
  headers: Record<string, string>,
): Sent => ({
  method: 'POST',
  path,
  headers,
  body,
})

export const mistake = (
  name: string,
  make: SubmissionMistake['make'],
  [status, code, ...says]: Answer,
): SubmissionMistake => ({ name, make, status, code, says })

/** The right body with another signature header. */
const signature = (
  name: string,
  toHeader: (right: string, parts: RightSubmission) => string,
  form: string,
  ...remedies: string[]
): SubmissionMistake =>
  mistake(
    name,
    (parts) => {
      const header = toHeader(signBody(textOf(parts), parts.secret), parts)
      return post(textOf(parts), { ...type, 'x-service-signature': header })
    },
    [
      401,
      'signature_invalid',
      `The form of X-Service-Signature is wrong: ${form}; base64 of 32 bytes expected.`,
      ...remedies,
    ],
  )

const rightForm = 'base64 of 32 bytes, as expected'
const compare = 'Compare received.sha256 with the SHA-256 of the bytes that you signed'

/** A signature of the right form, made over other bytes or with another key. */
const forged = (
  name: string,
  sign: (text: string, parts: RightSubmission) => string,
  { send = textOf }: { send?: (parts: RightSubmission) => string | Uint8Array } = {},
): SubmissionMistake =>
  mistake(
    name,
    (parts) => post(send(parts), { ...type, 'x-service-signature': sign(textOf(parts), parts) }),
    [401, 'signature_invalid', rightForm, compare, 'signature check'],
  )

/** A body that is signed as it is sent. */
export const body = (
  name: string,
  make: (text: string, parts: RightSubmission) => string | Uint8Array,
  ...answer: Answer
): SubmissionMistake =>
  mistake(
    name,
    (parts) => {
      const sent = make(textOf(parts), parts)
      return post(sent, { ...type, 'x-service-signature': signBody(sent, parts.secret) })
    },
    answer,
  )

/** Fields of the right body with others in their place, signed; undefined leaves one out. */
const fields = (
  name: string,
  change: (right: Telemetry) => Record<string, unknown>,
  ...says: string[]
): SubmissionMistake =>
  body(
    name,
    (_, parts) => JSON.stringify({ ...parts.fields, ...change(parts.fields) }),
    400,
    'invalid_body',
    ...says,
  )

const hex = (text: string) => Buffer.from(text, 'base64').toString('hex')

const headers: SubmissionMistake[] = [
  mistake('no signature', (right) => post(textOf(right), type), [
    401,
    'signature_missing',
    'X-Service-Signature',
    'base64 of the HMAC-SHA256',
  ]),
  mistake(
    'another name of the header',
    (right) =>
      post(textOf(right), { ...type, 'x-signature': signBody(textOf(right), right.secret) }),
    [401, 'signature_missing', 'X-Service-Signature'],
  ),
  mistake(
    'the secret as a bearer token',
    (right) => post(textOf(right), { ...type, authorization: `Bearer ${right.secret}` }),
    [401, 'signature_missing', 'X-Service-Signature'],
  ),
  signature('hex', hex, 'hex', 'as base64, not as hex'),
  signature('hex in upper case', (right) => hex(right).toUpperCase(), 'hex', 'as base64'),
  signature(
    'base64url',
    (right) => right.replaceAll('+', '-').replaceAll('/', '_'),
    'base64url',
    'with + and /',
  ),
  signature(
    'no padding',
    (right) => right.slice(0, -1),
    'base64 without its padding',
    'one = at the end',
  ),
  signature(
    'base64 of hex',
    (right) => Buffer.from(hex(right)).toString('base64'),
    'base64 of hex text',
    'not their hex text',
  ),
  signature(
    'a prefix',
    (right) => `sha256=${right}`,
    'with the prefix sha256=',
    'Remove the prefix',
  ),
  signature('quotes', (right) => `"${right}"`, 'in quotes', 'Remove the quotes'),
  signature(
    'SHA-1',
    (_, { secret, ...of }) =>
      createHmac('sha1', secret)
        .update(textOf({ secret, ...of }))
        .digest('base64'),
    'base64 of 20 bytes',
    'HMAC-SHA256 makes 32 bytes',
  ),
  signature(
    'the secret itself',
    (_, { secret }) => secret,
    'base64url, base64 without its padding',
  ),
  signature('a text', () => 'signature', 'base64 of 6 bytes'),
]

const secrets: SubmissionMistake[] = [
  forged('a secret with a newline', (text, { secret }) => signBody(text, `${secret}\n`)),
  forged('a secret in quotes', (text, { secret }) => signBody(text, `"${secret}"`)),
  forged('the decoded secret', (text, { secret }) =>
    createHmac('sha256', Buffer.from(secret, 'base64url')).update(text).digest('base64'),
  ),
  forged('the webhook secret', (text, { webhookSecret }) => signBody(text, webhookSecret)),
  forged('the API key', (text, { apiKey }) => signBody(text, apiKey)),
  forged('no key', (text) => createHash('sha256').update(text).digest('base64')),
]

const bytes: SubmissionMistake[] = [
  forged('the pretty-printed body was signed', (text, { secret }) =>
    signBody(JSON.stringify(JSON.parse(text), null, 2), secret),
  ),
  forged('the body was serialised again, in another order', (text, { secret }) =>
    signBody(
      JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).reverse())),
      secret,
    ),
  ),
  forged('a newline after the signed body', (text, { secret }) => signBody(text, secret), {
    send: (right) => `${textOf(right)}\n`,
  }),
  forged('the empty body was signed', (_, { secret }) => signBody('', secret)),
  forged('UTF-16 was signed', (text, { secret }) => signBody(Buffer.from(text, 'utf16le'), secret)),
]

const namesNoTenant = 'tenant_id'

const tenants: SubmissionMistake[] = [
  body(
    'another tenant’s name',
    (_, { fields: own }) => JSON.stringify({ ...own, tenant_id: 'someone-else' }),
    401,
    'signature_invalid',
    rightForm,
    namesNoTenant,
  ),
  body(
    'the tenant in upper case',
    (_, { fields: own }) => JSON.stringify({ ...own, tenant_id: 'BANK' }),
    401,
    'signature_invalid',
    rightForm,
    namesNoTenant,
  ),
  mistake(
    'a suspended tenant',
    ({ suspended: { tenantId, secret }, fields: own }) => {
      const text = JSON.stringify({ ...own, tenant_id: tenantId })
      return post(text, { ...type, 'x-service-signature': signBody(text, secret) })
    },
    [401, 'signature_invalid', rightForm, 'an active tenant'],
  ),
  body('no body', () => '', 401, 'signature_invalid', 'received 0 bytes', namesNoTenant),
  body(
    'tenantId',
    (text) => text.replace('"tenant_id"', '"tenantId"'),
    401,
    'signature_invalid',
    namesNoTenant,
  ),
  body('a list of submissions', (text) => `[${text}]`, 401, 'signature_invalid', namesNoTenant),
  body(
    'a submission within an object',
    (text) => `{"event":${text}}`,
    401,
    'signature_invalid',
    namesNoTenant,
  ),
  body('UTF-16', (text) => Buffer.from(text, 'utf16le'), 401, 'signature_invalid', namesNoTenant),
  body(
    'single quotes',
    (text) => text.replaceAll('"', "'"),
    401,
    'signature_invalid',
    namesNoTenant,
  ),
]

const withType =
  (value: string | null, more: Record<string, string> = {}) =>
  (right: RightSubmission) =>
    post(textOf(right), {
      ...(value === null ? {} : { 'content-type': value }),
      'x-service-signature': signBody(textOf(right), right.secret),
      ...more,
    })

const transport: SubmissionMistake[] = [
  mistake('no content type', withType(null), [415, 'unsupported_media_type', 'application/json']),
  mistake('a form', withType('application/x-www-form-urlencoded'), [
    415,
    'unsupported_media_type',
    'application/json',
  ]),
  mistake('text/plain', withType('text/plain'), [
    415,
    'unsupported_media_type',
    'application/json',
  ]),
  mistake(
    'gzip',
    (right) => {
      const sent = gzipSync(textOf(right))
      const signed = { 'x-service-signature': signBody(sent, right.secret) }
      return post(sent, { ...type, ...signed, 'content-encoding': 'gzip' })
    },
    [415, 'unsupported_media_type', 'without any content encoding'],
  ),
  body(
    'too large',
    (text) => text.replace('{', `{"logs":"${'x'.repeat(70_000)}",`),
    413,
    'body_too_large',
    '64 KiB',
  ),
  mistake('GET', () => ({ path, headers: {} }), [405, 'method_not_allowed', 'POST']),
  mistake('PUT', (right) => ({ ...post(textOf(right), type), method: 'PUT' }), [
    405,
    'method_not_allowed',
    'POST',
  ]),
  mistake('a slash at the end', (right) => ({ ...post(textOf(right), type), path: `${path}/` }), [
    404,
    'not_found',
    'POST /v1/rasp/ingest',
  ]),
  mistake('no version', (right) => ({ ...post(textOf(right), type), path: '/rasp/ingest' }), [
    404,
    'not_found',
    'POST /v1/rasp/ingest',
  ]),
  mistake('a call of the REST API', () => ({ path: '/v1/di/alerts', headers: {} }), [
    404,
    'not_found',
    'POST /v1/rasp/ingest',
  ]),
]

const invalid = [400, 'invalid_body'] as const

const inSignals = (more: object) => (right: Telemetry) => ({
  signals: { ...right.signals, ...more },
})

// test/unit/telemetry/parse-telemetry.test.ts has every fault of a body and its words.
const contents: SubmissionMistake[] = [
  body('a cut body', (text) => text.slice(0, -10), ...invalid, 'is cut off after'),
  fields(
    'deviceId',
    ({ device_id: id }) => ({ device_id: undefined, deviceId: id }),
    '$.device_id',
    'is missing',
  ),
  fields(
    'signals without categories',
    () => ({ signals: { su_binary: true } }),
    '$.signals.root',
    '$.signals.network',
  ),
  fields(
    'a signal as text',
    inSignals({ root: { su_binary: 'true' } }),
    '$.signals.root.su_binary must be a boolean or null',
  ),
]

/** A 200 in a sandbox tenant, with warnings. */
const warned: SubmissionMistake[] = [
  body(
    'a misspelt signal',
    (_, { fields: own }) =>
      JSON.stringify({ ...own, ...inSignals({ root: { su_binay: true } })(own) }),
    200,
    null,
    '$.signals.root.su_binay',
    'nearest root.su_binary',
  ),
  body(
    'a signal in another category',
    (_, { fields: own }) =>
      JSON.stringify({ ...own, ...inSignals({ root: { frida_detected: true } })(own) }),
    200,
    null,
    '$.signals.root.frida_detected',
    'nearest debugger.frida_detected',
  ),
  body(
    'an unknown category',
    (_, { fields: own }) =>
      JSON.stringify({ ...own, ...inSignals({ hooks: { xposed: true } })(own) }),
    200,
    null,
    '$.signals.hooks',
  ),
]

export const ingestMistakes: SubmissionMistake[] = [
  ...headers,
  ...secrets,
  ...bytes,
  ...tenants,
  ...transport,
  ...contents,
  ...warned,
]
