// The REST API over HTTP, on a real PostgreSQL and a real ClickHouse.
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FilterName, OperatorsFilter } from '#shared/core/alerts/alert-filters.ts'
import { type Alert, alertPageSchema } from '#shared/core/alerts/alert-schema.ts'
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { deviceSchema, problemSchema } from '#shared/core/http/api-schemas.ts'
import { problemCodes } from '#shared/core/http/problem.ts'
import { toApiKey } from '#shared/core/tenants/credentials.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import {
  type Answer,
  type ApiRig,
  acceptEvent,
  addApiKey,
  startApiRig,
} from '../../support/http/api-rig.ts'
import { until } from '../../support/process/until.ts'
import {
  hostingConnection,
  plainConnection,
  toColumns,
  toShown,
} from '../../support/telemetry/connections.ts'

let rig: ApiRig
let key: string

beforeAll(async () => {
  rig = await startApiRig()
  key = await rig.addTenant('acme')
})

afterAll(() => rig?.close())

/** Checks the guarantees of every error. */
function expectProblem(answer: Answer, code: keyof typeof problemCodes): void {
  const body = answer.json()
  expect(body).toMatchObject({ code, status: problemCodes[code][0], title: problemCodes[code][1] })
  expect(answer.status).toBe(problemCodes[code][0])
  expect(answer.headers['content-type']).toBe('application/problem+json; charset=utf-8')
  expect(body.request_id).toBe(answer.headers['x-request-id'])
  expect(problemSchema.strict().parse(body)).toEqual(body)
  if (answer.status === 400) expect(body.errors).not.toHaveLength(0)
}

type Page = { data: Alert[]; total: number; limit: number; next_cursor: string | null }
type Device = {
  device_id: string
  users_seen_on: string[]
  sessions: Record<string, unknown>[]
  sessions_total: number
  sessions_cursor: string | null
}

async function getAlerts(query = '', of = key): Promise<Page> {
  const answer = await rig.call(`/v1/di/alerts${query}`, { key: of })
  expect(answer.status, answer.text).toBe(200)
  const page = answer.json<Page>()
  expect(alertPageSchema.strict().parse(page)).toEqual(page)
  return page
}

describe('authentication', () => {
  test('of a key that was not used yet goes on while strangers send made-up keys', async () => {
    const guess = (n: number) =>
      rig.call('/v1/di/alerts?limit=1', { key: toApiKey('live', Buffer.alloc(32, `guess ${n}`)) })
    const guesses = Array.from({ length: 400 }, (_, n) => guess(n))
    const cold = await Promise.all(
      Array.from({ length: 5 }, async (_, n) => {
        const fresh = await rig.addTenant(`cold-${n}`)
        return rig.call('/v1/di/alerts?limit=1', { key: fresh })
      }),
    )
    expect(cold.map(({ status }) => status)).toEqual(cold.map(() => 200))
    const statuses = (await Promise.all(guesses)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([401]))
  })

  test('rejects every key that is not an active tenant’s, and tells of the request alone', async () => {
    const retired = await rig.addTenant('retired')
    await rig.postgres.query(
      `update api_keys set state = 'retired', retired_at = now() where tenant_id = 'retired'`,
    )
    const suspended = await rig.addTenant('suspended')
    await rig.postgres.query(
      `update tenants set status = 'suspended' where tenant_id = 'suspended'`,
    )
    const unknown = toApiKey('live', Buffer.alloc(32, 9))
    const otherPrefix = key.replace('dpk_live_', 'dpk_sandbox_')
    const bearer = (of: string) => ({ authorization: `Bearer ${of}` })
    const headers: [hint: string, sent: Record<string, string>[]][] = [
      ['Replaced', [{}, bearer(unknown), bearer(retired), bearer(suspended)]],
      ['X-API-Key', [{ 'x-api-key': key }]],
      [
        'another form',
        [
          ...['', 'Bearer', 'Bearer ', key, `Bearer${key}`, `Bearer ${key} ${key}`].map(
            (authorization) => ({ authorization }),
          ),
          { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` },
        ],
      ],
      [
        'not whole',
        [`${key}x`, key.slice(0, -1), key.toLowerCase(), otherPrefix, 'A'.repeat(8_000)].map(
          bearer,
        ),
      ],
    ]
    for (const [hint, sent] of headers) {
      const seen = new Set<string>()
      for (const path of ['/v1/di/alerts', '/v1/di/devices/d', '/v1/di/alerts?limit=nonsense']) {
        for (const one of sent) {
          const answer = await rig.call(path, { headers: one })
          expectProblem(answer, 'unauthorized')
          expect(answer.headers['www-authenticate']).toBe('Bearer')
          expect(answer.text, JSON.stringify(one)).toContain(hint)
          const { date, 'x-request-id': id, ...rest } = answer.headers
          delete rest['content-length']
          seen.add(JSON.stringify(rest) + answer.text.replaceAll(String(id), ''))
        }
      }
      expect(seen.size).toBe(1)
    }
  })

  test('accepts the scheme in any case, as RFC 9110 requires', async () => {
    for (const authorization of [`bearer ${key}`, `BEARER   ${key}`]) {
      const answer = await rig.call('/v1/di/alerts', { headers: { authorization } })
      expect(answer.status).toBe(200)
    }
  })

  test('ends at once when the key is replaced or the tenant suspended', async () => {
    const old = await rig.addTenant('changing', 'sandbox')
    expect((await rig.call('/v1/di/alerts', { key: old })).status).toBe(200)
    await rig.postgres.query(
      `update api_keys set state = 'retired', retired_at = now() where tenant_id = 'changing'`,
    )
    expectProblem(await rig.call('/v1/di/alerts', { key: old }), 'unauthorized')
    const next = await addApiKey(rig.postgres, 'changing', 'sandbox')
    expect((await rig.call('/v1/di/alerts', { key: next })).status).toBe(200)
    const setStatus = (status: string) =>
      rig.postgres.query(`update tenants set status = $1 where tenant_id = 'changing'`, [status])
    await setStatus('suspended')
    expectProblem(await rig.call('/v1/di/alerts', { key: next }), 'unauthorized')
    await setStatus('active')
    expect((await rig.call('/v1/di/alerts', { key: next })).status).toBe(200)
  })

  test('records the use of a key, but not at every call', async () => {
    const used = await rig.addTenant('used')
    const lastUse = async () => {
      const { rows } = await rig.postgres.query<{ last_used_at: Date | null }>(
        `select last_used_at from api_keys where tenant_id = 'used'`,
      )
      return rows[0]?.last_used_at?.getTime() ?? null
    }
    expect(await lastUse()).toBeNull()
    await rig.call('/v1/di/alerts', { key: used })
    await until('the use is recorded', async () => (await lastUse()) !== null)
    const first = await lastUse()
    for (let time = 0; time < 5; time++) await rig.call('/v1/di/alerts', { key: used })
    expect(await lastUse()).toBe(first)
  })

  test('counts rejections by reason, which clients are not shown', async () => {
    const text = (await rig.callInternal('/metrics')).text
    for (const reason of ['missing', 'malformed', 'unknown', 'suspended']) {
      expect(text).toMatch(
        new RegExp(`di_api_auth_refusals_total\\{reason="${reason}",service="api"\\} [1-9]`),
      )
    }
    expect(text).not.toContain(key)
  })
})

describe('alerts', () => {
  const startMs = Date.UTC(2026, 4, 9, 22, 0)
  /** What one batch has otherwise than the rest. */
  const other: Partial<AlertCandidate> = {
    platform: 'ios',
    connection: toColumns(hostingConnection),
    riskScore: 85,
    reasons: [{ code: 'EMULATOR', weight: 85, evidence: {} }],
  }
  let all: Alert[]

  beforeAll(async () => {
    // A second tenant has the same devices and sessions.
    const tenants = ['listed', 'twin']
    for (let batch = 0; batch < 20; batch++) {
      const candidates = tenants.flatMap((tenantId) =>
        [0, 1].map((one) =>
          makeAlertCandidate({
            tenantId,
            sessionId: `s${batch}-${one}`,
            deviceId: batch % 5 === 0 ? 'farm/α ..' : `d${batch % 3}`,
            userId: one === 0 ? null : `user-${batch}`,
            action: batch % 4 === 0 ? 'BLOCK' : 'REVIEW',
            ...(batch === 3 ? other : {}),
          }),
        ),
      )
      if (batch === 0)
        for (const tenantId of tenants) keys[tenantId] = await rig.addTenant(tenantId)
      await rig.alerts.raiseAlerts(candidates, () => startMs + batch * 600_000)
    }
    const raised = await getAlerts('?limit=500', keys.listed)
    for (const [index, { alert_id: alertId }] of raised.data.entries()) {
      const disposition = dispositions[index % 6] ?? 'OPEN'
      await rig.alerts.setDisposition({ alertId, disposition, note: null, actor: 'op' })
    }
    all = (await getAlerts('?limit=500', keys.listed)).data
    expect(all).toHaveLength(40)
  })

  const keys: Record<string, string> = {}

  type Parameter = Exclude<FilterName, OperatorsFilter>
  const filters: Record<Parameter, [value: string, selects: (alert: Alert) => boolean]> = {
    disposition: [
      'CONFIRMED,FALSE_POSITIVE',
      (alert) => ['CONFIRMED', 'FALSE_POSITIVE'].includes(alert.disposition),
    ],
    decision: ['BLOCK', (alert) => alert.decision.action === 'BLOCK'],
    severity: ['HIGH,CRITICAL', (alert) => alert.decision.severity === 'CRITICAL'],
    flag: ['EMULATOR,HOOKING_DETECTED', (alert) => alert.flags.includes('EMULATOR')],
    min_score: ['56', (alert) => alert.decision.risk_score >= 56],
    device_id: ['farm/α ..', (alert) => alert.entity.device.device_id === 'farm/α ..'],
    user_id: ['user-7', (alert) => alert.entity.user?.user_id === 'user-7'],
    session_id: ['s7-1', (alert) => alert.entity.session.session_id === 's7-1'],
    platform: ['ios', (alert) => alert.platform === 'ios'],
    country: ['de', ({ connection }) => connection?.country === 'DE'],
    asn: ['AS64500', ({ connection }) => connection?.asn === 64_500],
    network: ['203.0.112.0/20', ({ connection }) => connection?.network === '203.0.113.0/24'],
    from: ['2026-05-10', (alert) => alert.created_at >= '2026-05-10'],
    to: ['2026-05-10T01:00:00+01:00', (alert) => alert.created_at < '2026-05-10T00:00:00.000Z'],
    updated_after: ['2026-06-01', (alert) => alert.updated_at >= '2026-06-01'],
  }

  // test/integration/alerts/alert-store.test.ts proves what each of them and each pair selects.
  test.each(Object.entries(filters))(
    'are filtered by %s, with the exact total',
    async (name, [value, selects]) => {
      const page = await getAlerts(
        `?${new URLSearchParams({ [name]: value, limit: '7' })}`,
        keys.listed,
      )
      const expected = all.filter(selects)
      expect(expected.length).toBeGreaterThan(0)
      expect(expected.length).toBeLessThan(all.length)
      expect(page.total).toBe(expected.length)
      expect(page.data).toEqual(expected.slice(0, 7))
      expect(page.next_cursor === null).toBe(expected.length <= 7)
    },
  )

  test('are sorted newest first, with the fields of the contract and of one tenant', async () => {
    expect(all.map((alert) => alert.seq)).toEqual(all.map((_, index) => 40 - index))
    expect(all.find((alert) => alert.entity.session.session_id === 's7-1')).toEqual({
      alert_id: expect.stringMatching(/^alr_/),
      tenant_id: 'listed',
      event_id: 'evt_s7-1',
      seq: 15 + 1 - (all[24]!.entity.session.session_id === 's7-1' ? 0 : 1),
      decision: { action: 'REVIEW', severity: 'MEDIUM', risk_score: 55 },
      rasp_score: 50,
      entity: {
        device: { device_id: 'd1' },
        session: { session_id: 's7-1' },
        user: { user_id: 'user-7' },
        phone: null,
      },
      flags: ['ROOTED'],
      reasons: [{ code: 'ROOTED', weight: 55, evidence: { signals: ['root.su_binary'] } }],
      disposition: expect.stringMatching(/^[A-Z_]+$/),
      connection: null,
      created_at: '2026-05-09T23:10:00.000Z',
      updated_at: expect.stringMatching(/^2026-.*Z$/),
      assignee: null,
    })
    const twin = (await getAlerts('?limit=500', keys.twin)).data
    const ids = new Set(all.map((alert) => alert.alert_id))
    expect(twin).toHaveLength(40)
    expect(twin.filter((alert) => ids.has(alert.alert_id))).toEqual([])
    expect((await getAlerts()).total).toBe(0)
  })

  test('reject a cursor of other filters, of another tenant, or an invalid one', async () => {
    const { next_cursor: cursor } = await getAlerts('?decision=REVIEW&limit=2', keys.listed)
    const refused: [string, string | undefined][] = [
      [`?limit=2&cursor=${cursor}`, keys.listed],
      [`?decision=BLOCK&cursor=${cursor}`, keys.listed],
      [`?decision=REVIEW&disposition=OPEN&cursor=${cursor}`, keys.listed],
      [`?decision=REVIEW&cursor=${cursor}`, keys.twin],
      [`?decision=REVIEW&cursor=${cursor}x`, keys.listed],
      ['?cursor=nonsense', keys.listed],
      ['?cursor=W10', keys.listed],
    ]
    for (const [query, of] of refused) {
      const answer = await rig.call(`/v1/di/alerts${query}`, { key: of })
      expectProblem(answer, 'invalid_query')
      expect(answer.json().errors).toMatchObject([{ path: 'cursor' }])
    }
    const same = await getAlerts(`?decision=REVIEW&cursor=${cursor}&limit=3`, keys.listed)
    expect(same.data).toEqual(all.filter((one) => one.decision.action === 'REVIEW').slice(2, 5))
  })

  test('limit the page size and show it', async () => {
    expect(await getAlerts('', keys.listed)).toMatchObject({ limit: 50, total: 40 })
    expect((await getAlerts('?limit=501', keys.listed)).limit).toBe(500)
  })
})

describe('a device', () => {
  const startMs = Date.UTC(2026, 5, 1)
  let deviceKey: string
  let twinKey: string

  beforeAll(async () => {
    deviceKey = await rig.addTenant('devices')
    twinKey = await rig.addTenant('devices-twin')
  })

  const getDevice = (deviceId: string, query = '', of = deviceKey) =>
    rig.call(`/v1/di/devices/${encodeURIComponent(deviceId)}${query}`, { key: of })

  test('has exactly the fields of the contract', async () => {
    const tenantId = 'devices'
    await rig.telemetry.insertTelemetry([
      ...[10, 80, 55].map((score, index) => ({
        ...acceptEvent({
          tenantId,
          deviceId: 'phone',
          sessionId: 's1',
          score,
          userId: `u${3 - index}`,
          atMs: startMs + index * 1_000 + 7,
          flags: score === 80 ? ['ROOTED'] : [],
        }),
        // The last event has none: the one before is the latest.
        ...[{ connection: plainConnection }, { connection: hostingConnection }, {}][index],
      })),
      acceptEvent({ tenantId, deviceId: 'phone', sessionId: 's2', atMs: startMs + 60_000 }),
      acceptEvent({
        tenantId: 'devices-twin',
        deviceId: 'phone',
        sessionId: 's1',
        atMs: startMs,
        score: 99,
        userId: 'foreign',
      }),
    ])
    const answer = await getDevice('phone')
    expect(answer.status, answer.text).toBe(200)
    const device = answer.json()
    expect(device).toEqual({
      device_id: 'phone',
      first_seen_at: '2026-06-01T00:00:00.007Z',
      last_seen_at: '2026-06-01T00:01:00.000Z',
      peak_rasp_score: 80,
      risk_score: 80,
      platform: 'android',
      sdk_version: '1.0.0',
      connection: toShown(hostingConnection),
      install: null,
      phone: null,
      users_seen_on: ['u1', 'u2', 'u3'],
      users_cursor: null,
      sessions: [
        {
          session_id: 's2',
          rasp_action: 'ALLOW',
          started_at: '2026-06-01T00:01:00.000Z',
          last_seen_at: '2026-06-01T00:01:00.000Z',
          rasp_score: 0,
          flags: [],
          risk_score: 0,
          action: 'ALLOW',
          risk_flags: [],
          platform: 'android',
          sdk_version: '1.0.0',
          connection: null,
        },
        {
          session_id: 's1',
          rasp_action: 'BLOCK',
          started_at: '2026-06-01T00:00:00.007Z',
          last_seen_at: '2026-06-01T00:00:02.007Z',
          rasp_score: 80,
          flags: ['ROOTED'],
          risk_score: 80,
          action: 'BLOCK',
          risk_flags: ['ROOTED'],
          platform: 'android',
          sdk_version: '1.0.0',
          connection: toShown(hostingConnection),
        },
      ],
      sessions_total: 2,
      sessions_cursor: null,
    })
    expect(deviceSchema.strict().parse(device)).toEqual(device)
    expect((await getDevice('phone', '', twinKey)).json().users_seen_on).toEqual(['foreign'])
  })

  test('whose events have expired has what alerts say, for as long as one names it', async () => {
    const of = (sessionId: string, userId: string) =>
      makeAlertCandidate({ tenantId: 'devices', deviceId: 'expired', sessionId, userId })
    await rig.alerts.raiseAlerts([of('first', 'ada'), of('second', 'bob')], Date.now)
    const whole = await getDevice('expired')
    const device = deviceSchema.strict().parse(whole.json())
    expect(device).toMatchObject({ device_id: 'expired', sessions_total: 2, install: null })
    expect(device.users_seen_on).toEqual(['ada', 'bob'])
    expect(device.sessions.map((one) => one.session_id).sort()).toEqual(['first', 'second'])
    const page = deviceSchema.parse((await getDevice('expired', '?sessions_limit=1')).json())
    const cursor = encodeURIComponent(page.sessions_cursor!)
    const rest = (await getDevice('expired', `?sessions_cursor=${cursor}`)).json()
    expect([...page.sessions, ...deviceSchema.parse(rest).sessions]).toEqual(device.sessions)
    expect((await getDevice('expired', '', twinKey)).status).toBe(404)
    await rig.postgres.query(`delete from alerts where device_id = 'expired'`)
    expect((await getDevice('expired')).status).toBe(404)
  })

  test('that is unknown is a 404, and one of another tenant gets the same answer', async () => {
    await rig.telemetry.insertTelemetry([
      acceptEvent({ tenantId: 'devices', deviceId: 'mine', sessionId: 's', atMs: startMs }),
    ])
    expect((await getDevice('mine')).status).toBe(200)
    const [foreign, unknown] = [
      await getDevice('mine', '', twinKey),
      await getDevice('none', '', twinKey),
    ]
    const withoutRequestId = ({ headers, text }: Answer) =>
      text.replaceAll(String(headers['x-request-id']), '')
    expectProblem(foreign, 'device_not_found')
    expect(withoutRequestId(foreign)).toBe(withoutRequestId(unknown))
    expect(Object.keys(foreign.headers)).toEqual(Object.keys(unknown.headers))
  })

  test('is found with any id, percent-encoded once', async () => {
    const character = fc.oneof(
      fc.constantFrom(...'/\\%?#&=+;:@.,~!$*()[] "\'<>{}|^`'),
      fc.constantFrom('..', '%2F', '%', 'é', 'ß', '日本', '👩🏽‍💻', '\u202e', '\u00a0', '\ufeff'),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
    )
    const drawn = fc.sample(
      fc.array(character, { minLength: 1, maxLength: 12 }).map((parts) => parts.join('')),
      { numRuns: 60, seed: 20_260_601 },
    )
    const ids = [
      ...['.', '..', '../..', '/', '//', 'a/b', '/a', 'a/', '%2F', '%252F', '%', 'undefined'],
      ...['healthz', 'a b', '+', '*', ':device_id', '日'.repeat(256), 'x'.repeat(256)],
      ...drawn,
    ].filter((id) => id.length <= 256 && !/[\p{Cc}\p{Cs}]/u.test(id))
    await rig.telemetry.insertTelemetry(
      ids.map((deviceId) =>
        acceptEvent({ tenantId: 'devices', deviceId, sessionId: 's', atMs: startMs }),
      ),
    )
    for (const id of ids) {
      const answer = await getDevice(id)
      expect(answer.json().device_id, `${JSON.stringify(id)} ${answer.text}`).toBe(id)
    }
    // Dots that a client left unencoded, and letters that it encoded without need.
    for (const path of ['..', '%2e%2E', '%2E.']) {
      const answer = await rig.call(`/v1/di/devices/${path}`, { key: deviceKey })
      expect(answer.json().device_id).toBe('..')
    }
  })

  test('with an invalid id is rejected', async () => {
    for (const id of ['', 'a\u0000b', 'a\nb', '\u007f', '\u0085', 'x'.repeat(257)]) {
      const answer = await getDevice(id)
      expectProblem(answer, 'invalid_path')
      expect(answer.json().errors).toMatchObject([{ path: 'device_id' }])
    }
    for (const path of ['%', '%zz', '%ff', '%c3%28', '%ed%a0%80']) {
      const answer = await rig.call(`/v1/di/devices/${path}`, { key: deviceKey })
      expectProblem(answer, 'malformed_request')
    }
    expectProblem(await getDevice('x'.repeat(4_000)), 'uri_too_long')
    expectProblem(await getDevice('x'.repeat(20_000)), 'headers_too_large')
  })

  test('with an unsupported Expect header gets a problem like any other', async () => {
    const headers = { expect: 'a-miracle' }
    expectProblem(
      await rig.call('/v1/di/devices/x', { key: deviceKey, headers }),
      'expectation_failed',
    )
  })

  test('shows all its sessions, or pages by cursor without gaps and duplicates', async () => {
    const events = Array.from({ length: 25 }, (_, index) =>
      acceptEvent({
        tenantId: 'devices',
        deviceId: 'busy',
        sessionId: `s${String(index).padStart(2, '0')}`,
        // Several sessions begin in the same millisecond.
        atMs: startMs + Math.floor(index / 4) * 1_000,
      }),
    )
    await rig.telemetry.insertTelemetry(events)
    const whole = (await getDevice('busy')).json<Device>()
    expect(whole).toMatchObject({ sessions_total: 25, sessions_cursor: null })
    expect(whole.sessions).toHaveLength(25)
    const starts = whole.sessions.map((session) => String(session.started_at))
    expect(starts).toEqual([...starts].sort().reverse())
    const seen: unknown[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = `?sessions_limit=4${cursor && `&sessions_cursor=${cursor}`}`
      const page = (await getDevice('busy', query)).json<Device>()
      expect(page.sessions_total).toBe(25)
      expect(page.sessions.length).toBeLessThanOrEqual(4)
      seen.push(...page.sessions)
      cursor = page.sessions_cursor
    }
    expect(seen).toEqual(whole.sessions)
  })

  test('rejects a sessions cursor of another device or tenant, and bad parameters', async () => {
    const tenants = ['devices', 'devices-twin']
    await rig.telemetry.insertTelemetry(
      tenants.flatMap((tenantId) =>
        ['one', 'two'].flatMap((deviceId) =>
          ['a', 'b'].map((sessionId) =>
            acceptEvent({ tenantId, deviceId, sessionId, atMs: startMs }),
          ),
        ),
      ),
    )
    const first = (await getDevice('one', '?sessions_limit=1')).json<Device>()
    const query = `?sessions_cursor=${first.sessions_cursor}`
    expect((await getDevice('one', query)).json<Device>().sessions).toHaveLength(1)
    const refused: [Answer, string][] = [
      [await getDevice('two', query), 'sessions_cursor'],
      [await getDevice('one', query, twinKey), 'sessions_cursor'],
      [await getDevice('one', '?sessions_limit=0'), 'sessions_limit'],
      [await getDevice('one', '?limit=5'), 'limit'],
    ]
    for (const [answer, path] of refused) {
      expectProblem(answer, 'invalid_query')
      expect(answer.json().errors).toMatchObject([{ path }])
    }
  })
})

describe('rates', () => {
  test('of a tenant are separate, in every answer, and enforced with Retry-After', async () => {
    const limited = await rig.addTenant('limited')
    await rig.postgres.query(
      `update tenants set rest_rate_per_second = 0.5, rest_burst = 3 where tenant_id = 'limited'`,
    )
    const answers: Answer[] = []
    for (let time = 0; time < 5; time++) {
      answers.push(await rig.call('/v1/di/alerts', { key: limited }))
    }
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 429, 429])
    expect(answers.map((answer) => answer.headers.ratelimit)).toMatchObject([
      expect.stringMatching(/^"tenant";r=2;t=2$/),
      expect.stringMatching(/^"tenant";r=1;t=4$/),
      expect.stringMatching(/^"tenant";r=0;t=6$/),
      expect.stringMatching(/^"tenant";r=0;t=6$/),
      expect.stringMatching(/^"tenant";r=0;t=6$/),
    ])
    expectProblem(answers[3]!, 'rate_limited')
    expect(answers[3]!.headers['ratelimit-policy']).toBe('"tenant";q=3;w=6')
    expect(Number(answers[3]!.headers['retry-after'])).toBe(2)
    const other = await rig.call('/v1/di/alerts', { key })
    expect(other.status).toBe(200)
    expect(other.headers['ratelimit-policy']).toBe('"tenant";q=2000;w=2')
    expect((await rig.callInternal('/metrics')).text).toMatch(
      /di_api_rate_limited_total\{tenant="limited",service="api"\} 2/,
    )
  })
})

describe('over HTTP', () => {
  test('every answer has a request id, a harmless one of the caller, and no caching', async () => {
    for (const [path, of] of [
      ['/v1/di/alerts', key],
      ['/v1/di/alerts', undefined],
      ['/nowhere', undefined],
    ] as const) {
      const own = await rig.call(path, { key: of, headers: { 'x-request-id': 'abc-1' } })
      expect(own.headers['x-request-id']).toBe('abc-1')
      expect(own.headers['cache-control']).toBe('no-store')
      const other = await rig.call(path, { key: of, headers: { 'x-request-id': 'a b"' } })
      expect(other.headers['x-request-id']).toMatch(/^req_[0-9a-f-]{36}$/)
    }
  })

  test('a near miss names the nearest call, with or without a key', async () => {
    const asked = [
      ['DELETE', '/v1/di/devices/pixel-1/events', 'GET /v1/di/devices/{device_id}', 405],
      ['POST', '/v1/di/alerts/alr_1', 'GET /v1/di/alerts/{alert_id}', 405],
      ['GET', '/v1/di/alert', 'GET /v1/di/alerts', 404],
      ['GET', '/v1/alerts/', 'GET /v1/di/alerts', 404],
      ['GET', '/v1/di/list', 'GET /v1/di/lists', 404],
    ] as const
    for (const [method, path, nearest, status] of asked) {
      const answers = [await rig.call(path, { key, method }), await rig.call(path, { method })]
      for (const answer of answers) {
        expect(answer.status).toBe(status)
        expect(answer.json().detail).toContain(`The nearest call is ${nearest}.`)
      }
      const [own, stranger] = answers.map((answer) => ({ ...answer.json(), request_id: '' }))
      expect(own).toEqual(stranger)
    }
    const below = await rig.call('/v1/di/devices/pixel-1/events', { key })
    expect(below.json().detail).toContain('Its id is everything after /v1/di/devices/.')
  })

  test('HEAD is GET without the body', async () => {
    const head = await rig.call('/v1/di/alerts', { key, method: 'HEAD' })
    const get = await rig.call('/v1/di/alerts', { key })
    expect([head.status, head.text]).toEqual([200, ''])
    expect(head.headers['content-length']).toBe(get.headers['content-length'])
    expect((await rig.call('/v1/di/alerts', { method: 'HEAD' })).status).toBe(401)
  })

  test('the document is served as committed, and its page may load no other origin', async () => {
    const served = await rig.call('/openapi.json')
    expect(served.headers['content-type']).toMatch(/^application\/json/)
    const committed = readFileSync('services/api/openapi/openapi.json', 'utf8')
    expect(served.json()).toEqual(JSON.parse(committed))
    const page = await rig.call('/docs/')
    expect(page.headers['content-security-policy']).toContain("default-src 'none'")
    expect((await rig.call('/docs/json')).json()).toHaveProperty(['webhooks', 'risk.alert'])
  })

  test('requests and queries are measured by route and outcome', async () => {
    const { text } = await rig.callInternal('/metrics')
    const counted = (metric: string, labels: Record<string, string>): boolean =>
      text
        .split('\n')
        .some(
          (line) =>
            line.startsWith(`${metric}{`) &&
            Object.entries(labels).every(([name, value]) => line.includes(`${name}="${value}"`)),
        )
    const requests: [string, string, string][] = [
      ['GET', '/v1/di/alerts', '200'],
      ['GET', '/v1/di/devices/:device_id', '404'],
      ['GET', 'unknown', '400'],
      ['POST', 'unknown', '405'],
    ]
    for (const [method, route, status] of requests) {
      const labels = { method, route, status }
      expect(counted('di_http_request_seconds_count', labels), route + status).toBe(true)
    }
    for (const query of ['alerts', 'device', 'api_key']) {
      expect(counted('di_api_query_seconds_count', { query, outcome: 'ok' }), query).toBe(true)
    }
  })
})
