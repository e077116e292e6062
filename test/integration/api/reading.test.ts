// Users, events, single alerts and dispositions over HTTP, on real databases, with keys of every
// scope.
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type Alert,
  type AlertDetail,
  alertDetailSchema,
  alertUpdateSchema,
} from '#shared/core/alerts/alert-schema.ts'
import { eventSchema } from '#shared/core/http/event-schemas.ts'
import { userSchema } from '#shared/core/http/reading-schemas.ts'
import type { ApiKeyScope } from '#shared/core/tenants/api-key-scopes.ts'
import { hashApiKey } from '#shared/core/tenants/credentials.ts'
import { setDisposition } from '#shared/io/alerts/set-disposition.ts'
import { lockActiveKey } from '#shared/io/api-keys/api-key-store.ts'
import { smallQuery } from '#shared/io/clickhouse/clickhouse.ts'
import { setWebhookEvents } from '#shared/io/deliveries/webhook-store.ts'
import { createKey, listKeys, removeKey } from '../../../services/console/tenants/manage-keys.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { type ApiRig, acceptEvent, startApiRig } from '../../support/http/api-rig.ts'
import { until } from '../../support/process/until.ts'
import { hostingConnection } from '../../support/telemetry/connections.ts'
import { describeEvents } from './events.ts'
import { describeLabels } from './labels.ts'
import { describePhones } from './phones.ts'

let rig: ApiRig
/** The keys of two tenants. */
let key: string
let otherKey: string

beforeAll(async () => {
  // Calls that wait for a lock get their 503 then.
  rig = await startApiRig({ statementMs: 10_000 })
  key = await rig.addTenant('acme')
  otherKey = await rig.addTenant('other')
})

afterAll(() => rig?.close())

const sealer = {} as never
const keyDeps = () => ({ postgres: rig.postgres, sealer, randomBytes })
const newKey = async (name: string, scopes: readonly ApiKeyScope[], of = 'acme') =>
  (await createKey(keyDeps(), { tenantId: of, name, scopes, actor: 'ada@example.com' })).api_key

async function isWaitingForLock(): Promise<boolean> {
  const { rows } = await rig.postgres.query(
    `select 1 from pg_stat_activity where wait_event_type = 'Lock'`,
  )
  return rows.length > 0
}

async function raise(tenantId: string, sessionId: string, more = {}): Promise<string> {
  const candidate = makeAlertCandidate({ tenantId, sessionId, ...more })
  await rig.alerts.raiseAlerts([candidate], Date.now)
  return candidate.alertId
}

describe('an alert by its id', () => {
  test('is the alert of the list, with its tenant, its event and its user', async () => {
    const alertId = await raise('acme', 'by-id', { userId: 'u1', eventId: 'evt_of_it' })
    const answer = await rig.call(`/v1/di/alerts/${alertId}`, { key })
    expect(answer.status).toBe(200)
    const detail = alertDetailSchema.strict().parse(answer.json())
    const { details, ...alert } = detail
    expect(details).toMatchObject({ history: [], assignments: [], notes: [] })
    expect(alert).toMatchObject({
      alert_id: alertId,
      tenant_id: 'acme',
      event_id: 'evt_of_it',
      entity: { session: { session_id: 'by-id' }, user: { user_id: 'u1' } },
    })
    const listed = await rig.call('/v1/di/alerts?session_id=by-id', { key })
    expect(listed.json<{ data: Alert[] }>().data).toEqual([alert])
  })

  test('of another tenant gets the same answer as an unknown one', async () => {
    const foreign = await raise('other', 'foreign')
    const bodies = []
    for (const id of [foreign, 'alr_doesnotexist']) {
      const answer = await rig.call(`/v1/di/alerts/${id}`, { key })
      expect(answer.status).toBe(404)
      bodies.push({ ...answer.json(), request_id: '' })
    }
    expect(bodies[0]).toEqual(bodies[1])
    expect(bodies[0]).toMatchObject({ code: 'alert_not_found' })
  })
})

describe('a disposition', () => {
  const set = (alertId: string, of: string, body: unknown) =>
    rig.call(`/v1/di/alerts/${alertId}/disposition`, { key: of, method: 'POST', body })

  test('needs the scope alerts:write: the tenant’s key and a reading key get a 403', async () => {
    const alertId = await raise('acme', 'no-scope')
    for (const of of [key, await newKey('reader', ['read'])]) {
      const answer = await set(alertId, of, { disposition: 'CONFIRMED' })
      expect(answer.status).toBe(403)
      expect(answer.json()).toMatchObject({ code: 'scope_missing' })
    }
    const { rows } = await rig.postgres.query(
      'select disposition from alerts where alert_id = $1',
      [alertId],
    )
    expect(rows).toEqual([{ disposition: 'OPEN' }])
  })

  test('is set, counted and recorded under the name of the key', async () => {
    const writer = await newKey('case-tool', ['alerts:write'])
    const alertId = await raise('acme', 'scoped')
    const since = new Date().toISOString()
    const answer = await set(alertId, writer, { disposition: 'CONFIRMED', note: 'chargeback' })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json()).toMatchObject({ alert_id: alertId, disposition: 'CONFIRMED' })
    const history = await rig.postgres.query(
      'select actor, note, to_disposition from alert_dispositions where alert_id = $1',
      [alertId],
    )
    expect(history.rows).toEqual([
      { actor: 'api-key:case-tool', note: 'chargeback', to_disposition: 'CONFIRMED' },
    ])
    // A key with the scope can also read, and finds its changes by their time.
    const changed = await rig.call(`/v1/di/alerts?disposition=CONFIRMED&updated_after=${since}`, {
      key: writer,
    })
    expect(changed.json()).toMatchObject({ total: 1, data: [{ alert_id: alertId }] })
    const counted = await rig.call('/v1/di/alerts?disposition=CONFIRMED', { key })
    expect(counted.json()).toMatchObject({ total: 1 })
  })

  test('of another tenant is a 404 and changes nothing', async () => {
    const writer = await newKey('intruder', ['alerts:write'])
    const foreign = await raise('other', 'guarded')
    const answer = await set(foreign, writer, { disposition: 'FALSE_POSITIVE' })
    expect(answer.status).toBe(404)
    const found = await rig.call(`/v1/di/alerts/${foreign}`, { key: otherKey })
    expect(found.json()).toMatchObject({ disposition: 'OPEN' })
  })

  test('with a removed key is a 401 at once', async () => {
    const writer = await newKey('short-lived', ['alerts:write'])
    const alertId = await raise('acme', 'removed-key')
    expect((await set(alertId, writer, { disposition: 'REVIEWED' })).status).toBe(200)
    await removeKey(keyDeps(), { tenantId: 'acme', name: 'short-lived', actor: 'ada@example.com' })
    expect((await set(alertId, writer, { disposition: 'OPEN' })).status).toBe(401)
    expect((await rig.call('/v1/di/alerts', { key: writer })).status).toBe(401)
  })

  test.each([
    [
      'removed',
      (tenantId: string) => removeKey(keyDeps(), { tenantId, name: 'slow', actor: 'ada' }),
    ],
    [
      'of a tenant that was suspended',
      (tenantId: string) =>
        rig.postgres.query(`update tenants set status = 'suspended' where tenant_id = $1`, [
          tenantId,
        ]),
    ],
  ])('changes nothing with a key that was %s before its body arrived', async (name, end) => {
    const tenantId = `slow-${name.length}`
    await rig.addTenant(tenantId)
    const writer = await newKey('slow', ['alerts:write'], tenantId)
    const alertId = await raise(tenantId, 'slow')
    const body = JSON.stringify({ disposition: 'CONFIRMED' })
    const status = new Promise<number | undefined>((resolve, reject) => {
      const sent = request(new URL(`/v1/di/alerts/${alertId}/disposition`, rig.url), {
        method: 'POST',
        headers: {
          authorization: `Bearer ${writer}`,
          'content-type': 'application/json',
          'content-length': body.length,
        },
      })
      sent.on('error', reject)
      sent.on('response', (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      sent.write(body.slice(0, 5))
      const isAuthenticated = async () => {
        const { rows } = await rig.postgres.query(
          'select 1 from api_keys where tenant_id = $1 and last_used_at is not null',
          [tenantId],
        )
        return rows.length > 0
      }
      until('the key is found', isAuthenticated)
        .then((): Promise<unknown> => end(tenantId))
        .then(() => sent.end(body.slice(5)), reject)
    })
    expect(await status).toBe(401)
    const { rows } = await rig.postgres.query(
      'select disposition from alerts where alert_id = $1',
      [alertId],
    )
    expect(rows).toEqual([{ disposition: 'OPEN' }])
  })

  test('that waits for the lock of its tenant leaves connections to other tenants', async () => {
    await rig.addTenant('locked')
    const writer = await newKey('many', ['alerts:write'], 'locked')
    const alertId = await raise('locked', 'locked')
    await rig.postgres.transaction(async (tx) => {
      await tx.query(`select 1 from alert_sequences where tenant_id = 'locked' for update`)
      const changes = Array.from({ length: 60 }, () =>
        set(alertId, writer, { disposition: 'CONFIRMED' }),
      )
      await until('they wait', isWaitingForLock)
      expect((await rig.call('/v1/di/alerts', { key: otherKey })).status).toBe(200)
      const answers = await Promise.all(changes)
      expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([503]))
    })
    expect((await set(alertId, writer, { disposition: 'CONFIRMED' })).status).toBe(200)
  })

  test('counts as twenty calls of the rate, so a tenant that only writes is limited', async () => {
    await rig.addTenant('writing')
    await rig.postgres.query(
      `update tenants set rest_rate_per_second = 0.001, rest_burst = 70
       where tenant_id = 'writing'`,
    )
    const writer = await newKey('busy', ['alerts:write'], 'writing')
    const alertId = await raise('writing', 'writing')
    const dispositions = ['CONFIRMED', 'OPEN', 'CONFIRMED', 'OPEN', 'CONFIRMED']
    const statuses = await Promise.all(
      dispositions.map(async (disposition) => (await set(alertId, writer, { disposition })).status),
    )
    expect(statuses.sort()).toEqual([200, 200, 200, 429, 429])
  })

  test('is possible for a tenant with a smaller burst, from a full bucket', async () => {
    await rig.addTenant('small')
    await rig.postgres.query(
      `update tenants set rest_rate_per_second = 0.001, rest_burst = 3 where tenant_id = 'small'`,
    )
    const writer = await newKey('small', ['alerts:write'], 'small')
    const alertId = await raise('small', 'small')
    expect((await set(alertId, writer, { disposition: 'CONFIRMED' })).status).toBe(200)
    expect((await set(alertId, writer, { disposition: 'OPEN' })).status).toBe(429)
  })
})

describe('dispositions of many alerts', () => {
  const setMany = (of: string, body: unknown, headers: Record<string, string> = {}) =>
    rig.call('/v1/di/alerts/dispositions', { key: of, method: 'POST', body, headers })
  const counts = async (of: string) => {
    const read = async (disposition: string) => {
      const answer = await rig.call(`/v1/di/alerts?disposition=${disposition}`, { key: of })
      return answer.json<{ total: number }>().total
    }
    return { open: await read('OPEN'), confirmed: await read('CONFIRMED') }
  }

  test('are set in one transaction, answered in order, counted, recorded and audited', async () => {
    const tenantKey = await rig.addTenant('bulk')
    const writer = await newKey('crm', ['alerts:write'], 'bulk')
    const ids = []
    for (const session of ['b1', 'b2', 'b3', 'b4']) ids.push(await raise('bulk', session))
    const foreign = await raise('other', 'not-of-bulk')
    const first = { alert_ids: [ids[1]], disposition: 'CONFIRMED' }
    expect((await setMany(writer, first)).json()).toMatchObject({ changed: 1 })
    const asked = [ids[3], foreign, ids[1], 'alr_unknown', ids[0]]
    const answer = await setMany(writer, {
      alert_ids: asked,
      disposition: 'CONFIRMED',
      note: 'chargebacks of May',
    })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json()).toEqual({
      data: [
        { alert_id: ids[3], outcome: 'changed' },
        { alert_id: foreign, outcome: 'not_found' },
        { alert_id: ids[1], outcome: 'unchanged' },
        { alert_id: 'alr_unknown', outcome: 'not_found' },
        { alert_id: ids[0], outcome: 'changed' },
      ],
      changed: 2,
    })
    expect(await counts(tenantKey)).toEqual({ open: 1, confirmed: 3 })
    const detail = await rig.call(`/v1/di/alerts/${ids[3]}`, { key: tenantKey })
    const { updated_at, details } = detail.json<AlertDetail>()
    const { history } = details
    expect(history).toEqual([
      {
        at: updated_at,
        by: { kind: 'api_key', id: 'crm' },
        from: 'OPEN',
        to: 'CONFIRMED',
        note: 'chargebacks of May',
      },
    ])
    const { rows } = await rig.postgres.query(
      `select count(*)::int as entries, count(distinct after ->> 'alert_id')::int as alerts,
         min(actor) as actor, bool_or(after ? 'job_id') as of_a_job
       from audit_log where tenant_id = 'bulk' and action = 'alert.dispositioned'`,
    )
    expect(rows).toEqual([{ entries: 3, alerts: 3, actor: 'api-key:crm', of_a_job: false }])
    const other = await rig.call(`/v1/di/alerts/${foreign}`, { key: otherKey })
    expect(other.json()).toMatchObject({ disposition: 'OPEN', details: { history: [] } })
  })

  test('happen once for an idempotency key, and need the scope', async () => {
    await rig.addTenant('bulk-once')
    const writer = await newKey('crm', ['alerts:write'], 'bulk-once')
    const alertId = await raise('bulk-once', 's')
    const set = (disposition: string, once: string) =>
      setMany(writer, { alert_ids: [alertId], disposition }, { 'idempotency-key': once })
    const made = await set('CONFIRMED', 'one')
    await set('OPEN', 'two')
    const again = await set('CONFIRMED', 'one')
    expect([again.text, again.headers['idempotent-replayed']]).toEqual([made.text, 'true'])
    const reader = await newKey('reader', ['read'], 'bulk-once')
    const body = { alert_ids: [alertId], disposition: 'CONFIRMED' }
    expect((await setMany(reader, body)).status).toBe(403)
    const now = await rig.call(`/v1/di/alerts/${alertId}`, { key: reader })
    expect(now.json()).toMatchObject({ disposition: 'OPEN' })
  })

  test('take 1 to 500 alerts, each once, and cost ten calls for each', async () => {
    await rig.addTenant('bulk-bounds')
    const writer = await newKey('crm', ['alerts:write'], 'bulk-bounds')
    const ids = (count: number) => Array.from({ length: count }, (_, n) => `alr_${n}`)
    for (const alert_ids of [[], ids(501), ['alr_1', 'alr_1'], ['']]) {
      const answer = await setMany(writer, { alert_ids, disposition: 'OPEN' })
      expect(answer.status).toBe(400)
      const [error] = answer.json<{ errors: { path: string }[] }>().errors
      expect(error!.path).toMatch(/^\$\.alert_ids/)
    }
    const longest = ids(500).map((id) => id.padEnd(64, 'x'))
    const note = '\u0007'.repeat(2_000)
    // The longest body there is.
    const most = await setMany(writer, { alert_ids: longest, disposition: 'OPEN', note })
    expect([most.status, most.json().changed]).toEqual([200, 0])
    // 500 alerts are 5,000 calls, of which the bucket owes at most its burst.
    expect(most.headers.ratelimit).toMatch(/^"tenant";r=0;t=[34]$/)
  })
})

describe('alerts after a seq', () => {
  test('come ascending from the next one on, with filters, and never with a cursor', async () => {
    const tenantKey = await rig.addTenant('by-seq')
    for (const n of [1, 2, 3, 4, 5]) {
      const platform = n % 2 === 0 ? 'ios' : 'android'
      await raise('by-seq', `s${n}`, { platform, sdkVersion: '4.2.0', deviceModel: 'Pixel 8' })
    }
    const list = async (query: string) => {
      const answer = await rig.call(`/v1/di/alerts?${query}`, { key: tenantKey })
      return answer.json<{ data: Alert[]; total: number; next_cursor: null }>()
    }
    const seqs = async (query: string) => (await list(query)).data.map(({ seq }) => seq)
    expect(await seqs('after_seq=0&limit=2')).toEqual([1, 2])
    expect(await seqs('after_seq=2&limit=2')).toEqual([3, 4])
    expect(await seqs('after_seq=4&limit=2')).toEqual([5])
    expect(await seqs('after_seq=5')).toEqual([])
    expect(await list('after_seq=999999999999999')).toMatchObject({ data: [], total: 5 })
    expect(await seqs('after_seq=1&platform=ios')).toEqual([2, 4])
    const page = await list('after_seq=1&platform=android&limit=1')
    expect(page).toMatchObject({ total: 3, limit: 1, next_cursor: null })
    expect(page.data[0]).toMatchObject({
      seq: 3,
      platform: 'android',
      sdk_version: '4.2.0',
      device_model: 'Pixel 8',
    })
    expect(page.data[0]).not.toHaveProperty('app_version')
    const both = await rig.call('/v1/di/alerts?after_seq=1&cursor=x', { key: tenantKey })
    expect(both.json()).toMatchObject({ status: 400, errors: [{ path: 'cursor' }] })
  })
})

describe('the event alert.updated', () => {
  const updatesOf = async (tenantId: string) => {
    const { rows } = await rig.postgres.query<{
      delivery_id: string
      alert_id: string
      state: string
      body: string
    }>(
      `select delivery_id, alert_id, state, convert_from(body, 'UTF8') as body from deliveries
       where tenant_id = $1 and event = 'alert.updated' order by created_at, delivery_id`,
      [tenantId],
    )
    return rows
  }

  test('is created with each change, for tenants that asked for it, and with no other', async () => {
    const tenantKey = await rig.addTenant('told')
    await rig.addTenant('not-told')
    await setWebhookEvents(rig.postgres, 'told', ['risk.alert', 'alert.updated'])
    const one = await raise('told', 's1', { userId: 'ada' })
    const two = await raise('told', 's2')
    const untold = await raise('not-told', 's1')
    for (const tenantId of ['told', 'not-told']) {
      const writer = await newKey('crm', ['alerts:write'], tenantId)
      const post = (path: string, body: unknown) =>
        rig.call(`/v1/di/alerts/${path}`, { key: writer, method: 'POST', body })
      const own = tenantId === 'told' ? [one, two] : [untold]
      await post(`${own[0]}/disposition`, { disposition: 'CONFIRMED', note: 'ünï' })
      await post(`${own[0]}/disposition`, { disposition: 'CONFIRMED' })
      await post('dispositions', { alert_ids: [...own, 'alr_0'], disposition: 'CONFIRMED' })
    }
    expect(await updatesOf('not-told')).toEqual([])
    const updates = await updatesOf('told')
    expect(updates.map(({ alert_id }) => alert_id)).toEqual([one, two])
    for (const { alert_id: alertId, state, body, delivery_id: deliveryId } of updates) {
      expect([state, deliveryId]).toEqual(['pending', expect.stringMatching(/^dlv_.{26}$/)])
      const detail = await rig.call(`/v1/di/alerts/${alertId}`, { key: tenantKey })
      const { details, ...alert } = detail.json<AlertDetail>()
      const sent = alertUpdateSchema.strict().parse(JSON.parse(body))
      expect(sent).toEqual({ ...alert, details: { change: details.history[0] } })
    }
    expect(new Set(updates.map((update) => update.delivery_id)).size).toBe(2)
  })

  test('is not there when the change was rolled back', async () => {
    await rig.addTenant('undone')
    await setWebhookEvents(rig.postgres, 'undone', ['risk.alert', 'alert.updated'])
    const alertId = await raise('undone', 's')
    const change = { alertId, disposition: 'CONFIRMED', note: null, actor: 'admin' } as const
    await expect(
      rig.postgres.transaction(async (tx) => {
        const inside = {
          ...rig.postgres,
          transaction: (work: (q: typeof tx) => unknown) => work(tx),
        }
        await setDisposition(inside as never, change)
        throw new Error('the process dies')
      }),
    ).rejects.toThrow('the process dies')
    expect(await updatesOf('undone')).toEqual([])
    await rig.alerts.setDisposition(change)
    expect(await updatesOf('undone')).toHaveLength(1)
  })
})

describe('an unknown query parameter', () => {
  test('is a 400 that names it', async () => {
    const alertId = await raise('acme', 'no-query')
    for (const [path, method] of [
      [`/v1/di/alerts/${alertId}`, 'GET'],
      [`/v1/di/alerts/${alertId}/disposition`, 'POST'],
      ['/v1/di/events/evt_doesnotexistatall0000', 'GET'],
    ] as const) {
      const body = method === 'POST' ? { disposition: 'OPEN' } : undefined
      const answer = await rig.call(`${path}?tenant=other`, { key, method, body })
      expect(answer.status, path).toBe(400)
      expect(answer.json()).toMatchObject({ code: 'invalid_query', errors: [{ path: 'tenant' }] })
    }
  })
})

describe('named keys', () => {
  test('are listed without the key, have unique names, and leave the tenant’s key', async () => {
    await newKey('twice', ['read'])
    await expect(newKey('twice', ['alerts:write'])).rejects.toMatchObject({ code: 'key_exists' })
    const { data } = await listKeys(keyDeps(), 'acme')
    const twice = data.find((one) => one.name === 'twice')
    expect(twice).toMatchObject({ scopes: ['read'], created_by: 'ada@example.com' })
    expect(JSON.stringify(data)).not.toMatch(/dpk_live_[0-9A-Za-z]{43}/)
    expect((await rig.call('/v1/di/alerts', { key })).status).toBe(200)
    const removal = { tenantId: 'acme', name: 'none', actor: 'ada@example.com' }
    await expect(removeKey(keyDeps(), removal)).rejects.toMatchObject({ code: 'key_not_found' })
  })

  test('are not removed during a change that uses them', async () => {
    const keyHash = hashApiKey(await newKey('held', ['alerts:write']))
    let removal: Promise<unknown> = Promise.resolve()
    await rig.postgres.transaction(async (tx) => {
      expect(await lockActiveKey(tx, keyHash)).toBe(true)
      let removed = false
      removal = removeKey(keyDeps(), { tenantId: 'acme', name: 'held', actor: 'ada' }).then(() => {
        removed = true
      })
      removal.catch(() => undefined)
      await until('it waits', async () => removed || isWaitingForLock())
      expect(removed).toBe(false)
    })
    await removal
    await rig.postgres.transaction(async (tx) => {
      expect(await lockActiveKey(tx, keyHash)).toBe(false)
    })
  })

  test('are at most a hundred', async () => {
    await rig.addTenant('many-keys')
    for (let n = 0; n < 100; n++) await newKey(`k${n}`, ['read'], 'many-keys')
    await expect(newKey('one-more', ['read'], 'many-keys')).rejects.toMatchObject({
      code: 'conflict',
    })
  })
})

describe('a user', () => {
  const startMs = Date.UTC(2026, 6, 1)
  const at = (minutes: number) => startMs + minutes * 60_000

  beforeAll(async () => {
    const event = (deviceId: string, minutes: number, score: number, tenantId = 'acme') =>
      acceptEvent({
        tenantId,
        deviceId,
        score,
        sessionId: `s-${deviceId}-${minutes}`,
        userId: 'mel/α',
        atMs: at(minutes),
      })
    await rig.telemetry.insertTelemetry([
      ...[event('d1', 0, 10), event('d1', 50, 81), event('d2', 20, 30), event('d3', 90, 0)],
      event('d9', 500, 99, 'other'),
    ])
  })

  const getUser = (query = '', of = key) =>
    rig.call(`/v1/di/users/${encodeURIComponent('mel/α')}${query}`, { key: of })

  test('has its devices, most recent first, with times and peak of this tenant only', async () => {
    const answer = await getUser()
    expect(answer.status, answer.text).toBe(200)
    expect(userSchema.strict().parse(answer.json())).toEqual({
      user_id: 'mel/α',
      first_seen_at: new Date(at(0)).toISOString(),
      last_seen_at: new Date(at(90)).toISOString(),
      peak_rasp_score: 81,
      risk_score: 81,
      devices: [device('d3', 90, 90, 0), device('d1', 0, 50, 81), device('d2', 20, 20, 30)],
      devices_total: 3,
      devices_cursor: null,
    })
    expect((await rig.call('/v1/di/users/mel/%CE%B1', { key })).json()).toEqual(answer.json())
  })

  const device = (id: string, first: number, last: number, peak: number) => ({
    device_id: id,
    first_seen_at: new Date(at(first)).toISOString(),
    last_seen_at: new Date(at(last)).toISOString(),
    peak_rasp_score: peak,
    risk_score: peak,
    phone: null,
  })

  test('is paged by cursor, each device once; foreign cursors are rejected', async () => {
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const query: string = `?devices_limit=1${cursor && `&devices_cursor=${cursor}`}`
      const page = (await getUser(query)).json<{
        devices: { device_id: string }[]
        devices_cursor: string | null
      }>()
      seen.push(...page.devices.map((one) => one.device_id))
      if (cursor === '') {
        const foreign = await getUser(`?devices_cursor=${page.devices_cursor}`, otherKey)
        expect(foreign.status).toBe(400)
      }
      cursor = page.devices_cursor
    }
    expect(seen).toEqual(['d3', 'd1', 'd2'])
  })

  test('that is unknown is a 404', async () => {
    const answer = await rig.call('/v1/di/users/nobody', { key })
    expect(answer.status).toBe(404)
    expect(answer.json()).toMatchObject({ code: 'user_not_found' })
  })
})

describe('an event', () => {
  test('has its score, action and reasons, for its own tenant only', async () => {
    const accepted = acceptEvent({
      tenantId: 'acme',
      deviceId: 'd',
      sessionId: 's',
      userId: 'u',
      score: 45,
      flags: ['VPN_SUSPECTED'],
      atMs: Date.UTC(2026, 6, 2),
    })
    const event = { ...accepted, connection: hostingConnection }
    await rig.telemetry.insertTelemetry([event, event])
    const answer = await rig.call(`/v1/di/events/${event.event_id}`, { key })
    expect(answer.status, answer.text).toBe(200)
    expect(eventSchema.strict().parse(answer.json())).toEqual({
      event_id: event.event_id,
      tenant_id: 'acme',
      device_id: 'd',
      session_id: 's',
      user_id: 'u',
      sdk_meta: { sdk_version: '1.0.0', platform: 'android', batch_type: 'event' },
      connection: {
        country: 'DE',
        asn: 64_500,
        organization: 'Example Hosting Ltd',
        network: '203.0.113.0/24',
        kinds: ['vpn', 'hosting'],
      },
      phone: null,
      received_at: '2026-07-02T00:00:00.000Z',
      rasp_score: 45,
      rasp_action: 'REVIEW',
      risk_score: 45,
      action: 'REVIEW',
      flags: ['VPN_SUSPECTED'],
      reasons: [{ code: 'VPN_SUSPECTED', weight: 1, evidence: {} }],
      policy_version: 1,
    })
    for (const [id, of] of [
      [event.event_id, otherKey],
      ['evt_doesnotexistatall0000', key],
    ] as const) {
      const absent = await rig.call(`/v1/di/events/${id}`, { key: of })
      expect(absent.status).toBe(404)
      expect(absent.json()).toMatchObject({ code: 'event_not_found' })
    }
  })

  test('is read with the settings of a small query', async () => {
    const query = vi.spyOn(rig.clickhouse, 'query')
    await rig.call('/v1/di/events/evt_doesnotexistatall0000', { key })
    expect(query).toHaveBeenCalledOnce()
    expect(query.mock.calls[0]![0]).toMatchObject({ clickhouse_settings: smallQuery })
    query.mockRestore()
  })
})

describeEvents(() => rig)
describePhones(() => rig)

describe('labels', () => {
  describeLabels({ rig: () => rig, key: () => key, otherKey: () => otherKey }, (name) =>
    newKey(name, ['labels:write']),
  )
})
