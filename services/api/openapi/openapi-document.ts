/**
 * The OpenAPI 3.1 document of the whole public interface: the calls served here, the ingest call
 * that another host serves, and the webhook. Schemas come from the ones that requests and answers
 * are held to; a committed copy and a test keep the document from drifting.
 */
import { z } from 'zod'
import { decisions, dispositions } from '#shared/core/alerts/alert-rules.ts'
import {
  alertsPageDefault,
  alertsPageMax,
  cursorCharactersMax,
  sessionsPageMax,
} from '#shared/core/base/limits/rest-api.ts'
import { idCharactersMax } from '#shared/core/base/limits/telemetry.ts'
import { apiComponents } from '#shared/core/http/api-schemas.ts'
import {
  reconciliationHoursDefault,
  reconciliationHoursMax,
} from '#shared/core/reconciliation/reconciliation-api.ts'
import {
  alertExample,
  deviceExample,
  ingestResultExample,
  reconciliationExample,
  signalListExample,
  submissionExample,
} from './openapi-examples.ts'
import {
  answer,
  componentHeaders,
  failures,
  type Json,
  parameter,
  rateLimit,
  requestId,
  restFailures,
  restHeaders,
  retryAfter,
  schemaRef,
} from './openapi-parts.ts'

const apiVersion = '1.0.0'

/** Makes the document; always the same. */
export function createOpenapiDocument(): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Device intelligence',
      version: apiVersion,
      description:
        'Signed RASP telemetry in; authoritative scores, device history, alerts and verified webhooks out.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '.', description: 'The host and folder that serve this document.' }],
    tags: [
      { name: 'Ingest', description: 'Telemetry of devices and sessions.' },
      { name: 'Alerts', description: 'What somebody should look at.' },
      { name: 'Devices', description: 'What is known of a device.' },
      { name: 'Ledger', description: 'Whether everything that was sent is where it should be.' },
      { name: 'Signals', description: 'What may be sent, and what it weighs.' },
      { name: 'Operations', description: 'For those who run the service.' },
    ],
    paths: {
      '/v1/rasp/ingest': ingestPath(),
      '/v1/di/alerts': { get: listAlerts() },
      '/v1/di/devices/{device_id}': { get: findDevice() },
      '/v1/di/signals': { get: listSignals() },
      '/v1/di/ledger': { get: readReconciliation() },
      ...operationsPaths(),
    },
    webhooks: { 'risk.alert': { post: riskAlert() }, 'webhook.test': { post: webhookTest() } },
    components: {
      schemas: componentSchemas(),
      headers: componentHeaders(),
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
    },
  }
}

function componentSchemas(): Json {
  const { schemas } = z.toJSONSchema(apiComponents, {
    io: 'input',
    target: 'draft-2020-12',
    // A custom check, such as that of a category of signals, has its JSON Schema in its metadata.
    unrepresentable: 'any',
    uri: (id) => `#/components/schemas/${id}`,
  })
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $schema, $id, id: _, ...schema }]) => [id, schema]),
  )
}

const idText = { type: 'string', minLength: 1, maxLength: idCharactersMax }
const cursorText = { type: 'string', minLength: 1, maxLength: cursorCharactersMax }
const instantText = {
  type: 'string',
  examples: ['2026-03-01T00:00:00Z', '2026-03-01T09:30:00.123+01:00', '2026-03-01'],
}

function listAlerts(): Json {
  return {
    operationId: 'listAlerts',
    tags: ['Alerts'],
    summary: 'List and filter alerts',
    description:
      'Newest first. `total` is exact, and of the same instant as the page. Every 50 alerts of a page count as one call of the tenant’s rate. An unknown parameter, a repeated one or a bad value is a 400 that names it.',
    security: [{ publicApiKey: [] }],
    parameters: [
      parameter(
        'disposition',
        { type: 'string', enum: dispositions },
        'Alerts with this disposition.',
      ),
      parameter('decision', { type: 'string', enum: decisions }, 'Alerts with this action.'),
      parameter('device_id', idText, 'Alerts of this device.'),
      parameter(
        'from',
        instantText,
        'Alerts created at this instant or later. ISO-8601 with an offset; a date is its midnight in UTC.',
      ),
      parameter('to', instantText, 'Alerts created before this instant. Written like `from`.'),
      parameter(
        'limit',
        { type: 'integer', minimum: 1, default: alertsPageDefault },
        `Alerts per page. Above ${alertsPageMax} it is ${alertsPageMax}, and the answer’s \`limit\` says so.`,
      ),
      parameter(
        'cursor',
        cursorText,
        '`next_cursor` of the page before, with the same filters. Continues exactly after its last alert, whatever happened since.',
      ),
    ],
    responses: {
      200: answer(
        'A page of alerts.',
        'AlertPage',
        { data: [alertExample], total: 1, limit: alertsPageDefault, next_cursor: null },
        rateLimit,
      ),
      ...failures(
        {
          invalid_query: {
            detail: 'The query has parameters that cannot be used.',
            path: 'limit',
            message: 'must be a whole number from 1',
          },
          ...restFailures,
        },
        restHeaders,
      ),
    },
  }
}

function findDevice(): Json {
  return {
    operationId: 'findDevice',
    tags: ['Devices'],
    summary: 'The full history of one device',
    description:
      'An accepted event is visible here within a second. Up to 10,000 sessions and users are in one answer. Every 50 of them count as one call of the tenant’s rate.',
    security: [{ publicApiKey: [] }],
    parameters: [
      parameter(
        'device_id',
        idText,
        'From any telemetry or alert, percent-encoded once. A slash is found as `%2F` and as it is, since proxies may decode it.',
        'path',
      ),
      parameter(
        'sessions_limit',
        { type: 'integer', minimum: 1, default: sessionsPageMax },
        `Sessions in the answer, at most ${sessionsPageMax}.`,
      ),
      parameter('sessions_cursor', cursorText, '`sessions_cursor` of the answer before.'),
      parameter('users_cursor', cursorText, '`users_cursor` of the answer before.'),
    ],
    responses: {
      200: answer('The device.', 'Device', deviceExample, rateLimit),
      ...failures(
        {
          invalid_query: {
            detail: 'The query has parameters that cannot be used.',
            path: 'sessions_cursor',
            message: 'is not a cursor of this list and these filters',
          },
          invalid_path: {
            detail: 'This cannot be the id of a device.',
            path: 'device_id',
            message: 'must not contain control characters',
          },
          device_not_found: { detail: 'There is no telemetry of this device.' },
          uri_too_long: { detail: 'A part of the address is too long.' },
          ...restFailures,
        },
        restHeaders,
      ),
    },
  }
}

function listSignals(): Json {
  return {
    operationId: 'listSignals',
    tags: ['Signals'],
    summary: 'The signal catalog with the tenant’s weights',
    description:
      'Every signal that is known, what it must be, what it means, and what it weighs under the policy that the tenant has now. Other signals may be sent as well: they are kept and weigh nothing.',
    security: [{ publicApiKey: [] }],
    responses: {
      200: answer(
        'The catalog. The example shows a few signals of it.',
        'SignalList',
        signalListExample,
        rateLimit,
      ),
      ...failures(
        {
          invalid_query: {
            detail: 'The query has parameters that cannot be used.',
            path: 'category',
            message: 'is not a parameter of this call',
          },
          ...restFailures,
        },
        restHeaders,
      ),
    },
  }
}

function readReconciliation(): Json {
  return {
    operationId: 'readLedger',
    tags: ['Ledger'],
    summary: 'What every stage did with the tenant’s events, hour by hour',
    description:
      'An event is of the hour in which an edge received it, at every stage. Where stages differ, the stage, the number and some ids are named. What is on its way is no difference.',
    security: [{ publicApiKey: [] }],
    parameters: [
      parameter(
        'from',
        instantText,
        `Hours that begin at this instant or later. ISO-8601 with an offset; a date is its midnight in UTC. ${reconciliationHoursDefault} hours before \`to\` when left out, and at most ${reconciliationHoursMax / 24} days before it.`,
      ),
      parameter('to', instantText, 'Hours that begin before this instant. Now when left out.'),
    ],
    responses: {
      200: answer('The hours that have any event.', 'Ledger', reconciliationExample, rateLimit),
      ...failures(
        {
          invalid_query: {
            detail: 'The query has parameters that cannot be used.',
            path: 'from',
            message: `must be at most ${reconciliationHoursMax / 24} days before \`to\``,
          },
          ...restFailures,
        },
        restHeaders,
      ),
    },
  }
}

function ingestPath(): Json {
  return {
    servers: [
      {
        url: '{ingest_url}',
        description: 'The ingest host.',
        variables: { ingest_url: { default: 'http://127.0.0.1:8080' } },
      },
    ],
    post: {
      operationId: 'ingest',
      tags: ['Ingest'],
      summary: 'Submit telemetry',
      description:
        'Answered once the event is durably stored. Sending the same bytes again is safe: it raises no second alert and counts no session twice.',
      security: [{ signature: [] }],
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: schemaRef('Submission'), example: submissionExample },
        },
      },
      responses: {
        200: answer('Accepted and stored.', 'IngestResult', ingestResultExample, {}),
        ...failures(
          {
            unsupported_media_type: {
              detail: 'Send application/json without any content encoding.',
            },
            body_too_large: { detail: 'The body is larger than 64 KiB.' },
            signature_missing: { detail: 'The header X-Service-Signature is required.' },
            signature_invalid: {
              detail:
                'The signature is not that of this body under the secret of an active tenant.',
            },
            rate_limited: { detail: 'The tenant sends more than its rate.' },
            invalid_body: {
              detail: 'The body is not a valid telemetry submission.',
              path: '$.signals.root',
              message: 'must be an object',
            },
            malformed_request: { detail: 'The request cannot be read.' },
            unavailable: { detail: 'Telemetry could not be stored; it may be sent again.' },
          },
          { 429: retryAfter },
        ),
      },
    },
  }
}

function riskAlert(): Json {
  const header = (name: string, description: string, example: string): Json =>
    parameter(name, { type: 'string', examples: [example] }, description, 'header')
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
      content: { 'application/json': { schema: schemaRef('Alert'), example: alertExample } },
    },
    responses: {
      '2XX': { description: 'Taken, within 15 s. The body is not looked at.' },
      410: { description: 'Switches the webhook off.' },
      429: { description: 'Tried again, no sooner than `Retry-After` says.' },
      503: { description: 'Tried again, no sooner than `Retry-After` says.' },
      default: { description: 'Tried again on the schedule; after the last try it has failed.' },
    },
  }
}

/** The same protocol, with a body that says what it is. */
function webhookTest(): Json {
  const test = { type: 'object', required: ['test'], properties: { test: { const: true } } }
  return {
    ...riskAlert(),
    operationId: 'webhookTest',
    summary: 'An operator tries the webhook',
    description:
      'A test event: `X-Service-Event` is `webhook.test` and the body has `"test": true` in an object of the shape of an alert. It stands for no alert and is tried once. Verify it like an alert and answer 2xx.',
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { allOf: [schemaRef('Alert'), test] },
          example: { test: true, ...alertExample },
        },
      },
    },
  }
}

function operationsPaths(): Json {
  const get = (operationId: string, summary: string, responses: Json): Json => ({
    get: { operationId, tags: ['Operations'], summary, security: [], responses },
  })
  const plain = (description: string, type: string, schema: Json): Json => ({
    description,
    headers: requestId,
    content: { [type]: { schema } },
  })
  return {
    '/healthz': get('health', 'Whether the process is alive', {
      200: plain('It is.', 'application/json', {
        type: 'object',
        required: ['status'],
        properties: { status: { const: 'ok' } },
      }),
      ...failures({}),
    }),
    '/openapi.json': get('openapi', 'This document', {
      200: plain('The document.', 'application/json', { type: 'object' }),
      ...failures({}),
    }),
  }
}
