// How far a fleet attests, over the admin API on real databases: every number is that of a plain
// walk through the same events and registrations.
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { coverageVersionsMax } from '#shared/core/base/limits/analytics.ts'
import { issuerModelsMax } from '#shared/core/base/limits/history.ts'
import { encodeRegistration, type Registration } from '#shared/core/installs/registration.ts'
import type { CategorySignals } from '#shared/core/signals/signal-definition.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type CoverageSpan, createCoverageReader } from '#shared/io/installs/coverage-store.ts'
import { createInstallWriter } from '#shared/io/installs/install-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { type ConsoleDeps, createConsoleApp } from '../../../services/console/app.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { insertLinks } from '../../support/identity/phone-links.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import {
  type EventFacts,
  makeEvents,
  makeRegistration,
} from '../../support/telemetry/accepted-events.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

const adminToken = randomBytes(32).toString('base64url')
const nowMs = Date.now()
let servers: [TestClickhouse, TestPostgres]
let clickhouse: Clickhouse
let postgres: Postgres
let app: FastifyInstance
let readFrom: Clickhouse

beforeAll(async () => {
  servers = await Promise.all([startClickhouse({ isMigrated: true }), startPostgres()])
  clickhouse = createClickhouse(servers[0].url, { name: 'test' })
  readFrom = clickhouse
  const url = await servers[1].createMigratedDatabase()
  postgres = createPostgres(url, { role: 'test', log: testLog })
  await insertBareTenants(postgres, ['acme', 'globex', 'many', 'empty'], 'live')
  const deps = {
    postgres,
    publicUrl: () => 'http://127.0.0.1:8082',
    adminToken,
    log: testLog,
    nowMs: () => performance.now(),
    wallMs: () => nowMs,
    readCoverage: (span: CoverageSpan) => createCoverageReader(readFrom)(span),
  }
  // The other routes are not called.
  app = await createConsoleApp(deps as unknown as ConsoleDeps, {
    log: testLog,
    metrics: createMetrics('console'),
  })
  await insertEvents(fleet)
  await insertRegistrations(registrations)
  const install = { tenantId: 'acme', atMs: nowMs }
  await insertLinks(clickhouse, [
    { ...install, deviceId: 'device-before' },
    { ...install, deviceId: 'device-after', firstDeviceId: 'device-before' },
  ])
})
afterAll(async () => {
  await app?.close()
  await postgres?.close()
  await clickhouse?.close()
  await Promise.all(servers?.map((server) => server.stop()) ?? [])
})

async function readCoverage(tenant: string, query = '') {
  const answer = await app.inject({
    method: 'GET',
    url: `/admin/v1/tenants/${tenant}/attestation-coverage${query}`,
    headers: { authorization: `Bearer ${adminToken}` },
  })
  return { status: answer.statusCode, body: answer.json() }
}

type Sent = { at: number; version: string; attestation: CategorySignals; tenantId?: string }

const states = {
  honest: { install_key: true, verified: true, hardware_backed: true },
  unlocked: { install_key: true, rejected: true, bootloader_unlocked: true },
  bare: { install_key: true },
  forged: { install_key: true, verified: true, rejected: true },
  stale: { stale: true },
  none: { missing: true },
}
const times = (count: number, attestation: CategorySignals, version: string, at = hourMs): Sent[] =>
  Array.from({ length: count }, () => ({ at, version, attestation }))

const fleet: Sent[] = [
  ...times(9, states.honest, '5.0'),
  ...times(2, states.unlocked, '5.0'),
  ...times(1, states.forged, '5.0'),
  ...times(3, states.none, '4.9'),
  ...times(1, states.stale, '4.9'),
  ...times(2, states.bare, '4.9'),
  ...times(4, states.honest, '4.9', 3 * dayMs),
  // Of another time, and of another tenant.
  ...times(5, states.honest, '5.0', 8 * dayMs),
  ...times(5, states.honest, '5.0').map((one) => ({ ...one, tenantId: 'globex' })),
]

async function insertEvents(sent: readonly Sent[]): Promise<void> {
  const facts = sent.map(({ at, version, attestation, tenantId = 'acme' }, number): EventFacts => {
    const isByKey = attestation.install_key === true
    return {
      tenantId,
      deviceId: `phone-${number}`,
      receivedAtMs: nowMs - at,
      serverSignals: { attestation },
      ...(isByKey ? { install: { token_id: `token-${number}`, attested_key: null } } : {}),
      more: { sdk_meta: { sdk_version: version, platform: 'android', batch_type: 'launch' } },
    }
  })
  await createTelemetryStore(clickhouse).insertTelemetry(makeEvents(facts))
}

/** A verified registration by an own key, under a certificate. */
const toRegistration = (name: string, more: Partial<Registration> = {}): Registration =>
  makeRegistration({
    device_id: `device-${name}`,
    token_id: `token-${name}`,
    provider: 'key_attestation',
    verdict: 'verified',
    level: 'hardware',
    attested_key: `key-${name}`,
    issuers: [`certificate-${name}`, 'maker'],
    remotely_provisioned: true,
    device_model: 'Pixel 9',
    ...more,
  })
const batch = (issuer: string, count: number): Registration[] =>
  Array.from({ length: count }, (_, number) =>
    toRegistration(`${issuer}-${number}`, {
      issuers: [issuer],
      remotely_provisioned: false,
      device_model: `Model ${number}`,
    }),
  )
const rejected = (name: string, reason: string): Registration =>
  toRegistration(name, { verdict: 'rejected', reason, issuers: ['rejected-issuer'] })

const registrations: Registration[] = [
  toRegistration('honest'),
  toRegistration('one', { attested_key: 'copied' }),
  toRegistration('two', { attested_key: 'copied' }),
  toRegistration('three', { issuers: ['certificate-one', 'maker'] }),
  // The app's data was cleared: a new key and device id, on one phone.
  toRegistration('before', { issuers: ['certificate-cleared'] }),
  toRegistration('after', { issuers: ['certificate-cleared'] }),
  // As many as a product has names, and one more.
  ...batch('factory', issuerModelsMax),
  ...batch('leaked', issuerModelsMax + 1),
  // All of it was long ago.
  ...batch('withdrawn', issuerModelsMax + 1),
  rejected('a', 'bootloader_unlocked'),
  rejected('b', 'bootloader_unlocked'),
  rejected('c', 'untrusted_root'),
  // The certificate of all phones of a platform.
  ...['x', 'y'].map((name) =>
    toRegistration(name, {
      provider: 'app_attest',
      issuers: ['Apple'],
      remotely_provisioned: true,
    }),
  ),
]

/** Most phones with the leaked certificate registered before this week: it leaked all the same. */
const isOld = ({ issuers: [issuer], device_model: model }: Registration): boolean =>
  issuer === 'withdrawn' || (issuer === 'leaked' && model !== 'Model 0')

async function insertRegistrations(bodies: readonly Registration[]): Promise<void> {
  const { insertRegistrations: insert } = createInstallWriter(clickhouse)
  await insert(
    bodies.map((body, number) => ({
      registration: true,
      event_id: encodeRegistration(body).id,
      tenant_id: body.tenant_id,
      received_at: nowMs - (isOld(body) ? 20 * dayMs : hourMs),
      streamOffset: number + 1,
      body,
    })),
  )
}

describe('the attestation coverage of a tenant', () => {
  it('counts its events of a week by SDK version, each once', async () => {
    const { status, body } = await readCoverage('acme')
    expect(status).toBe(200)
    expect(Date.parse(body.to) - Date.parse(body.from)).toBe(7 * dayMs)
    const newer = { events: 12, install_key: 12, verified: 10, rejected: 3, missing: 0 }
    const older = { events: 10, install_key: 6, verified: 4, rejected: 0, missing: 3 }
    expect(body.versions).toEqual([
      { platform: 'android', sdk_version: '5.0', ...newer },
      { platform: 'android', sdk_version: '4.9', ...older },
    ])
    expect(body.totals).toEqual({
      events: 22,
      install_key: 18,
      verified: 14,
      rejected: 3,
      missing: 3,
    })
    expect(body.version_count).toBe(2)
    // The same events again, as a redelivery inserts them.
    await insertEvents(fleet)
    expect((await readCoverage('acme')).body.totals).toEqual(body.totals)
  })

  it('has fewer days when it is asked for fewer, and no more than a week', async () => {
    const { body } = await readCoverage('acme', '?days=1')
    expect(body.totals).toMatchObject({ events: 18, install_key: 14 })
    expect((await readCoverage('acme', '?days=8')).status).toBe(400)
  })

  it('says why registrations were rejected, most often first', async () => {
    const { body } = await readCoverage('acme')
    const at = new Date(nowMs - hourMs).toISOString()
    const of = { provider: 'key_attestation', last_at: at }
    expect(body.reasons).toEqual([
      { ...of, reason: 'bootloader_unlocked', registrations: 2, devices: 2 },
      { ...of, reason: 'untrusted_root', registrations: 1, devices: 1 },
    ])
  })

  it('names each key that is on more than it is for, by the limits of the scorer', async () => {
    const { body } = await readCoverage('acme')
    const models = issuerModelsMax + 1
    const shown = body.shared_keys.map(({ last_at: _, ...one }: { last_at: string }) => one)
    expect(shown).toEqual([
      { kind: 'issuer', id: 'leaked', count: models, devices: 1 },
      { kind: 'key', id: 'copied', count: 2, devices: 2 },
      { kind: 'remote_issuer', id: 'certificate-one', count: 2, devices: 2 },
    ])
  })

  it('is of one tenant, and empty before its first event', async () => {
    const { body } = await readCoverage('globex')
    expect(body.totals.events).toBe(5)
    expect([body.reasons, body.shared_keys]).toEqual([[], []])
    expect((await readCoverage('empty')).body).toMatchObject({
      totals: { events: 0, install_key: 0, verified: 0, rejected: 0, missing: 0 },
      version_count: 0,
      versions: [],
    })
    expect((await readCoverage('nobody')).status).toBe(404)
  })

  it('has the largest versions of a client that invents them, and says how many there are', async () => {
    const invented = Array.from({ length: coverageVersionsMax + 5 }, (_, number) =>
      times(number === 7 ? 3 : 1, states.none, `invented-${number}`),
    ).flat()
    await insertEvents(invented.map((one) => ({ ...one, tenantId: 'many' })))
    const { body } = await readCoverage('many')
    expect(body.versions).toHaveLength(coverageVersionsMax)
    expect(body.versions[0].sdk_version).toBe('invented-7')
    expect(body.version_count).toBe(coverageVersionsMax + 5)
    expect(body.totals.events).toBe(coverageVersionsMax + 7)
  })

  it('is a 503 that names a way out while ClickHouse cannot answer', async () => {
    readFrom = createClickhouse('http://127.0.0.1:1/absent', { name: 'test' })
    const { status, body } = await readCoverage('acme')
    await readFrom.close()
    readFrom = clickhouse
    expect([status, body.code]).toEqual([503, 'unavailable'])
    expect(body.detail).toMatch(/fewer days/)
    expect((await readCoverage('acme')).status).toBe(200)
  })
})
