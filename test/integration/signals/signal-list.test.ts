// `GET /v1/di/signals` over HTTP on a real PostgreSQL, and without any ClickHouse: a tenant sees
// the policy that it has at that moment, and never another's.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { problemSchema } from '#shared/core/http/api-schemas.ts'
import { problemCodes } from '#shared/core/http/problem.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import { type SignalList, signalListSchema } from '#shared/core/signals/signal-list.ts'
import { serverCatalog, signalCatalog } from '#shared/core/signals/signals.ts'
import { createPolicyStore } from '#shared/io/policies/policy-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { type Answer, type ApiRig, addApiKey, createApiRig } from '../../support/http/api-rig.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

let postgres: TestPostgres
let rig: ApiRig

beforeAll(async () => {
  postgres = await startPostgres()
  const url = await postgres.createMigratedDatabase()
  // No server listens there.
  rig = await createApiRig({ postgres: url, clickhouse: 'http://127.0.0.1:1' })
})

afterAll(async () => {
  await rig?.close()
  await postgres?.stop()
})

const toText = (document: unknown) => {
  const text = JSON.stringify(document)
  return { hash: toPolicyHash(document as Policy), text }
}

/** Adds a tenant with its first policy, as the console does, and returns its key. */
async function addTenant(tenantId: string, document: unknown = defaultPolicy): Promise<string> {
  await createTenantStore(rig.postgres).insertTenant({
    tenantId,
    name: '',
    environment: 'live',
    webhookUrl: null,
    createdBy: 'test',
    policy: toText(document),
  })
  return addApiKey(rig.postgres, tenantId, 'live')
}

function setPolicy(tenantId: string, document: unknown): Promise<number> {
  const change = { tenantId, policy: toText(document), createdBy: 'test' }
  return rig.postgres.transaction((tx) => createPolicyStore(tx).insertVersion(change))
}

async function getSignals(key: string): Promise<SignalList> {
  const answer = await rig.call('/v1/di/signals', { key })
  expect(answer.status, answer.text).toBe(200)
  const list = answer.json<SignalList>()
  expect(signalListSchema.strict().parse(list)).toEqual(list)
  return list
}

const weighing = (name: string, suBinary: number): Policy => {
  const policy = structuredClone(defaultPolicy)
  policy.name = name
  policy.categories.root.signals.su_binary = suBinary
  return policySchema.parse(policy)
}

const weightOf = (list: SignalList, signal: string) =>
  list.categories.flatMap((one) => one.signals).find((one) => one.signal === signal)?.weight

function expectProblem(answer: Answer, code: keyof typeof problemCodes): void {
  const body = answer.json()
  expect(body).toMatchObject({ code, status: problemCodes[code][0] })
  expect(answer.status).toBe(problemCodes[code][0])
  expect(problemSchema.strict().parse(body)).toEqual(body)
}

describe('the signals of a tenant', () => {
  test('are shown only with its key', async () => {
    const key = await addTenant('guarded')
    for (const headers of [{}, { authorization: 'Bearer x' }, { authorization: `Basic ${key}` }]) {
      const answer = await rig.call('/v1/di/signals', { headers })
      expectProblem(answer, 'unauthorized')
      expect(answer.headers['www-authenticate']).toBe('Bearer')
      expect(answer.text).not.toContain('su_binary')
    }
    const answer = await rig.call('/v1/di/signals', { key })
    expect(answer.status).toBe(200)
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.headers['ratelimit-policy']).toBe('"tenant";q=2000;w=2')
  })

  test('accept no parameters, and name the one that was sent', async () => {
    const key = await addTenant('asking')
    for (const name of ['category', 'limit', 'tenant_id']) {
      const answer = await rig.call(`/v1/di/signals?${name}=root`, { key })
      expectProblem(answer, 'invalid_query')
      expect(answer.json().errors).toEqual([
        { path: name, message: 'is not a parameter of this call' },
      ])
    }
    expect((await rig.call('/v1/di/signals?', { key })).status).toBe(200)
  })

  test('are the whole catalog, with the weights of the default or the set policy', async () => {
    const list = await getSignals(await addTenant('usual'))
    expect(list.policy).toEqual({
      name: defaultPolicy.name,
      version: 1,
      policy_hash: toPolicyHash(defaultPolicy),
      thresholds: defaultPolicy.thresholds,
    })
    expect(
      Object.fromEntries(list.categories.map((one) => [one.category, one.signals.length])),
    ).toEqual(
      Object.fromEntries(
        Object.entries({ ...signalCatalog, ...serverCatalog }).map(([name, signals]) => [
          name,
          Object.keys(signals).length,
        ]),
      ),
    )
    const given = defaultPolicy.categories.root.signals.su_binary
    expect(weightOf(list, 'root.su_binary')).toEqual(given)
  })

  test('have the weights of its own policy and not of another tenant’s', async () => {
    const one = await addTenant('one', weighing('one’s', 11))
    const two = await addTenant('two', weighing('two’s', 22))
    for (const [key, name, weight] of [
      [one, 'one’s', 11],
      [two, 'two’s', 22],
      [one, 'one’s', 11],
    ] as const) {
      const list = await getSignals(key)
      expect(list.policy).toMatchObject({ name, version: 1 })
      expect(weightOf(list, 'root.su_binary')).toBe(weight)
    }
  })

  test('have new weights at the first request after any policy was set', async () => {
    const [key, other] = [await addTenant('changing'), await addTenant('staying')]
    const documents = [weighing('first', 1), weighing('second', 2), weighing('first', 1)]
    expect((await getSignals(key)).policy.version).toBe(1)
    for (const [index, document] of documents.entries()) {
      const version = await setPolicy('changing', document)
      const list = await getSignals(key)
      expect(list.policy).toMatchObject({ name: document.name, version })
      expect(list.policy.policy_hash).toBe(toPolicyHash(document))
      expect(version).toBe(index + 2)
      expect(weightOf(list, 'root.su_binary')).toBe(document.categories.root.signals.su_binary)
    }
    expect((await getSignals(other)).policy).toMatchObject({ name: 'balanced', version: 1 })
  })

  test('show current suppressions and no expired ones', async () => {
    const suppressions = [
      { signals: ['root.*'], sdkVersions: ['4.2.*'], expiresAt: null, reason: 'sees root' },
      { signals: ['root.su_binary'], expiresAt: '2020-01-01T00:00:00Z', reason: 'long ago' },
    ]
    const list = await getSignals(await addTenant('mute', { ...defaultPolicy, suppressions }))
    const all = list.categories.flatMap((one) => one.signals)
    const shown = { sdk_versions: ['4.2.*'], expires_at: null, reason: 'sees root' }
    for (const { signal, suppressed } of all) {
      expect(suppressed, signal).toEqual(signal.startsWith('root.') ? [shown] : [])
    }
  })

  test('are also shown for a document of an older release', async () => {
    const { suppressions, scoreMismatch, signalsMissing, ...old } = structuredClone(defaultPolicy)
    const halving = { category: 'root', confirmedBy: ['emulator.is_emulator'] }
    const list = await getSignals(await addTenant('old', { ...old, name: 'old', halving }))
    expect(list.policy).toMatchObject({ name: 'old', version: 1 })
    expect([suppressions, scoreMismatch, signalsMissing]).not.toContain(undefined)
  })

  test('are measured by route and query', async () => {
    const { text } = await rig.callInternal('/metrics')
    expect(text).toMatch(/di_http_request_seconds_count\{[^}]*route="\/v1\/di\/signals"/)
    expect(text).toMatch(/di_api_query_seconds_count\{[^}]*query="policy"/)
  })
})
