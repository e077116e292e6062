// Answers of the REST API with many rows: paged, compressed and charged to the tenant's rate.
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rowsPerCall, usersPageMax } from '#shared/core/base/limits/rest-api.ts'
import { deviceSchema } from '#shared/core/http/api-schemas.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { type Answer, type ApiRig, startApiRig } from '../../support/http/api-rig.ts'

let rig: ApiRig
let key: string

const usersCount = usersPageMax + 2_345
const sessionsCount = 10_400
const gzip = { 'accept-encoding': 'gzip, deflate, br' }

beforeAll(async () => {
  rig = await startApiRig()
  key = await rig.addTenant('acme')
  const insert = (device: string, session: string, users: string, rows: number) =>
    rig.clickhouse.command({
      query: `insert into sessions
        (tenant_id, device_id, session_id, started_at, last_seen_at, verdict, users)
        select 'acme', '${device}', ${session}, toDateTime64('2026-03-01', 3, 'UTC') + number,
          toDateTime64('2026-03-01', 3, 'UTC') + number, (50, 'REVIEW', ['ROOTED']), ${users}
        from numbers(${rows})`,
    })
  await insert('shared', `concat('s-', toString(number))`, `[concat('ü-', toString(number))]`, 99)
  await insert('many', `concat('s-', toString(number))`, `['ada']`, sessionsCount)
  const users = `arrayMap(n -> concat('u-', toString(n)), range(number * 1000, number * 1000 + 1000))`
  await insert('users', `concat('s-', toString(number))`, users, Math.ceil(usersCount / 1_000))
  const candidates = Array.from({ length: 500 }, (_, n) =>
    makeAlertCandidate({ tenantId: 'acme', sessionId: `s-${n}` }),
  )
  await rig.alerts.raiseAlerts(candidates, Date.now)
})
afterAll(() => rig?.close())

type Device = {
  users_seen_on: string[]
  users_cursor: string | null
  sessions: { session_id: string }[]
  sessions_cursor: string | null
  sessions_total: number
}

async function get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
  const answer = await rig.call(path, { key, headers })
  expect(answer.status, answer.text.slice(0, 500)).toBe(200)
  return answer
}

describe('the users of a device beyond one answer', () => {
  it('are shown in pages without gaps and duplicates', async () => {
    const all: string[] = []
    const sizes: number[] = []
    let cursor: string | null = null
    do {
      const query: string = cursor === null ? '' : `?users_cursor=${cursor}`
      const device: Device = (await get(`/v1/di/devices/users${query}`)).json<Device>()
      expect(deviceSchema.strict().parse(device)).toEqual(device)
      all.push(...device.users_seen_on)
      sizes.push(device.users_seen_on.length)
      cursor = device.users_cursor
    } while (cursor !== null)
    const total = Math.ceil(usersCount / 1_000) * 1_000
    expect(sizes).toEqual([usersPageMax, total - usersPageMax])
    const expected = Array.from({ length: total }, (_, n) => `u-${n}`)
    expect(all).toEqual(expected.sort())
  })

  it('reject a cursor of another device, of its sessions, or of another tenant', async () => {
    const other = await rig.addTenant('other')
    const { users_cursor: cursor } = (await get('/v1/di/devices/users')).json<Device>()
    for (const [path, of] of [
      [`/v1/di/devices/many?users_cursor=${cursor}`, key],
      [`/v1/di/devices/users?sessions_cursor=${cursor}`, key],
      [`/v1/di/devices/users?users_cursor=${cursor}`, other],
    ] as const) {
      const answer = await rig.call(path, { key: of })
      expect([answer.status, answer.json().code]).toEqual([400, 'invalid_query'])
    }
  })
})

describe('a device with many sessions', () => {
  it('is complete in every form of transfer', async () => {
    const plain = await get('/v1/di/devices/many')
    const device = plain.json<Device>()
    expect(deviceSchema.strict().parse(device)).toEqual(device)
    expect(device.sessions).toHaveLength(10_000)
    expect(device.sessions_total).toBe(sessionsCount)
    expect(device.sessions[0]?.session_id).toBe(`s-${sessionsCount - 1}`)
    const compressed = await get('/v1/di/devices/many', gzip)
    expect(compressed.headers).toMatchObject({ 'content-encoding': 'gzip' })
    expect(String(compressed.headers.vary)).toMatch(/accept-encoding/i)
    expect(compressed.body.length).toBeLessThan(plain.body.length / 4)
    expect(JSON.parse(gunzipSync(compressed.body).toString('utf8'))).toEqual(device)
  })
})

describe('a page of alerts', () => {
  it('is compressed when it is large and the client accepts that', async () => {
    const plain = await get('/v1/di/alerts?limit=500')
    expect(plain.headers['content-encoding']).toBeUndefined()
    const compressed = await get('/v1/di/alerts?limit=500', gzip)
    expect(compressed.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(compressed.body).toString('utf8')).toBe(plain.text)
    expect(compressed.body.length).toBeLessThan(plain.body.length / 4)
    const small = await get('/v1/di/alerts?limit=20', gzip)
    expect(small.headers['content-encoding']).toBeUndefined()
    const unknown = await get('/v1/di/alerts?limit=500', { 'accept-encoding': 'br' })
    expect(unknown.text).toBe(plain.text)
  })

  it('is not compressed without a valid key, nor are other answers', async () => {
    for (const path of ['/openapi.json', '/docs/static/swagger-ui-bundle.js', '/v1/di/alerts']) {
      const answer = await rig.call(path, { headers: gzip })
      expect(answer.headers['content-encoding']).toBeUndefined()
    }
  })
})

// The last: the tenant has exhausted its rate afterwards.
describe('an answer', () => {
  it('costs its tenant one call per 50 rows, and small answers cost one', async () => {
    const left = async (path: string) =>
      Number(/r=(\d+)/.exec(String((await get(path)).headers.ratelimit))?.[1])
    await rig.postgres.query(
      `update tenants set rest_rate_per_second = 0.001, rest_burst = 1000 where tenant_id = 'acme'`,
    )
    try {
      const before = await left('/v1/di/devices/shared')
      expect(await left('/v1/di/alerts?limit=50')).toBe(before - 1)
      expect(await left('/v1/di/alerts?limit=500')).toBe(before - 1 - 500 / rowsPerCall)
      const after = await left('/v1/di/devices/many')
      expect(after).toBe(before - 1 - 500 / rowsPerCall - Math.ceil(10_001 / rowsPerCall))
      for (let n = 0; n < 5; n++) {
        if ((await rig.call('/v1/di/devices/many', { key })).status !== 200) break
      }
      const refused = await rig.call('/v1/di/alerts', { key })
      expect(refused.status).toBe(429)
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    } finally {
      await rig.postgres.query(`update tenants set rest_rate_per_second = null, rest_burst = null`)
    }
  })
})
