// Verification in its thread: verdicts, bounds, threads that die or hang, and the event loop beside.
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { attestationRoots } from '#shared/core/attestation/roots.ts'
import { waitingEvidencePerTenantMax } from '#shared/core/base/limits/attestation.ts'
import { hashSerial } from '#shared/core/installs/evidence-signals.ts'
import { packSerials } from '#shared/core/installs/revoked-serials.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createEventEvidence } from '../../../services/ingest/installs/event-evidence.ts'
import { createEvidenceMetrics } from '../../../services/ingest/installs/evidence-metrics.ts'
import {
  createEvidencePool,
  type EvidencePool,
  type EvidenceTenant,
} from '../../../services/ingest/installs/evidence-pool.ts'
import { createVerifyEvidence } from '../../../services/ingest/installs/verify-evidence.ts'
import { testLog } from '../../support/http/console-rig.ts'
import {
  androidApp,
  appleApp,
  hashBody,
  playKeys,
  testRoots,
  toAppleEvidence,
  toChainEvidence,
  toPlayToken,
} from '../../support/installs/evidence-fixtures.ts'

const toTenant = (tenantId: string, more: Partial<EvidenceTenant> = {}): EvidenceTenant => ({
  tenantId,
  environment: 'sandbox',
  apps: {
    listed: [androidApp, { ...appleApp, allowsDevelopment: false }],
    playKeys: new Map([[androidApp.id, playKeys]]),
  },
  ...more,
})
const acme = toTenant('acme')
const challenge = Buffer.alloc(40, 7)
const nowMs = Date.now()
const request = { evidence: toChainEvidence(challenge), challenge, packageName: androidApp.id }

const pools: EvidencePool[] = []
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()))
})

function open(more: Partial<Parameters<typeof createEvidencePool>[0]> = {}) {
  const registry = createMetrics('test')
  const metrics = createEvidenceMetrics(registry, () => pool.waiting())
  const pool = createEvidencePool({
    findRoots: (environment) => (environment === 'sandbox' ? testRoots : attestationRoots),
    revoked: () => null,
    metrics,
    log: testLog,
    wallMs: () => nowMs,
    ...more,
    // A busy machine must not look like a stuck thread.
    limits: { msMax: 60_000, startMsMax: 120_000, ...more.limits },
  })
  pools.push(pool)
  const count = async (name: string) => {
    const { values } = await registry.registry.getSingleMetric(name)!.get()
    return values
      .filter(({ value }) => value > 0)
      .map(({ labels, value }) => ({ ...labels, value }))
  }
  return { pool, metrics, count }
}

/** A thread of these few lines. */
const toWorker = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`)
const worker = (onJob: string) =>
  toWorker(`
    import { parentPort } from 'node:worker_threads'
    parentPort.postMessage('ready')
    let jobs = 0
    parentPort.on('message', ({ id, job }) => { ${onJob} })`)

describe('the verification of a registration', () => {
  it('gives the verdict of each provider', async () => {
    const { pool } = open()
    const apple = { ...request, evidence: toAppleEvidence(challenge, nowMs) }
    const token = await toPlayToken(challenge, nowMs)
    const play = { ...request, evidence: { provider: 'play_integrity' as const, token } }
    expect(await pool.verify(request, acme)).toMatchObject({
      provider: 'key_attestation',
      verdict: 'verified',
      level: 'hardware',
    })
    expect(await pool.verify(apple, acme)).toMatchObject({
      provider: 'app_attest',
      verdict: 'verified',
    })
    const verdict = await pool.verify(play, acme)
    expect(verdict).toMatchObject({ provider: 'play_integrity', verdict: 'verified' })
    expect(verdict.signals).toEqual({
      verified: true,
      pi_device: ['MEETS_DEVICE_INTEGRITY', 'MEETS_STRONG_INTEGRITY'],
      pi_app: 'PLAY_RECOGNIZED',
      pi_licensing: 'LICENSED',
      play_protect: 'NO_ISSUES',
      app_access_risk: [],
    })
    const other = { ...play, packageName: 'com.example.other' }
    expect(await pool.verify(other, acme)).toMatchObject({ reason: 'play_keys_missing' })
  })

  it('trusts test roots for sandbox tenants alone', async () => {
    const { pool } = open()
    const live = toTenant('acme', { environment: 'live' })
    expect(await pool.verify(request, live)).toMatchObject({
      verdict: 'rejected',
      reason: 'untrusted_root',
    })
    expect(await pool.verify(request, acme)).toMatchObject({ verdict: 'verified' })
  })

  it('trusts no app of a tenant that has named none, nor that of another tenant', async () => {
    const { pool } = open()
    const apps = { listed: [], playKeys: new Map() }
    const without = toTenant('empty', { apps })
    expect(await pool.verify(request, without)).toMatchObject({ reason: 'app_unknown' })
    const listed = [{ ...androidApp, id: 'com.example.other' }]
    const other = toTenant('other', { apps: { listed, playKeys: new Map() } })
    expect((await pool.verify(request, other)).signals).toMatchObject({
      rejected: true,
      app_unknown: true,
    })
  })

  it('knows the status list in force', async () => {
    const { pool } = open({ revoked: () => packSerials(['a1b2']) })
    const revoked = await pool.verify(request, acme)
    expect(revoked).toMatchObject({ reason: 'revoked', signals: { revoked: true } })
    expect(revoked.serials).toContain(hashSerial('a1b2'))
  })

  it('rejects what is no evidence: no base64, 10,000 certificates, other types of bytes', async () => {
    const { pool } = open()
    const chain = request.evidence.provider === 'key_attestation' ? request.evidence.chain : []
    const send = (certificates: string[]) =>
      pool.verify(
        { ...request, evidence: { provider: 'key_attestation', chain: certificates } },
        acme,
      )
    expect(await send(['!', '!'])).toMatchObject({
      reason: 'malformed',
      unreadable: { path: '$.evidence.chain[0]' },
    })
    expect(await send([])).toMatchObject({ unreadable: { path: '$.evidence.chain' } })
    expect(await send(Array(10_000).fill(chain[1]))).toMatchObject({ reason: 'chain_too_long' })
    const apple = { provider: 'app_attest' as const, key_id: '?', attestation: '?' }
    expect(await pool.verify({ ...request, evidence: apple }, acme)).toMatchObject({
      verdict: 'rejected',
    })
  })

  it('is counted by tenant and reason', async () => {
    const { pool, metrics, count } = open()
    const verify = createVerifyEvidence({ pool, metrics })
    const app = { platform: 'android' as const, id: androidApp.id }
    const body = { challenge, challengeFault: null, app }
    const verified = await verify({ ...body, evidence: request.evidence }, acme)
    expect(verified).toMatchObject({ verdict: 'verified' })
    const none = await verify({ ...body, evidence: { provider: 'none' } }, acme)
    expect(none).toMatchObject({ provider: 'none', verdict: 'none', signals: {} })
    const unlocked = toChainEvidence(challenge, { isLocked: false })
    await verify({ ...body, evidence: unlocked }, acme)
    const of = (provider: string, verdict: string, reason: string) =>
      expect.objectContaining({ tenant: 'acme', provider, verdict, reason, value: 1 })
    expect(await count('di_ingest_registration_evidence_total')).toEqual([
      of('key_attestation', 'verified', 'none'),
      of('none', 'none', 'none'),
      of('key_attestation', 'rejected', 'bootloader_unlocked'),
    ])
  })
})

describe('the bounds', () => {
  /** It answers each job after 20 ms, with the tenant's first app as its model. */
  const slow = worker(`setTimeout(() => parentPort.postMessage({ id, verified: { deviceModel:
    job.apps[0].id } }), 20)`)
  const named = (tenantId: string) =>
    toTenant(tenantId, {
      apps: { listed: [{ ...androidApp, id: tenantId }], playKeys: new Map() },
    })

  it('refuse a tenant with too many waiting, and then no other', async () => {
    const { pool, count } = open({ workerUrl: slow })
    const many = Array.from({ length: waitingEvidencePerTenantMax }, () =>
      pool.verify(request, named('greedy')),
    )
    const over = pool.verify(request, named('greedy'))
    await expect(over).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 })
    const modest = pool.verify(request, named('modest'))
    // Tenants take turns: one check of the other is before it, or two.
    await modest
    expect(pool.waiting()).toBeGreaterThan(waitingEvidencePerTenantMax - 5)
    expect(await count('di_ingest_evidence_unverified_total')).toEqual([
      expect.objectContaining({ reason: 'tenant_full', value: 1 }),
    ])
    await Promise.all(many)
    expect(pool.waiting()).toBe(0)
    expect(await pool.verify(request, named('greedy'))).toMatchObject({ deviceModel: 'greedy' })
  })

  it('refuse all when the queue is full', async () => {
    const { pool, count } = open({ workerUrl: slow, limits: { waiting: 3 } })
    const waiting = ['a', 'b', 'c'].map((tenantId) => pool.verify(request, named(tenantId)))
    const over = pool.verify(request, named('d'))
    await expect(over).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 1 })
    expect(await count('di_ingest_evidence_unverified_total')).toEqual([
      expect.objectContaining({ reason: 'full', value: 1 }),
    ])
    await Promise.all(waiting)
  })
})

describe('a thread', () => {
  const answer = `parentPort.postMessage({ id, verified: { deviceModel: 'answered' } })`

  it.each([
    ['dies', `if (job.nowMs === 1) process.exit(7); ${answer}`, 'thread'],
    ['throws', `if (job.nowMs === 1) throw new Error('defect'); ${answer}`, 'thread'],
    ['hangs', `if (job.nowMs === 1) for (;;); ${answer}`, 'time_limit'],
    ['does not answer', `if (job.nowMs !== 1) ${answer}`, 'time_limit'],
  ])('that %s is replaced; only its own check gets a 503', async (_, onJob, reason) => {
    let ms = 1
    const { pool, count } = open({
      workerUrl: worker(onJob),
      limits: { msMax: 200 },
      wallMs: () => ms,
    })
    const lost = pool.verify(request, acme)
    ms = 2
    const next = pool.verify(request, acme)
    await expect(lost).rejects.toMatchObject({ code: 'unavailable' })
    expect(await next).toMatchObject({ deviceModel: 'answered' })
    expect(await count('di_ingest_evidence_unverified_total')).toEqual([
      expect.objectContaining({ reason, value: 1 }),
    ])
  })

  it('ends with the edge, and what waits is answered', async () => {
    const { pool } = open({ workerUrl: worker('') })
    const waiting = [pool.verify(request, acme), pool.verify(request, acme)]
    const answers = Promise.allSettled(waiting)
    await pool.close()
    for (const { status } of await answers) expect(status).toBe('rejected')
  })

  it('leaves the event loop free, whatever it verifies', async () => {
    const { pool } = open({ workerUrl: worker('for (;;);'), limits: { msMax: 500 } })
    let ticks = 0
    const timer = setInterval(() => ticks++, 5)
    onTestFinished(() => clearInterval(timer))
    await expect(pool.verify(request, acme)).rejects.toMatchObject({ code: 'unavailable' })
    // The check spins for half a second; on the event loop no timer would run beside it.
    expect(ticks).toBeGreaterThan(5)
  })
})

describe('the evidence of an event', () => {
  const body = Buffer.from('{"tenant_id":"acme"}')
  const install = {
    provider: 'key_attestation' as const,
    appId: androidApp.id,
    publicKey: null,
    serials: [],
    signals: {},
  }

  it('that is a Play token is opened in the thread, and must be for this body', async () => {
    const { pool, metrics, count } = open()
    const verify = createEventEvidence({ pool, metrics })
    const token = await toPlayToken(hashBody(body), nowMs)
    const evidence = await verify(token, body, install, acme)
    expect(evidence).toMatchObject({ provider: 'play_integrity', verdict: 'verified' })
    const copied = await verify(token, Buffer.from('{}'), install, acme)
    expect(copied).toMatchObject({ verdict: 'rejected', reason: 'challenge_mismatch' })
    expect(copied.signals).toEqual({ rejected: true })
    expect(await count('di_ingest_event_evidence_total')).toHaveLength(2)
    // A registration was not counted.
    expect(await count('di_ingest_registration_evidence_total')).toEqual([])
  })

  it('that finds no room is no verdict, and no refusal', async () => {
    const { pool, metrics } = open({ limits: { waiting: 0 } })
    const verify = createEventEvidence({ pool, metrics })
    const evidence = await verify('a.b.c.d.e', body, install, acme)
    expect(evidence).toMatchObject({ verdict: 'none', reason: 'no_room', signals: {} })
  })
})
