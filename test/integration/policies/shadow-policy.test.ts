// Setting a shadow policy and comparing its decisions, over the admin API and the command line, on
// real servers: versions with time and author, no effect at the edges, exact sums.

import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { listen } from '#shared/io/http/http-server.ts'
import { createShadowComparisonStore } from '#shared/io/policies/shadow-comparison-store.ts'
import { listAudit } from '#shared/io/postgres/audit-store.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { createReplication } from '../../../services/console/jobs/replication.ts'
import type { ShadowComparisonBody } from '../../../services/console/policies/shadow-schemas.ts'
import { type ConsoleRig, createConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { runDi } from '../../support/process/command-line.ts'
import { type EventFacts, signalsOf } from '../../support/telemetry/accepted-events.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

const adminToken = randomBytes(32).toString('base64url')
const folder = mkdtempSync(join(tmpdir(), 'shadow-'))
let rig: ScorerRig
let admin: ConsoleRig
let app: FastifyInstance
let consoleUrl: string

beforeAll(async () => {
  rig = await createScorerRig()
  const { postgres, clickhouse } = rig
  admin = await createConsoleRig({ postgres: rig.postgresServer, nats: rig.natsServer })
  app = await createConsoleApp(
    {
      ...admin.deps,
      postgres,
      leases: { renewals: postgres, work: postgres },
      adminToken,
      compareShadow: createShadowComparisonStore(clickhouse).compareShadow,
      wallMs: Date.now,
    },
    {
      log: testLog,
      metrics: createMetrics('console'),
    },
  )
  consoleUrl = await listen(app, { host: '127.0.0.1', port: 0 })
  for (const tenantId of ['acme', 'globex', 'quiet']) await rig.addTenant(tenantId)
})
afterAll(async () => {
  await app?.close()
  await admin?.close()
  await rig?.close()
  rmSync(folder, { recursive: true, force: true })
})

type Answer = { status: number; body: Record<string, unknown> }

async function call(
  method: 'GET' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
  token = adminToken,
): Promise<Answer> {
  const answer = await fetch(`${consoleUrl}/admin/v1/tenants/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: (await answer.json()) as Answer['body'] }
}

const di = (...args: string[]) =>
  runDi(['policy', 'shadow', ...args], { CONSOLE_URL: consoleUrl, ADMIN_TOKEN: adminToken })

const harsh: Policy = { ...defaultPolicy, name: 'harsh', thresholds: { review: 1, block: 40 } }

describe('setting a shadow policy', () => {
  it('records every version with time and author, and does not inform any edge', async () => {
    const before = await rig.postgres.query("select * from tenants where tenant_id = 'quiet'")
    const begunMs = Date.now()
    const first = await call('PUT', 'quiet/policy/shadow', { preset: 'strict' })
    expect(first).toMatchObject({
      status: 200,
      body: {
        tenant_id: 'quiet',
        version: 1,
        previous_version: 0,
        name: presets.strict.name,
        policy_hash: toPolicyHash(presets.strict),
        created_by: 'admin',
      },
    })
    const leadMs = Date.parse(String(first.body.effective_at)) - begunMs
    expect(leadMs).toBeGreaterThan(2_000)
    expect(leadMs).toBeLessThan(60_000)
    // The same policy in another order of keys counts as the same.
    const turned = Object.fromEntries(Object.entries(presets.strict).reverse())
    const again = await call('PUT', 'quiet/policy/shadow', turned)
    expect(again.body).toMatchObject({ version: 1, previous_version: 1 })
    const second = await call('PUT', 'quiet/policy/shadow', harsh)
    expect(second.body).toMatchObject({ version: 2, previous_version: 1, name: 'harsh' })
    const shown = await call('GET', 'quiet/policy/shadow')
    expect(shown.body).toMatchObject({ version: 2, document: harsh, created_by: 'admin' })
    const off = await call('DELETE', 'quiet/policy/shadow')
    expect(off.body).toMatchObject({ version: 3, policy_hash: null, name: null })
    expect((await call('GET', 'quiet/policy/shadow')).status).toBe(404)
    const offAgain = await call('DELETE', 'quiet/policy/shadow')
    expect(offAgain).toMatchObject({ status: 200, body: { version: 3, previous_version: 3 } })
    const audit = await listAudit(rig.postgres, { tenantId: 'quiet', limit: 100 })
    expect(audit.reverse().map(({ action, actor }) => [action, actor])).toEqual([
      ['policy.shadow_set', 'admin'],
      ['policy.shadow_set', 'admin'],
      ['policy.shadow_off', 'admin'],
    ])
    const after = await rig.postgres.query("select * from tenants where tenant_id = 'quiet'")
    expect(after.rows).toEqual(before.rows)
  })

  it('rejects an invalid one, and changes nothing', async () => {
    const wrong = { ...harsh, thresholds: { review: 90, block: 20 }, surprise: 1 }
    const refused = await call('PUT', 'globex/policy/shadow', wrong)
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_policy' } })
    expect(JSON.stringify(refused.body.errors)).toContain('$.surprise')
    for (const body of [null, [], { preset: 'nope' }]) {
      expect((await call('PUT', 'globex/policy/shadow', body)).status).toBe(400)
    }
    const shadow = 'globex/policy/shadow'
    expect((await call('GET', shadow)).body).toMatchObject({ code: 'policy_not_found' })
    expect((await call('DELETE', shadow)).body).toMatchObject({ code: 'policy_not_found' })
    expect((await call('GET', `${shadow}/comparison`)).status).toBe(404)
    expect((await call('PUT', 'nobody/policy/shadow', harsh)).status).toBe(404)
    expect((await call('PUT', shadow, harsh, 'wrong')).status).toBe(401)
    expect((await call('GET', shadow)).status).toBe(404)
  })

  it('from the command line sets, shows and switches off', async () => {
    const file = join(folder, 'harsh.json')
    writeFileSync(file, JSON.stringify(harsh))
    const set = await di('globex', file, '--json')
    expect(JSON.parse(set.stdout)).toMatchObject({ version: 1, name: 'harsh' })
    const preset = await di('globex', '--preset', 'permissive')
    expect(preset.stdout).toContain('The shadow is version 2 (permissive)')
    const shown = await di('globex', '--show', '--json')
    expect(JSON.parse(shown.stdout)).toMatchObject({ version: 2, document: presets.permissive })
    expect((await di('globex', '--show')).stdout).toContain('permissive')
    expect((await di('globex', '--off')).stdout).toContain('The shadow is off')
    for (const args of [[], [file, '--off'], ['--show', '--since', '2026-01-01']]) {
      expect(await di('globex', ...args)).toMatchObject({ status: 1, stdout: '' })
    }
  })
})

/** Sessions of two platforms with different outcomes under the two policies. */
function makeStream(tenantId: string, firstMs: number): EventFacts[][] {
  const signals = [
    signalsOf.ALLOW,
    signalsOf.REVIEW,
    signalsOf.BLOCK,
    { emulator: { app_cloned: true } },
  ]
  const platforms = ['android', 'ios', 'ios\u001b[31m']
  return Array.from({ length: 120 }, (_, n) => [
    {
      tenantId,
      deviceId: `d-${n % 40}`,
      sessionId: `s-${n % 60}`,
      nonce: n,
      signals: signals[(n * 7) % 4]!,
      receivedAtMs: firstMs + n * 1_000,
      more: {
        sdk_meta: {
          sdk_version: `4.${n % 2}.0`,
          platform: platforms[n % 3],
          batch_type: 'launch',
        },
      },
    },
  ])
}

type Row = {
  device_id: string
  session_id: string
  active_action: string
  shadow_action: string
  active_risk_score: number
  shadow_risk_score: number
}

/** Blocks earlier, and does not judge root on Android. */
const uneven: Policy = policySchema.parse({
  ...defaultPolicy,
  name: 'uneven',
  thresholds: { ...defaultPolicy.thresholds, block: 45 },
  suppressions: [{ signals: ['root.*'], platforms: ['android'], expiresAt: null, reason: 'test' }],
})

describe('the comparison', () => {
  let firstMs: number

  beforeAll(async () => {
    const { body } = await call('PUT', 'acme/policy/shadow', uneven)
    const other = await call('PUT', 'globex/policy/shadow', harsh)
    firstMs = Math.max(...[body, other.body].map((one) => Date.parse(String(one.effective_at))))
    await rig.startScorer()
    await rig.publish(...makeStream('acme', firstMs))
    await rig.publish(...makeStream('globex', firstMs).slice(0, 30))
    await rig.drained()
    const { alerts } = await createAlertStore(rig.postgres).listAlerts({
      tenantId: 'acme',
      limit: 500,
      after: null,
    })
    // Root alone raised it, which the shadow does not judge.
    const review = alerts.find(
      ({ entity }) => entity.device.device_id === 'd-3' && entity.session.session_id === 's-3',
    )!
    await createAlertStore(rig.postgres).setDisposition({
      alertId: review.alert_id,
      disposition: 'CONFIRMED',
      note: null,
      actor: 'ann',
    })
    await createReplication({
      postgres: rig.postgres,
      leases: { renewals: rig.postgres, work: rig.postgres },
      clickhouse: rig.clickhouse,
      log: testLog,
      metrics: createMetrics('console'),
      wallMs: Date.now,
      nowMs: () => performance.now(),
    }).runRound()
  })

  const compare = async (query = '', tenantId = 'acme') => {
    const answer = await call('GET', `${tenantId}/policy/shadow/comparison${query}`)
    expect(answer.status).toBe(200)
    return answer.body as unknown as ShadowComparisonBody
  }

  async function rowsOf(tenantId: string): Promise<Row[]> {
    const result = await rig.clickhouse.query({
      query: `select * from analytics.shadow_decisions where tenant_id = '${tenantId}'`,
      format: 'JSONEachRow',
    })
    return result.json<Row>()
  }

  it('sums the rows exactly: events by action, alerts by session and action', async () => {
    const rows = await rowsOf('acme')
    const report = await compare()
    expect(report).toMatchObject({ events: 120, sessions: 120, shadow: { versions: [1] } })
    for (const from of ['ALLOW', 'REVIEW', 'BLOCK']) {
      for (const to of ['ALLOW', 'REVIEW', 'BLOCK']) {
        const events = rows.filter((row) => row.active_action === from && row.shadow_action === to)
        expect(report.matrix[from]?.[to], `${from} ${to}`).toBe(events.length)
      }
    }
    const alertsBy = (who: 'active_action' | 'shadow_action') =>
      new Set(
        rows
          .filter((row) => row[who] !== 'ALLOW')
          .map((row) => `${row.device_id} ${row.session_id} ${row[who]}`),
      )
    const [active, shadow] = [alertsBy('active_action'), alertsBy('shadow_action')]
    expect(report.alerts).toEqual({ active: active.size, shadow: shadow.size })
    const { unchanged: _, ...changed } = report.changes
    expect(changed.new + changed.stricter).toBeGreaterThan(5)
    expect(changed.gone + changed.milder).toBeGreaterThan(5)
    const alerting = new Set([...active, ...shadow].map((one) => one.split(' ', 2).join(' ')))
    const sum = (counts: Omit<(typeof report.by_platform)[number], 'name'>) =>
      counts.new + counts.gone + counts.stricter + counts.milder + counts.unchanged
    expect(sum(report.changes)).toBe(alerting.size)
    for (const parts of [report.by_platform, report.by_sdk_version]) {
      expect(parts.reduce((all, one) => all + sum(one), 0)).toBe(alerting.size)
    }
    expect(report.by_sdk_version.map(({ name }) => name).sort()).toEqual(['4.0.0', '4.1.0'])
    expect(report.by_flag.length).toBeGreaterThan(1)
    const raised = await createAlertStore(rig.postgres).listAlerts({
      tenantId: 'acme',
      limit: 500,
      after: null,
    })
    expect(active.size).toBe(raised.total)
  })

  it('lists the sessions that differ most, and the dispositions of lost alerts', async () => {
    const report = await compare()
    const distance = (one: { active_score: number; shadow_score: number }) =>
      Math.abs(one.active_score - one.shadow_score)
    const distances = report.moved_most.map(distance)
    expect(distances).toEqual([...distances].sort((a, b) => b - a))
    const judged = Object.fromEntries(report.by_disposition.map((one) => [one.name, one]))
    expect(judged.CONFIRMED).toMatchObject({ kept: 0, lost: 1 })
    const all = report.by_disposition.reduce((sum, { kept, lost }) => sum + kept + lost, 0)
    expect(all).toBe(report.alerts.active)
  })

  it('covers only its own tenant, and only events received since then', async () => {
    expect(await compare('', 'globex')).toMatchObject({ events: 30 })
    const since = new Date(firstMs + 100_000).toISOString()
    const report = await compare(`?since=${since}`)
    expect(report).toMatchObject({ events: 20, since, first_event_at: since })
    expect((await compare('?version=1', 'globex')).events).toBe(30)
    expect(await compare('?version=2', 'globex')).toMatchObject({ events: 0, moved_most: [] })
    expect((await call('GET', 'acme/policy/shadow/comparison?since=soon')).status).toBe(400)
  })

  it('from the command line is equal, and shows no control characters', async () => {
    const json = await di('acme', '--compare', '--json')
    expect(JSON.parse(json.stdout)).toEqual(await compare())
    const text = await di('acme', '--compare')
    expect(text).toMatchObject({ status: 0, stderr: '' })
    expect(text.stdout).toContain('120 in 120 sessions')
    expect(text.stdout).toContain('ios\\u{1b}[31m')
    expect(text.stdout).not.toContain('\u001b')
    const none = await di('globex', '--compare', '--version', '2')
    expect(none.stdout).toContain('It has decided nothing yet.')
  })
})
