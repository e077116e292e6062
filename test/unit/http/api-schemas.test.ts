// The schemas of the public interface: parsing of queries, and an OpenAPI document that matches.

import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import {
  alertsQuerySchema,
  deviceQuerySchema,
  problemSchema,
  submissionSchema,
} from '#shared/core/http/api-schemas.ts'
import { Problem, type ProblemBody } from '#shared/core/http/problem.ts'
import { checkQuery, parseQuery } from '#shared/core/http/query-string.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import { parseTelemetry } from '#shared/core/telemetry/parse-telemetry.ts'
import { describePublicApi } from '../../support/http/describe-public-api.ts'

/** Parses the query of an address as a server does. @throws Problem invalid_query */
function readQuery<Query>(url: string, schema: z.ZodType<Query>): Query {
  const checked = checkQuery(parseQuery(url.slice(url.indexOf('?') + 1 || url.length)), schema)
  if ('error' in checked) throw checked.error
  return checked.value
}

/** The faults of a query of the alert list, or null when it is valid. */
function faultsOf(query: string) {
  try {
    readQuery(`/path${query}`, alertsQuerySchema)
    return null
  } catch (error) {
    expect(error).toBeInstanceOf(Problem)
    expect((error as Problem).code).toBe('invalid_query')
    return (error as Problem).errors
  }
}

describe('the query of the alert list', () => {
  test('without parameters is a page of 50 of all alerts', () => {
    for (const query of ['', '?', '?&&']) {
      expect(readQuery(`/v1/di/alerts${query}`, alertsQuerySchema)).toEqual({ limit: 50 })
    }
  })

  test('accepts every parameter at once', () => {
    const query =
      '?disposition=FALSE_POSITIVE,OPEN&decision=BLOCK&device_id=a%2Fb%20%C3%BC%26+c&limit=7' +
      '&cursor=abc&from=2026-03-01T00:00:00.001%2B01:00&to=2026-03-02&severity=HIGH,CRITICAL' +
      '&flag=ROOTED%2CVPN_SUSPECTED&min_score=0&user_id=u&session_id=s&updated_after=2026-03-01'
    expect(readQuery(`/v1/di/alerts${query}`, alertsQuerySchema)).toEqual({
      disposition: ['FALSE_POSITIVE', 'OPEN'],
      decision: ['BLOCK'],
      severity: ['HIGH', 'CRITICAL'],
      flag: ['ROOTED', 'VPN_SUSPECTED'],
      min_score: 0,
      device_id: 'a/b ü& c',
      user_id: 'u',
      session_id: 's',
      updated_after: Date.UTC(2026, 2, 1),
      limit: 7,
      cursor: 'abc',
      from: Date.UTC(2026, 1, 28, 23, 0, 0, 1),
      to: Date.UTC(2026, 2, 2),
    })
  })

  test.each([
    ['1', 1],
    ['500', 500],
    ['501', 500],
    ['99999999999999999999999', 500],
  ])('reads limit=%s as %i', (limit, size) => {
    expect(readQuery(`/x?limit=${limit}`, alertsQuerySchema).limit).toBe(size)
  })

  test.each([
    ['limit', '0'],
    ['limit', '-1'],
    ['limit', '1.5'],
    ['limit', '1e2'],
    ['limit', ''],
    ['limit', 'ten'],
    ['limit', '%31%30%00'],
    ['disposition', 'open'],
    ['disposition', ''],
    ['disposition', 'OPEN,'],
    ['disposition', 'OPEN,OPEN'],
    ['disposition', 'OPEN, REVIEWED'],
    ['decision', 'BLOCK,ALLOW'],
    ['severity', 'high'],
    ['severity', 'HIGH,SEVERE'],
    ['flag', 'NO_SUCH_FLAG'],
    ['flag', 'ROOTED,ROOTED'],
    ['min_score', '101'],
    ['min_score', '-1'],
    ['min_score', '1.5'],
    ['min_score', ''],
    ['user_id', ''],
    ['session_id', 'a%00b'],
    ['updated_after', 'yesterday'],
    ['decision', 'ALLOW'],
    ['device_id', ''],
    ['device_id', 'a%00b'],
    ['device_id', 'x'.repeat(257)],
    ['from', 'yesterday'],
    ['to', '2026-02-30'],
    ['cursor', ''],
    ['offset', '10'],
    ['Limit', '10'],
    ['__proto__', '1'],
    ['constructor', '1'],
    ['device_id[]', 'a'],
    ...['-1', '1.5', '1e3', '9999999999999999'].map((seq) => ['after_seq', seq]),
    ...['DEU', 'D', '49', ''].map((country) => ['country', country]),
    ...['0', 'AS', '4294967296', '-1', '64500.5', 'ASN64500', ''].map((asn) => ['asn', asn]),
    ...[
      ...['203.0.113.7', '203.0.113.0/25', '203.0.113.7/24', '2001:db8::/49', '203.0.113/24'],
      ...['::ffff:203.0.113.0/121', '10.0.0.0/33', 'AS64500', ''],
    ].map((network) => ['network', network]),
  ])('rejects %s=%s and names it', (name, value) => {
    const faults = faultsOf(`?limit=10&${name}=${value}`.replace('limit=10&limit', 'limit'))
    expect(faults?.map((fault) => fault.path)).toEqual([name])
  })

  test('reads at most as many values of a filter as exist', () => {
    const parsed = alertsQuerySchema.safeParse({ flag: ','.repeat(14_000) })
    expect(parsed.error?.issues.length).toBeGreaterThan(0)
    expect(parsed.error?.issues.length).toBeLessThanOrEqual(flagCodes.length + 1)
    expect(faultsOf(`?flag=${','.repeat(14_000)}`)?.map((fault) => fault.path)).toEqual(['flag'])
  })

  test('rejects a parameter given twice, even with the same value', () => {
    expect(faultsOf('?limit=10&limit=10')).toEqual([
      { path: 'limit', message: 'must be given only once' },
    ])
    expect(faultsOf('?decision=BLOCK&decision=REVIEW&limit=0')?.map((one) => one.path)).toEqual([
      'decision',
      'limit',
    ])
  })

  test('rejects broken percent-encoding instead of guessing', () => {
    for (const value of ['%', '%f', '%zz', '%ff', '%c3', '%ed%a0%80']) {
      expect(faultsOf(`?device_id=${value}`)).toEqual([
        { path: 'device_id', message: 'is not percent-encoded UTF-8' },
      ])
    }
  })

  test('lists every fault once, and no more than 32', () => {
    const faults = faultsOf('?limit=x&from=x&to=x&nonsense=1')
    expect(faults?.map((one) => one.path).sort()).toEqual(['from', 'limit', 'nonsense', 'to'])
    const many = Array.from({ length: 500 }, (_, index) => `p${index}=1`).join('&')
    expect(faultsOf(`?${many}`)).toHaveLength(32)
  })

  test('is parsed or rejected, with any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        const faults = faultsOf(`?${text}`)
        if (faults !== null) expect(faults?.length).toBeGreaterThan(0)
      }),
      { numRuns: 1_000, verbose: true },
    )
  })
})

test('the query of a device accepts up to 10,000 sessions', () => {
  expect(readQuery('/x', deviceQuerySchema)).toEqual({ sessions_limit: 10_000 })
  expect(readQuery('/x?sessions_limit=10001', deviceQuerySchema).sessions_limit).toBe(10_000)
  expect(readQuery('/x?sessions_limit=1', deviceQuerySchema).sessions_limit).toBe(1)
})

/** Any part of the document, accessed by its keys. */
type Node = { readonly [key: string]: Node }

describe('the OpenAPI document', async () => {
  const document = (await describePublicApi()) as unknown as Node
  const operations = ['paths', 'webhooks'].flatMap((section) =>
    Object.entries(document[section]!).flatMap(([path, item]) =>
      Object.entries(item)
        .filter(([method]) => /^(get|post|delete)$/.test(method))
        .map(([method, operation]) => ({ section, path, method, operation })),
    ),
  )

  test('is OpenAPI 3.1 with the whole public interface', () => {
    expect(document.openapi).toBe('3.1.0')
    expect(operations.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'post /v1/rasp/ingest',
      'post /v1/rasp/ingest/batch',
      'get /v1/rasp/challenge',
      'post /v1/rasp/installs',
      'get /healthz',
      'get /openapi.json',
      'get /v1/di/verdict-keys',
      'get /v1/di/alerts',
      'post /v1/di/alerts/dispositions',
      'get /v1/di/alerts/{alert_id}',
      'post /v1/di/alerts/{alert_id}/disposition',
      'get /v1/di/phones/{phone_id}',
      'get /v1/di/devices/{device_id}',
      'get /v1/di/users/{user_id}',
      'get /v1/di/events',
      'get /v1/di/events/{event_id}',
      'get /v1/di/lists',
      'post /v1/di/lists',
      'delete /v1/di/lists/{entry_id}',
      'get /v1/di/labels',
      'post /v1/di/labels',
      'get /v1/di/labels/codes',
      'get /v1/di/signals',
      'get /v1/di/ledger',
      'post risk.alert',
      'post alert.updated',
      'post webhook.test',
    ])
    expect(document.paths!['/v1/rasp/ingest']!.servers).toBeDefined()
  })

  test('names the request in every answer, and when to come again', () => {
    for (const { section, operation } of operations) {
      if (section === 'webhooks') continue
      for (const [status, response] of Object.entries(operation.responses!)) {
        expect(response.headers).toHaveProperty('X-Request-Id')
        if (status === '429' || (status === '503' && !response.content!['application/json'])) {
          expect(response.headers).toHaveProperty('Retry-After')
        }
      }
    }
  })

  test('documents every failure of the calls of the interface as a problem with an example', () => {
    const statusesOf = (path: string, method = 'get') =>
      Object.keys(document.paths![path]![method]!.responses!)
    const common = ['400', '401', '408', '429', '431', '500', '503']
    expect(statusesOf('/v1/di/alerts')).toEqual(['200', ...common])
    expect(statusesOf('/v1/di/signals')).toEqual(['200', '304', ...common])
    expect(statusesOf('/v1/di/ledger')).toEqual(['200', ...common])
    expect(statusesOf('/v1/di/devices/{device_id}')).toEqual(
      ['200', '304', ...common, '404', '414'].sort(),
    )
    for (const path of ['/v1/rasp/ingest', '/v1/rasp/ingest/batch']) {
      expect(statusesOf(path, 'post')).toEqual(['200', ...common, '413', '415'].sort())
    }
    for (const { operation } of operations) {
      for (const [status, response] of Object.entries(operation.responses!)) {
        const examples = response.content?.['application/problem+json']?.examples ?? {}
        for (const code of Object.keys(examples)) {
          expect(examples[code]).toEqual({ $ref: `#/components/examples/${code}` })
          const body = document.components!.examples![code]!.value as unknown as ProblemBody
          expect(problemSchema.parse(body)).toEqual(body)
          expect(String(body.status)).toBe(status)
        }
      }
    }
  })

  test('has an example of a submission that ingest accepts', () => {
    const { example } =
      document.paths!['/v1/rasp/ingest']!.post!.requestBody!.content!['application/json']!
    expect(submissionSchema.parse(example)).toEqual(example)
    const body = Buffer.from(JSON.stringify(example))
    expect(parseTelemetry(body, findTenant(body) ?? '')).toMatchObject({ ok: true })
  })

  test('has every header of a delivery in its webhook', () => {
    const names = Object.values(document.webhooks!['risk.alert']!.post!.parameters!).map(
      (parameter) => parameter.name as unknown as string,
    )
    const source = readFileSync('shared/core/deliveries/webhook-signing.ts', 'utf8')
    for (const [, name] of source.matchAll(/'((?:x-service|webhook)-[a-z]+)':/g)) {
      expect(names.map((one) => one.toLowerCase())).toContain(name)
    }
  })
})
