// Signals outside the catalog, from the telemetry in a real ClickHouse to the operator's view: over
// the admin API and on the command line.
import { randomBytes } from 'node:crypto'
import { Command } from 'commander'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { type SignalList, signalListSchema } from '#shared/core/signals/signal-list.ts'
import { createPolicyStore } from '#shared/io/policies/policy-store.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { readFreedNames } from '#shared/io/telemetry/signal-names-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import {
  createUnknownSignalStore,
  type UnknownSignal,
} from '#shared/io/telemetry/unknown-signal-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { createCliContext } from '../../../services/console/cli/context.ts'
import { signals } from '../../../services/console/cli/signals.ts'
import { acceptEvent } from '../../support/http/api-rig.ts'
import { type ConsoleRig, startConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'

const adminToken = randomBytes(32).toString('base64url')
const hourMs = 3_600_000
const clickhouse = await useClickhouse()
let rig: ConsoleRig
let app: FastifyInstance
let consoleUrl: string

beforeAll(async () => {
  rig = await startConsoleRig()
  app = await createConsoleApp(
    {
      ...rig.deps,
      adminToken,
      wallMs: Date.now,
      ...createUnknownSignalStore(clickhouse),
    },
    {
      log: testLog,
      metrics: createMetrics('console'),
    },
  )
  consoleUrl = await app.listen({ host: '127.0.0.1', port: 0 })
  await Promise.all(['acme', 'twin', 'quiet'].map(addTenant))
})

afterAll(async () => {
  await app?.close()
  await rig?.close()
})

async function addTenant(tenantId: string): Promise<void> {
  await createTenantStore(rig.postgres).insertTenant({
    tenantId,
    name: '',
    environment: 'sandbox',
    webhookUrl: null,
    createdBy: 'test',
    policy: { hash: toPolicyHash(defaultPolicy), text: JSON.stringify(defaultPolicy) },
  })
}

const nowMs = Date.now()
type Facts = Partial<Parameters<typeof acceptEvent>[0]>
const accept = (facts: Facts) =>
  acceptEvent({ tenantId: 'acme', deviceId: 'd1', sessionId: 's1', atMs: nowMs - hourMs, ...facts })

/** One insert per group of events, as a scorer's batches arrive. */
async function insert(...groups: Facts[][]): Promise<void> {
  const { insertTelemetry } = createTelemetryStore(clickhouse)
  for (const group of groups) {
    const outcome = await insertTelemetry(group.map(accept))
    expect(outcome).toMatchObject({ withoutSignals: [], refused: [] })
  }
}

type Answer = { status: number; body: { data: UnknownSignal[] } & Record<string, unknown> }

async function get(path: string, token: string | null = adminToken): Promise<Answer> {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` }
  const answer = await app.inject({ url: `/admin/v1${path}`, headers })
  return { status: answer.statusCode, body: answer.json() }
}

async function listUnknown(tenantId: string, query = ''): Promise<UnknownSignal[]> {
  const { status, body } = await get(`/tenants/${tenantId}/unknown-signals${query}`)
  expect(status, JSON.stringify(body)).toBe(200)
  return body.data
}

/** Runs a command as the command line does, against the console over HTTP. */
async function di(...args: string[]): Promise<string> {
  let printed = ''
  const context = createCliContext({
    env: { CONSOLE_URL: consoleUrl, ADMIN_TOKEN: adminToken },
    json: () => args.includes('--json'),
    write: (text) => {
      printed += text
    },
  })
  const program = new Command('di').exitOverride().configureOutput({ writeErr: () => undefined })
  signals(program, context)
  await program.parseAsync(args, { from: 'user' })
  return printed
}

describe('unknown signals', () => {
  test('are listed by signal, SDK version and platform, most events first', async () => {
    const iso = (atMs: number) => new Date(atMs).toISOString()
    const [early, late] = [nowMs - 5 * hourMs, nowMs - 2 * hourMs]
    const su = { root: { su_binary: true, su_shadow: true, su_ghost: null } }
    await insert(
      [
        { signals: su, sdkVersion: '4.2.0', atMs: early },
        { signals: su, sdkVersion: '4.2.0', atMs: late, sessionId: 's2' },
        { signals: su, sdkVersion: '4.2.0', atMs: early + 1, deviceId: 'd2' },
        { signals: { root: { su_binary: true } }, sdkVersion: '4.2.0', deviceId: 'd3' },
      ],
      [
        { signals: { root: { su_shadow: true } }, sdkVersion: '4.3.0', atMs: late, deviceId: 'd4' },
        {
          signals: { root: { su_shadow: true } },
          sdkVersion: '4.2.0',
          platform: 'ios',
          atMs: late + 7,
          deviceId: 'd5',
        },
      ],
    )
    const one = { platform: 'android', events: 1, devices: 1, sdk_version: '4.3.0' }
    const three = { platform: 'android', events: 3, devices: 2, sdk_version: '4.2.0' }
    const between = { first_seen_at: iso(early), last_seen_at: iso(late) }
    const atOnce = (atMs: number) => ({ first_seen_at: iso(atMs), last_seen_at: iso(atMs) })
    expect(await listUnknown('acme')).toEqual([
      { ...three, signal: 'root.su_ghost', ...between },
      { ...three, signal: 'root.su_shadow', ...between },
      {
        ...one,
        signal: 'root.su_shadow',
        sdk_version: '4.2.0',
        platform: 'ios',
        ...atOnce(late + 7),
      },
      { ...one, signal: 'root.su_shadow', ...atOnce(late) },
    ])
    expect(await listUnknown('acme', '?limit=1')).toEqual([
      { ...three, signal: 'root.su_ghost', ...between },
    ])
  })

  test('count an event once, however often it is delivered or sent again', async () => {
    const once = { deviceId: 'again', sdkVersion: '5.0.0', signals: { tamper: { twice: 1 } } }
    const more = { ...once, sessionId: 's2' }
    await insert([once, once], [once, more], [once])
    // The client sent the same bytes again: the same event, received later.
    const { insertTelemetry } = createTelemetryStore(clickhouse)
    const retry = { ...accept(once), received_at: nowMs - hourMs / 2 }
    await insertTelemetry([retry])
    const [found, ...others] = (await listUnknown('acme')).filter(
      (row) => row.signal === 'tamper.twice',
    )
    expect(others).toEqual([])
    expect(found).toMatchObject({ events: 2, devices: 1, sdk_version: '5.0.0' })
  })

  test('of another tenant are invisible, and a tenant without any has an empty list', async () => {
    await insert([
      { tenantId: 'twin', signals: { network: { only_of_twin: true } } },
      { tenantId: 'twin', signals: { network: { only_of_twin: true } }, deviceId: 'd9' },
    ])
    expect((await listUnknown('acme')).map((row) => row.signal)).not.toContain(
      'network.only_of_twin',
    )
    expect(await listUnknown('twin')).toMatchObject([
      { signal: 'network.only_of_twin', events: 2, devices: 2 },
    ])
    expect(await listUnknown('quiet')).toEqual([])
  })

  test('cover the requested last days, seven by default', async () => {
    const daysAgo = (days: number) => ({
      tenantId: 'quiet',
      atMs: nowMs - days * 24 * hourMs + hourMs,
      signals: { debugger: { [`seen_${days}`]: true } },
    })
    await insert([1, 3, 7, 8, 20].map(daysAgo))
    const seen = async (query: string) =>
      (await listUnknown('quiet', query)).map((row) => row.signal.replace('debugger.seen_', ''))
    expect(await seen('')).toEqual(['1', '3', '7'])
    expect(await seen('?days=1')).toEqual(['1'])
    expect(await seen('?days=30')).toEqual(['1', '20', '3', '7', '8'])
  })

  test('have names that an operator frees, audited, and scorers read when', async () => {
    await insert([
      {
        tenantId: 'twin',
        signals: { network: { fresh: true } },
        deviceId: 'd10',
        atMs: Date.now(),
      },
    ])
    const { names } = (await get('/tenants/twin/unknown-signals')).body
    expect(names).toEqual({ in_last_hour: 1, limit: 64, freed_at: null })
    expect(await readFreedNames(rig.postgres, ['twin', 'acme'])).toEqual(new Map())
    const freed = JSON.parse(await di('signals', 'free', 'twin', '--json')) as object
    expect(freed).toEqual({ tenant_id: 'twin', freed_at: expect.stringMatching(/Z$/) })
    const freedAt = (freed as { freed_at: string }).freed_at
    expect(await readFreedNames(rig.postgres, ['twin', 'acme'])).toEqual(
      new Map([['twin', freedAt]]),
    )
    expect((await get('/tenants/twin/unknown-signals')).body.names).toMatchObject({
      freed_at: freedAt,
    })
    const { body } = await get('/tenants/twin/audit?action=signal_names.freed')
    expect(body.data).toMatchObject([
      { actor: 'admin', before: { freed_at: null }, after: { freed_at: freedAt } },
    ])
    await expect(di('signals', 'free', 'nobody')).rejects.toThrow('nobody')
    expect(await di('signals', 'unknown', 'twin')).toContain('1 names in the last hour; 64 become')
  })

  test('are rejected for an unknown tenant, an invalid query and an invalid token', async () => {
    expect((await get('/tenants/nobody/unknown-signals')).body.code).toBe('tenant_not_found')
    for (const query of ['days=0', 'days=31', 'days=x', 'limit=0', 'limit=1001', 'day=1']) {
      const { status, body } = await get(`/tenants/acme/unknown-signals?${query}`)
      expect({ status, code: body.code }, query).toEqual({ status: 400, code: 'invalid_query' })
      expect(body.errors).toMatchObject([{ path: query.split('=')[0] }])
    }
    expect((await get('/tenants/acme/unknown-signals', null)).status).toBe(401)
  })
})

describe('the signal list of the admin API', () => {
  test('is the catalog with the current weights of the tenant’s policy', async () => {
    const { body } = await get('/tenants/twin/signals')
    const list = body as unknown as SignalList
    expect(signalListSchema.strict().parse(list)).toEqual(list)
    expect(list.policy).toMatchObject({ name: 'balanced', version: 1 })
    const policy = { ...defaultPolicy, name: 'changed' }
    const change = {
      tenantId: 'twin',
      createdBy: 'test',
      policy: { hash: toPolicyHash(policy), text: JSON.stringify(policy) },
    }
    await rig.postgres.transaction((tx) => createPolicyStore(tx).insertVersion(change))
    const after = await get('/tenants/twin/signals')
    expect(after.body.policy).toMatchObject({ name: 'changed', version: 2 })
    expect((await get('/tenants/nobody/signals')).body.code).toBe('tenant_not_found')
    expect((await get('/tenants/twin/signals', null)).status).toBe(401)
  })

  test('and the unknown signals are in the admin API’s document', async () => {
    const document = (await get('/openapi.json')).body as unknown as {
      paths: Record<string, { get: { responses: Record<string, unknown> } }>
    }
    for (const path of ['signals', 'unknown-signals']) {
      const { responses } = document.paths[`/admin/v1/tenants/{tenant_id}/${path}`]!.get
      expect(Object.keys(responses)).toContain('200')
    }
  })
})

describe('di signals', () => {
  test('list prints every signal with its weight as text, and the answer as JSON', async () => {
    const list = JSON.parse(await di('signals', 'list', 'acme', '--json'))
    expect(list).toEqual((await get('/tenants/acme/signals')).body)
    for (const args of [
      ['signals', 'list', 'acme'],
      ['signals', 'list'],
    ]) {
      const text = await di(...args)
      expect(text).toMatch(/^balanced, version 1: REVIEW from 40, BLOCK from 75\n/)
      expect(text).toMatch(/^NETWORK +at most \d+, never BLOCK alone$/m)
      expect(text).toMatch(/^ {2}su_binary +boolean +android +high +ROOTED +40$/m)
      expect(text).toMatch(/^ {2}app_attest_valid .* 45 when false$/m)
      expect(text).toMatch(/^ {2}tracer_pid +number .* 45 from 1$/m)
    }
  })

  test('unknown prints them in a table that no client’s text can break', async () => {
    const evil = 'esc\u001b[31m\u202etxt\n'
    await insert([
      { tenantId: 'twin', deviceId: 'd7', sdkVersion: evil, signals: { root: { [evil]: 1 } } },
    ])
    const text = await di('signals', 'unknown', 'twin', '--days', '2')
    expect(text).toMatch(/^SIGNAL +SDK +PLATFORM +EVENTS +DEVICES +FIRST SEEN +LAST SEEN\n/)
    expect(text).toMatch(/^network\.only_of_twin +1\.0\.0 +android +2 +2 +20/m)
    expect(text).toContain('root.esc\\u{1b}[31m\\u{202e}txt\\u{a}')
    expect(text.trimEnd().split('\n')).toHaveLength(5)
    const json = JSON.parse(await di('signals', 'unknown', 'twin', '--json'))
    expect(json.data).toEqual(await listUnknown('twin'))
    await expect(di('signals', 'unknown', 'nobody')).rejects.toThrow('There is no tenant nobody.')
    await expect(di('signals', 'unknown', 'twin', '--days', '31')).rejects.toThrow('from 1 to 30')
  })
})
