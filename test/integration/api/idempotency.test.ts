// Calls with an `Idempotency-Key`: one change for a key, whatever crashes, and one answer.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { idempotentAnswersMax } from '#shared/core/base/limits/http.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { ApiKeyScope } from '#shared/core/tenants/api-key-scopes.ts'
import {
  answerOnce,
  eraseAnswers,
  type OnceCall,
  removeExpiredAnswers,
} from '#shared/io/http/idempotent-answers.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { createKey } from '../../../services/console/tenants/manage-keys.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { type ApiRig, startApiRig } from '../../support/http/api-rig.ts'
import { until } from '../../support/process/until.ts'

let rig: ApiRig
let writer: string
let second: string

beforeAll(async () => {
  rig = await startApiRig()
  await rig.addTenant('acme')
  writer = await newKey('case-tool')
  second = await newKey('other-tool')
  await rig.postgres.query('create table effects (name text)')
})
afterAll(() => rig?.close())

async function newKey(
  name: string,
  scopes: readonly ApiKeyScope[] = ['alerts:write'],
): Promise<string> {
  const deps = { postgres: rig.postgres, sealer: {} as never, randomBytes }
  const wanted = { tenantId: 'acme', name, scopes, actor: 'ada' }
  return (await createKey(deps, wanted)).api_key
}

async function raise(sessionId: string): Promise<string> {
  const candidate = makeAlertCandidate({ tenantId: 'acme', sessionId })
  await rig.alerts.raiseAlerts([candidate], Date.now)
  return candidate.alertId
}

const set = (alertId: string, disposition: string, idempotencyKey?: string, key = writer) =>
  rig.call(`/v1/di/alerts/${alertId}/disposition`, {
    key,
    method: 'POST',
    body: { disposition },
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
  })

async function countChanges(alertId: string): Promise<number> {
  const { rows } = await rig.postgres.query<{ n: number }>(
    'select count(*)::int as n from alert_dispositions where alert_id = $1',
    [alertId],
  )
  return rows[0]!.n
}

describe('a disposition with an idempotency key', () => {
  it('is set once: a repeat gets the first answer, also when others changed it since', async () => {
    const alertId = await raise('once')
    const key = randomUUID()
    const first = await set(alertId, 'CONFIRMED', key)
    expect(first.status, first.text).toBe(200)
    expect(first.headers).not.toHaveProperty('idempotent-replayed')
    await set(alertId, 'FALSE_POSITIVE')
    const again = await set(alertId, 'CONFIRMED', key)
    expect([again.status, again.text]).toEqual([200, first.text])
    expect(again.headers['idempotent-replayed']).toBe('true')
    expect(await countChanges(alertId)).toBe(2)
    const now = await rig.call(`/v1/di/alerts/${alertId}`, { key: writer })
    expect(now.json()).toMatchObject({ disposition: 'FALSE_POSITIVE' })
  })

  it('rejects the key for another body or another alert', async () => {
    const [one, two] = [await raise('reused-1'), await raise('reused-2')]
    const key = randomUUID()
    await set(one, 'CONFIRMED', key)
    for (const answer of [await set(one, 'REVIEWED', key), await set(two, 'CONFIRMED', key)]) {
      expect([answer.status, answer.json().code]).toEqual([422, 'idempotency_key_reused'])
    }
    expect([await countChanges(one), await countChanges(two)]).toEqual([1, 0])
  })

  it('does not meet the same key of another API key', async () => {
    const alertId = await raise('two-tools')
    const key = randomUUID()
    await set(alertId, 'CONFIRMED', key)
    const other = await set(alertId, 'REVIEWED', key, second)
    expect([other.status, other.json().disposition]).toEqual([200, 'REVIEWED'])
  })

  it('keeps no answer of an error', async () => {
    const key = randomUUID()
    expect((await set('alr_unknown', 'CONFIRMED', key)).status).toBe(404)
    const alertId = await raise('after-error')
    expect((await set(alertId, 'CONFIRMED', key)).status).toBe(200)
  })

  it.each(['', 'a b', 'é', 'x'.repeat(256)])('rejects the key %j', async (key) => {
    const answer = await set(await raise('odd-key'), 'CONFIRMED', key)
    expect([answer.status, answer.json().code]).toEqual([400, 'idempotency_key_refused'])
    expect(answer.json()).toMatchObject({ errors: [{ path: 'Idempotency-Key' }] })
  })

  it('is set once by many calls at the same time', async () => {
    const alertId = await raise('at-once')
    const key = randomUUID()
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => set(alertId, 'CONFIRMED', key)),
    )
    const statuses = new Set(answers.map(({ status }) => status))
    expect([...statuses].filter((status) => status !== 409)).toEqual([200])
    expect(new Set(answers.filter((one) => one.status === 200).map(({ text }) => text)).size).toBe(
      1,
    )
    expect(await countChanges(alertId)).toBe(1)
  })
})

it('a list entry is added once: a repeat does not add again what was removed since', async () => {
  const key = await newKey('lister', ['lists:write'])
  const body = { list: 'deny', kind: 'device', id: 'phone', reason: 'chargeback' }
  const headers = { 'idempotency-key': randomUUID() }
  const add = () => rig.call('/v1/di/lists', { key, method: 'POST', body, headers })
  const first = await add()
  expect(first.status, first.text).toBe(201)
  const removed = await rig.call(`/v1/di/lists/${first.json().entry_id}`, { key, method: 'DELETE' })
  expect(removed.status).toBe(200)
  const again = await add()
  expect([again.status, again.text]).toEqual([201, first.text])
  expect(again.headers['idempotent-replayed']).toBe('true')
  expect((await rig.call('/v1/di/lists', { key })).json()).toMatchObject({ total: 0 })
  expect(first.json()).not.toHaveProperty('warnings')
  const spaced = await rig.call('/v1/di/lists', {
    key,
    method: 'POST',
    body: { ...body, id: 'p ' },
  })
  expect([spaced.status, spaced.json().warnings]).toEqual([
    201,
    [expect.stringContaining('white space')],
  ])
  const packed = { 'content-encoding': 'gzip' }
  const refused = await rig.call('/v1/di/lists', { key, method: 'POST', body, headers: packed })
  expect([refused.status, refused.json().code]).toEqual([415, 'unsupported_media_type'])
})

const sha256 = (text: string) => createHash('sha256').update(text).digest()
const toCall = (more: Partial<OnceCall> = {}): OnceCall => ({
  tenantId: 'acme',
  actor: 'ada@example.com',
  key: randomUUID(),
  requestSha256: sha256('a request'),
  ...more,
})

/** Leaves one row for each time that it takes effect. */
async function affect(db: Queryable, name: string): Promise<{ name: string }> {
  await db.query('insert into effects (name) values ($1)', [name])
  return { name }
}

async function countEffects(name: string): Promise<number> {
  const { rows } = await rig.postgres.query('select 1 from effects where name = $1', [name])
  return rows.length
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'answered',
    (error: unknown) => (error instanceof Problem ? error.code : String(error)),
  )

describe('a change', () => {
  it.each(['before its effect', 'after its effect'])(
    'crashes %s and happens once',
    async (when) => {
      const call = toCall()
      const crashed = answerOnce(rig.postgres, call, async (db) => {
        if (when === 'after its effect') await db.transaction((tx) => affect(tx, call.key))
        await db.query('select pg_terminate_backend(pg_backend_pid())')
      })
      expect(await codeOf(crashed)).toBe('unavailable')
      expect(await countEffects(call.key)).toBe(0)
      const attempt = () => answerOnce(rig.postgres, call, (db) => affect(db, call.key))
      expect(await attempt()).toEqual({ answer: { name: call.key }, replayed: false })
      expect(await attempt()).toEqual({ answer: { name: call.key }, replayed: true })
      expect(await countEffects(call.key)).toBe(1)
    },
  )

  it('in progress is a 409 for a repeat, which gets the answer later', async () => {
    const call = toCall()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    let began = false
    const first = answerOnce(rig.postgres, call, async (db) => {
      const answer = await affect(db, call.key)
      began = true
      await held
      return answer
    })
    await until('the change began', async () => (began ? true : null))
    const repeat = () => answerOnce(rig.postgres, call, (db) => affect(db, call.key))
    expect(await codeOf(repeat())).toBe('idempotency_key_in_flight')
    release()
    await first
    expect(await repeat()).toMatchObject({ replayed: true })
    expect(await countEffects(call.key)).toBe(1)
  })

  it('is new a day later', async () => {
    const call = toCall()
    await answerOnce(rig.postgres, call, (db) => affect(db, call.key))
    await rig.postgres.query(
      `update idempotent_answers set created_at = clock_timestamp() - interval '25 hours'
       where idempotency_key = $1`,
      [call.key],
    )
    const later = { ...call, requestSha256: sha256('another request') }
    const again = await answerOnce(rig.postgres, later, (db) => affect(db, call.key))
    expect(again.replayed).toBe(false)
    expect(await countEffects(call.key)).toBe(2)
    expect((await answerOnce(rig.postgres, later, (db) => affect(db, 'x'))).replayed).toBe(true)
    expect(await removeExpiredAnswers(rig.postgres, Date.now(), 10)).toBe(0)
    expect(await removeExpiredAnswers(rig.postgres, Date.now() + 86_401_000, 2)).toBe(2)
  })

  it('finds no room beyond the bound of its caller; others do', async () => {
    const actor = 'busy@example.com'
    await rig.postgres.query(
      `insert into idempotent_answers (tenant_id, actor, idempotency_key, request_sha256, answer)
       select 'acme', $1, n::text, $2, '{}' from generate_series(1, $3::int) as n`,
      [actor, sha256('old'), idempotentAnswersMax],
    )
    const name = randomUUID()
    const attempt = (more: Partial<OnceCall>) =>
      codeOf(answerOnce(rig.postgres, toCall(more), (db) => affect(db, name)))
    expect(await attempt({ actor })).toBe('rate_limited')
    expect(await attempt({ actor, tenantId: 'other' })).toBe('answered')
    expect(await attempt({})).toBe('answered')
    expect(await countEffects(name)).toBe(2)
    // Answers that are no longer kept take no room, also before they are removed.
    await rig.postgres.query(
      "update idempotent_answers set created_at = now() - interval '1 day' where actor = $1",
      [actor],
    )
    expect(await attempt({ actor })).toBe('answered')
  })

  it.each(['gone "device"\\1', 'd', 'a.*(b', 'ü-1'])(
    'leaves no answer with the erased id %j of its tenant',
    async (id) => {
      const answer = (tenant: string, device: string) => ({ tenant_id: tenant, device_id: device })
      const calls = [
        [toCall({ tenantId: '' }), answer('acme', id)],
        [toCall(), { device_id: id }],
        [toCall({ tenantId: '' }), { list: 'deny', id }],
        [toCall(), { note: `saw it:\n${id}.` }],
        [toCall({ tenantId: 'other' }), answer('other', id)],
        [toCall(), answer('acme', 'another device')],
        [toCall(), answer('acme', `${id}2`)],
        [toCall(), answer('acme', `my-${id}`)],
        [toCall(), answer('acme', id.toUpperCase())],
      ] as const
      for (const [call, body] of calls) await answerOnce(rig.postgres, call, async () => body)
      await eraseAnswers(rig.postgres, 'acme', id)
      const left = await Promise.all(
        calls.map(async ([call]) => {
          const repeat = await answerOnce(rig.postgres, call, async () => 'none')
          return repeat.replayed
        }),
      )
      expect(left).toEqual([false, false, false, false, true, true, true, true, true])
    },
  )
})
