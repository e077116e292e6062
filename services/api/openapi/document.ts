/**
 * The parts of the OpenAPI document that no route of this process describes: the title, the ingest
 * call, which another host serves, and the webhooks.
 */

import { alertUpdated } from '#shared/core/deliveries/webhook-events.ts'
import type { OpenapiOptions } from '#shared/io/http/openapi.ts'
import {
  type Json,
  requestIdHeader,
  serverProblems,
  toHeaderRef,
  toProblemResponses,
  toSchemaRef,
} from '#shared/io/http/openapi-problems.ts'
import {
  alertDetailExample,
  alertExample,
  batchResultExample,
  ingestResultExample,
  submissionBatchExample,
  submissionExample,
} from './examples.ts'
import { attestationHeader, installHeader, toInstallPaths } from './install-paths.ts'

const rateLimitHeaders = {
  RateLimit: toHeaderRef('RateLimit'),
  'RateLimit-Policy': toHeaderRef('RateLimitPolicy'),
}

/** Where clients reach the public listeners. */
export type PublicUrls = { api?: string | undefined; ingest?: string | undefined }

/** Needs no key. */
export const verdictKeysPath = '/v1/di/verdict-keys'
export const ingestPath = '/v1/rasp/ingest'
const batchPath = `${ingestPath}/batch`
const localIngest = 'http://127.0.0.1:8080'

/** The document of the public interface, without the routes of this process. */
export function toPublicDocument(urls: PublicUrls): OpenapiOptions {
  return {
    document: {
      info: {
        title: 'Device intelligence',
        version: '1.0.0',
        description:
          'Signed RASP telemetry in; authoritative scores, device history, alerts and verified webhooks out.',
      },
      servers: [toApiServer(urls, '.')],
      tags: [
        { name: 'Ingest', description: 'Telemetry of devices and sessions.' },
        { name: 'Alerts', description: 'Risky devices to review.' },
        { name: 'Devices', description: 'The history of a device.' },
        { name: 'Users', description: 'The devices of a user or account.' },
        { name: 'Phones', description: 'The installs on the same hardware.' },
        { name: 'Lists', description: 'Allow and deny lists of devices and users.' },
        { name: 'Labels', description: 'What turned out to be fraud.' },
        { name: 'Events', description: 'What became of one submission.' },
        { name: 'Verdicts', description: 'Tokens that your backend verifies by itself.' },
        { name: 'Ledger', description: 'Whether every event reached every stage.' },
        { name: 'Signals', description: 'The signal catalog and its weights.' },
        { name: 'Operations', description: 'For operators of the service.' },
      ],
      security: [{ publicApiKey: [] }],
      securitySchemes: {
        publicApiKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'The tenant’s public API key: `dpk_live_...` or `dpk_sandbox_...`.',
        },
        signature: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Service-Signature',
          description:
            'Base64 of the HMAC-SHA256 of the raw body, keyed with the tenant’s private HMAC secret. 44 characters.',
        },
      },
      headers: {
        RateLimit: toHeader(
          'Calls left, and seconds until the limit is full again.',
          '"tenant";r=1999;t=1',
        ),
        RateLimitPolicy: toHeader(
          'The burst, and the seconds in which it refills.',
          '"tenant";q=2000;w=2',
        ),
      },
      paths: {
        [ingestPath]: toIngestPath(urls, singleCall),
        [batchPath]: toIngestPath(urls, batchCall),
        ...toInstallPaths(toIngestServers(urls)),
        ...toOperationsPaths(),
      },
      webhooks: {
        'risk.alert': { post: toAlertWebhook() },
        [alertUpdated]: { post: toUpdateWebhook() },
        'webhook.test': { post: toTestWebhook() },
      },
    },
    describeRoute: (_method, path) =>
      path === verdictKeysPath
        ? { problems: ['rate_limited', 'unavailable'], security: [] }
        : { problems: ['unauthorized', 'rate_limited', 'unavailable'] },
    headersOf: (status) =>
      [200, 304, 400, 403, 404, 409, 422, 429].includes(status) ? rateLimitHeaders : {},
  }
}

function toHeader(description: string, example: string): Json {
  return { description, schema: { type: 'string', examples: [example] } }
}

/** @param folder where a document is, seen from the document */
export function toApiServer({ api }: PublicUrls, folder: string): Json {
  if (api !== undefined) return { url: api, description: 'The REST API.' }
  return { url: folder, description: 'The host and folder that serve this document.' }
}

/** A call of the ingest host. */
type IngestCall = {
  operationId: string
  summary: string
  description: string
  parameters?: Json[]
  body: { schema: string; example: Json }
  accepted: { description: string; schema: string; example: Json }
}

const singleCall: IngestCall = {
  operationId: 'ingest',
  summary: 'Submit telemetry',
  description:
    'The response is sent once the event is durably stored. Sending the same bytes again is safe: it raises no second alert and counts no session twice.',
  parameters: [installHeader, attestationHeader],
  body: { schema: 'Submission', example: submissionExample },
  accepted: {
    description: 'Accepted and stored.',
    schema: 'IngestResult',
    example: ingestResultExample,
  },
}

const batchCall: IngestCall = {
  operationId: 'ingestBatch',
  summary: 'Submit many events in one signed body',
  description:
    'Each event is answered in its order, and stored, scored and counted as if it was sent alone. The response is sent once every event that it calls accepted is durably stored. Where an event is not certainly stored it is a 503 that says so of each event; sending the same bytes again is safe.',
  body: { schema: 'SubmissionBatch', example: submissionBatchExample },
  accepted: {
    description: 'Every valid event is stored.',
    schema: 'BatchResult',
    example: batchResultExample,
  },
}

const toIngestServers = ({ ingest = localIngest }: PublicUrls): Json[] => [
  {
    url: '{ingest_url}',
    description: 'The ingest host.',
    variables: { ingest_url: { default: ingest } },
  },
]

function toIngestPath(urls: PublicUrls, call: IngestCall): Json {
  const { operationId, summary, description, parameters, body, accepted } = call
  const toContent = ({ schema, example }: { schema: string; example: Json }) => ({
    'application/json': { schema: toSchemaRef(schema), example },
  })
  return {
    servers: toIngestServers(urls),
    post: {
      operationId,
      tags: ['Ingest'],
      summary,
      description,
      ...(parameters === undefined ? {} : { parameters }),
      security: [{ signature: [] }],
      requestBody: { required: true, content: toContent(body) },
      responses: {
        200: {
          description: accepted.description,
          headers: requestIdHeader,
          content: toContent(accepted),
        },
        ...toProblemResponses([
          ...serverProblems,
          'unsupported_media_type',
          'body_too_large',
          'signature_missing',
          'signature_invalid',
          'rate_limited',
          'invalid_body',
          'unavailable',
        ]),
      },
    },
  }
}

function toAlertWebhook(): Json {
  const header = (name: string, description: string, example: string): Json => ({
    name,
    in: 'header',
    ...toHeader(description, example),
  })
  return {
    operationId: 'riskAlert',
    summary: 'An alert was raised',
    description:
      'Sent to the tenant’s webhook URL, at least once, with the same bytes each time. Verify `X-Service-Signature` over the raw body in constant time before acting. Redirects are not followed. Retries after 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 5 h, 10 h, 14 h and 20 h.',
    parameters: [
      header(
        'X-Service-Signature',
        'Base64 of the HMAC-SHA256 of the raw body, keyed with the whole webhook signing secret.',
        'W1vJH1Lq4B0i4uB9t0d7p0Yk0fJm2eUu9kq3uQm0b2c=',
      ),
      header('X-Service-Event', 'The kind of event.', 'risk.alert'),
      header('X-Service-Delivery', 'The same on every retry.', 'dlv_pVFonqe018tNDWsOw_9nGAKRih'),
      header('X-Service-Attempt', 'Counts from 1.', '1'),
      header('X-Service-Timestamp', 'Seconds since 1970.', '1772357400'),
      header('webhook-id', 'Standard Webhooks: the delivery.', 'dlv_pVFonqe018tNDWsOw_9nGAKRih'),
      header('webhook-timestamp', 'Standard Webhooks: seconds since 1970.', '1772357400'),
      header(
        'webhook-signature',
        'Standard Webhooks: `v1,` and the signature of id, timestamp and body, keyed with the decoded secret.',
        'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
      ),
    ],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: toSchemaRef('Alert'), example: alertExample } },
    },
    responses: {
      '2XX': { description: 'Delivered, within 15 s. The body is ignored.' },
      410: { description: 'Switches the webhook off.' },
      429: { description: 'Retried, not before `Retry-After`.' },
      503: { description: 'Retried, not before `Retry-After`.' },
      default: { description: 'Retried on the schedule. After the last attempt it has failed.' },
    },
  }
}

/** The same protocol with the alert as it is now, and what changed. */
function toUpdateWebhook(): Json {
  const change = {
    type: 'object',
    required: ['details'],
    properties: {
      details: {
        type: 'object',
        required: ['change'],
        properties: { change: toSchemaRef('DispositionChange') },
      },
    },
  }
  const { details, ...alert } = alertDetailExample
  return {
    ...toAlertWebhook(),
    operationId: 'alertUpdated',
    summary: 'The disposition of an alert changed',
    description:
      'Only for tenants whose webhook an operator set to get it. `X-Service-Event` is `alert.updated`, and the body is the alert after the change, with the change in `details`. Each change is a delivery of its own. Deliveries may overtake one another, also that of the alert itself: keep the alert with the latest `updated_at`.',
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { allOf: [toSchemaRef('Alert'), change] },
          example: { ...alert, details: { change: details.history[0]! } },
        },
      },
    },
  }
}

/** The same protocol with a test event as its body. */
function toTestWebhook(): Json {
  const test = { type: 'object', required: ['test'], properties: { test: { const: true } } }
  return {
    ...toAlertWebhook(),
    operationId: 'webhookTest',
    summary: 'An operator tests the webhook',
    description:
      'A test event: `X-Service-Event` is `webhook.test`, and the body has the shape of an alert with `"test": true`. It stands for no alert and is sent once. Verify it like an alert and answer 2xx.',
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { allOf: [toSchemaRef('Alert'), test] },
          example: { test: true, ...alertExample },
        },
      },
    },
  }
}

function toOperationsPaths(): Json {
  const get = (
    operationId: string,
    [summary, about]: string[],
    description: string,
    schema: Json,
  ) => ({
    get: {
      operationId,
      tags: ['Operations'],
      summary,
      description: about,
      security: [],
      responses: {
        200: {
          description,
          headers: requestIdHeader,
          content: { 'application/json': { schema } },
        },
        ...toProblemResponses(serverProblems),
      },
    },
  })
  const health = {
    type: 'object',
    required: ['status'],
    properties: { status: { const: 'ok' } },
  }
  return {
    '/healthz': get(
      'health',
      ['Whether the process is alive', 'It says nothing of the databases.'],
      'The process is alive.',
      health,
    ),
    '/openapi.json': get(
      'openapi',
      ['This document', 'OpenAPI 3.1, also for client generators.'],
      'The document.',
      { type: 'object' },
    ),
  }
}
