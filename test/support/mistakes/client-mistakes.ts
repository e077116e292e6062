/** The usual mistakes in calling the client package, with what a person reads of each. */
import type { ClientMistake, RightClientCall } from './client-call.ts'
import { installMistakes } from './client-install-mistakes.ts'

type Options = Record<string, unknown>

/** A right call of `sendTelemetry` with other options. */
const option = (
  name: string,
  change: (right: RightClientCall) => Options,
  ...says: string[]
): ClientMistake => ({
  name,
  make: (right) =>
    right.client.sendTelemetry(right.telemetry, { ...right.options, ...change(right) }),
  error: 'TypeError',
  says,
})

const submission = (
  name: string,
  make: (right: RightClientCall) => unknown,
  ...says: string[]
): ClientMistake => ({
  name,
  make: (right) => right.client.sendTelemetry(make(right) as never, right.options),
  error: 'TypeError',
  says,
})

type VerifyChange = { body?: unknown; headers?: unknown; secret?: unknown; options?: unknown }

const webhook = (
  name: string,
  change: (right: RightClientCall) => VerifyChange,
  says: string[],
  error: ClientMistake['error'] = 'TypeError',
): ClientMistake => ({
  name,
  make: (right) => {
    const { nowMs, ...given } = right.webhook
    const { body, headers, secret, options } = { ...given, options: { nowMs }, ...change(right) }
    return right.client.verifyWebhook(body as never, headers as never, secret as never, options!)
  },
  error,
  says,
})

const variable = 'is its environment variable set?'

const sending: ClientMistake[] = [
  option('no secret', () => ({ hmacSecret: undefined }), 'hmacSecret is undefined', variable),
  option('an empty secret', () => ({ hmacSecret: '' }), 'hmacSecret is empty', variable),
  option(
    'a secret with the line end of its file',
    ({ options }) => ({ hmacSecret: `${options.hmacSecret}\n` }),
    'hmacSecret has white space',
    'trim',
  ),
  option(
    'a secret in quotes',
    ({ options }) => ({ hmacSecret: `"${options.hmacSecret}"` }),
    'hmacSecret has quotes',
  ),
  option(
    'the webhook secret',
    (right) => ({ hmacSecret: right.webhook.secret }),
    'hmacSecret is the webhook secret',
    'needs the HMAC secret',
  ),
  option(
    'the API key as secret',
    ({ apiKey }) => ({ hmacSecret: apiKey }),
    'hmacSecret is the public API key',
  ),
  option(
    'a part of the secret',
    ({ options }) => ({ hmacSecret: options.hmacSecret.slice(0, 16) }),
    'hmacSecret is too short',
    '32',
  ),
  option(
    'the secret as bytes',
    ({ options }) => ({ hmacSecret: new TextEncoder().encode(options.hmacSecret) }),
    'hmacSecret must be a string',
  ),
  option('no address', () => ({ ingestUrl: undefined }), 'ingestUrl is undefined', variable),
  ...['ingest.example.com', 'localhost:8080', '//ingest.example.com', 'ftp://host'].map((url) =>
    option(
      `an address without http: ${url}`,
      () => ({ ingestUrl: url }),
      'ingestUrl must begin with https:// or http://',
    ),
  ),
  option(
    'a URL object',
    () => ({ ingestUrl: new URL('https://ingest.example.com') }),
    'ingestUrl must be a string',
    'href',
  ),
  option(
    'the address with its path',
    ({ options }) => ({ ingestUrl: `${options.ingestUrl}/v1/rasp/ingest` }),
    'ingestUrl must end before /v1/rasp/ingest',
  ),
  option(
    'an address with a query',
    ({ options }) => ({ ingestUrl: `${options.ingestUrl}/?tenant=acme` }),
    'ingestUrl must have no query',
  ),
  option(
    'an address with a password',
    () => ({ ingestUrl: 'https://user:password@ingest.example.com' }),
    'ingestUrl must have no user and no password',
  ),
  option('a misspelt option', () => ({ timeoutMs: 5 }), 'timeoutMs is not an option', 'deadlineMs'),
  option('no attempt', () => ({ attemptsMax: 0 }), 'attemptsMax must be a whole number'),
  option('a time as text', () => ({ deadlineMs: '5000' }), 'deadlineMs must be a number of ms'),
  option(
    'a time that is no number',
    () => ({ deadlineMs: Number.NaN }),
    'deadlineMs must be a number',
  ),
  option(
    'a controller for its signal',
    () => ({ signal: new AbortController() }),
    'signal is an AbortController: pass its signal',
  ),
  option('an answer for `fetch`', () => ({ fetch: {} }), 'fetch must be a function'),
  {
    name: 'no options',
    make: ({ client, telemetry }) => client.sendTelemetry(telemetry, undefined as never),
    error: 'TypeError',
    says: ['options must be an object, not undefined'],
  },
  submission('no telemetry', () => undefined, 'telemetry is undefined'),
  submission('a list of telemetry', ({ telemetry }) => [telemetry], 'telemetry is an array'),
  submission(
    'a promise of telemetry',
    ({ telemetry }) => Promise.resolve(telemetry),
    'telemetry is a promise: await it',
  ),
  submission(
    'telemetry without its tenant',
    ({ telemetry }) => ({ ...telemetry, tenant_id: undefined }),
    'telemetry.tenant_id must be the tenant',
  ),
  submission(
    'telemetry that is no JSON',
    ({ telemetry }) => ({ ...telemetry, count: 1n }),
    'telemetry cannot be written as JSON',
  ),
  {
    name: 'an object for the body that is signed',
    make: ({ client, telemetry, options }) =>
      client.signBody(telemetry as never, options.hmacSecret),
    error: 'TypeError',
    says: ['body is an object', 'that you send'],
  },
]

const verifying: ClientMistake[] = [
  webhook('a parsed body', ({ webhook: { body } }) => ({ body: JSON.parse(body) }), [
    'rawBody is an object: pass the raw body',
    'express.raw()',
  ]),
  webhook('no body', () => ({ body: undefined }), ['rawBody is undefined: pass the raw body']),
  webhook('a promise of the body', ({ webhook: { body } }) => ({ body: Promise.resolve(body) }), [
    'rawBody is a promise: await it',
  ]),
  webhook('the request as body', () => ({ body: new Request('https://host') }), [
    'rawBody is a value of the type Request: pass the raw body',
  ]),
  webhook('no headers', () => ({ headers: undefined }), ['headers must be', 'request.headers']),
  webhook('the raw headers', () => ({ headers: ['Webhook-Id', 'x'] }), ['headers must be']),
  webhook('no secret', () => ({ secret: undefined }), ['secret is undefined', variable]),
  webhook('no secrets', () => ({ secret: [] }), ['secret is an empty list']),
  webhook(
    'a list with a secret that is not set',
    ({ webhook: { secret } }) => ({ secret: [secret, undefined] }),
    ['secret[1] is undefined', variable],
  ),
  webhook(
    'every secret there was',
    ({ webhook: { secret } }) => ({ secret: Array(5).fill(secret) }),
    ['secret has more than 4 entries'],
  ),
  webhook('the API key', ({ apiKey }) => ({ secret: apiKey }), ['secret is the public API key']),
  webhook('a clock in seconds', () => ({ options: { nowMs: 1_767_225_600 } }), ['nowMs must be']),
  webhook('a date as clock', () => ({ options: { nowMs: new Date() } }), ['nowMs must be']),
  webhook('a misspelt option', () => ({ options: { tolerance: 5 } }), [
    'tolerance is not an option',
    'toleranceSeconds',
  ]),
  webhook(
    'the HMAC secret',
    ({ options }) => ({ secret: options.hmacSecret }),
    ['a webhook secret begins with whsec_'],
    'WebhookVerificationError',
  ),
  webhook(
    'a body that was written again',
    ({ webhook: { body } }) => ({ body: JSON.stringify(JSON.parse(body), null, 1) }),
    ['its signature is not of these bytes'],
    'WebhookVerificationError',
  ),
]

/** Mistakes that are found before anything is sent. */
export const argumentMistakes = [...sending, ...installMistakes, ...verifying]

/** What a call of a real edge can be wrong in. */
export type RightEdgeCall = Pick<RightClientCall, 'client' | 'telemetry' | 'options'> & {
  internalUrl: string
}

type EdgeMistake = Omit<ClientMistake, 'make'> & { make: (right: RightEdgeCall) => unknown }

const refused = (
  name: string,
  make: (right: RightEdgeCall) => unknown,
  ...says: string[]
): EdgeMistake => ({ name, make, error: 'TelemetryRefusedError', says })

/** Mistakes that the service answers. Each shows at the first attempt. */
export const answeredMistakes: EdgeMistake[] = [
  refused(
    'the secret of another tenant',
    ({ client, telemetry, options }) =>
      client.sendTelemetry(telemetry, { ...options, hmacSecret: 'x'.repeat(43) }),
    '401 signature_invalid',
    'the signature that arrived is base64 of 32 bytes, as expected',
    'the body that arrived has ',
  ),
  refused(
    'another address of the service',
    ({ client, telemetry, options, internalUrl }) =>
      client.sendTelemetry(telemetry, { ...options, ingestUrl: internalUrl }),
    '404',
  ),
  refused(
    'a signal of a wrong type',
    ({ client, telemetry, options }) => {
      const signals = { ...telemetry.signals, root: { su_binary: 'yes' as never } }
      return client.sendTelemetry({ ...telemetry, signals }, options)
    },
    '400 invalid_body',
    '$.signals.root.su_binary must be a boolean or null',
  ),
]
