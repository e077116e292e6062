// A backtest over the admin API and on the command line: its report against plain counting in
// JavaScript over the same events, in every form of storage, and its behaviour with invalid,
// repeated and aborted requests.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { applyListReasons, toListReasons } from '#shared/core/lists/lists.ts'
import {
  countAlerts,
  noScores,
  type ScoreCounts,
} from '#shared/core/outcomes/score-distribution.ts'
import { toFeatures, withPoints } from '#shared/core/outcomes/suggest/features.ts'
import {
  countScores,
  type OutcomeRow,
  scoreEvents,
} from '#shared/core/outcomes/suggest/outcome-table.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import { checkPolicy } from '#shared/core/policies/policy-check.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { findForcedScore } from '#shared/core/telemetry/sandbox.ts'
import { createOverviewStore } from '#shared/io/analytics/overview-store.ts'
import { insertAlertRows, markRound } from '#shared/io/analytics/replica-rows-store.ts'
import {
  createRulePerformanceStore,
  type RulePerformance,
} from '#shared/io/analytics/rule-performance-store.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { withLease } from '#shared/io/leases/leases.ts'
import { createScoreStore } from '#shared/io/outcomes/score-store.ts'
import { createBacktestStore } from '#shared/io/policies/backtest-store.ts'
import { readOutcomeTable } from '#shared/io/policies/outcome-table-store.ts'
import { insertPolicyDocument } from '#shared/io/policies/policy-store.ts'
import { createShadowComparisonStore } from '#shared/io/policies/shadow-comparison-store.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { createCliContext } from '../../../services/console/cli/context.ts'
import { policy } from '../../../services/console/cli/policies/policies.ts'
import {
  type BacktestLine,
  type BacktestResult,
  type Backtests,
  createBacktests,
} from '../../../services/console/policies/backtest.ts'
import { createSuggestions } from '../../../services/console/policies/suggestions.ts'
import { toInstant } from '../../support/analytics/history-alerts.ts'
import { type ConsoleRig, startConsoleRig, testLog } from '../../support/http/console-rig.ts'
import {
  makeStoredOutcomes,
  type StoredSession,
  storeOutcomes,
} from '../../support/outcomes/stored-outcomes.ts'
import { seed } from '../../support/process/seed.ts'
import { until } from '../../support/process/until.ts'
import { anyEvent } from '../../support/scoring/backtest-cases.ts'
import {
  type ModelAlert,
  modelBacktest,
  toModelScorer,
} from '../../support/scoring/backtest-model.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { makeEvents } from '../../support/telemetry/accepted-events.ts'
import {
  askHarmedUsers,
  countFigures,
  readViewFigures,
  storeShadow,
  toAlertedUnder,
  toDecidedUnder,
  toFigures,
} from './outcome-figures.ts'

type FoundScores = { counts: ScoreCounts; days: number; honest_users: number[] }

const adminToken = randomBytes(32).toString('base64url')
const folder = mkdtempSync(join(tmpdir(), 'backtest-'))
const eventCount = 1_200
const startMs = Date.UTC(2026, 2, 1, 9)
const hourMs = 3_600_000

const clickhouse = await useClickhouse()
let rig: ConsoleRig
let backtests: Backtests
let app: FastifyInstance
let consoleUrl: string
/** The events of the tenant's table, each once. */
let events: AcceptedEvent[]
let alerts: ModelAlert[]

const learnStartMs = Date.UTC(2026, 3, 1)
/** Of a tenant that has labels: 50 days, a session an hour. */
const outcomes = makeStoredOutcomes('learn', learnStartMs, 1_200)

/** The time now, after all of them. */
const outcomesEndMs = () => learnStartMs + 60 * 24 * hourMs

/** Some signals of each form, alone and in groups. */
const fewSignals = new Set([
  ...['root.magisk_detected', 'root.root_hiding', 'root.verified_boot_state', 'root.test_keys'],
  ...['emulator.is_emulator', 'emulator.qemu_prop_count', 'debugger.frida_detected'],
  ...['tamper.untrusted_install_source', 'tamper.pi_device_verdict', 'tamper.app_attest_valid'],
  ...['tamper.pi_licensing', 'ecosystem.malware_detected', 'network.datacenter_ip'],
  ...['network.timezone_mismatch', 'attestation.hardware_backed', 'attestation.rejected'],
])

/** A policy of few signals: an engine plans each query of one with all of them for seconds. */
function toSmall(policy: Policy): Policy {
  const keep = (names: readonly string[], start = '') =>
    names.filter((name) => fewSignals.has(start + name))
  const some = (all: object) =>
    Object.fromEntries(
      Object.entries<Policy['categories']['root']>({ ...all }).map(
        ([category, { signals, groups, ...more }]) => [
          category,
          {
            ...more,
            signals: Object.fromEntries(
              Object.entries(signals).filter(([name]) => fewSignals.has(`${category}.${name}`)),
            ),
            groups: (groups ?? [])
              .map((group) => ({ ...group, signals: keep(group.signals, `${category}.`) }))
              .filter((group) => group.signals.length > 1),
          },
        ],
      ),
    )
  return policySchema.parse({
    ...policy,
    categories: some(policy.categories),
    serverCategories: some(policy.serverCategories ?? {}),
    floors: policy.floors
      .map((floor) => ({ ...floor, signals: keep(floor.signals) }))
      .filter(({ signals, need }) => signals.length > (need === 'all' ? 1 : 0)),
  })
}

/** Of the tenants. */
const usual = toSmall(defaultPolicy)
const strict = toSmall(presets.strict)

/** Has a suppression, and distinguishes a text and a number more finely than patterns do. */
const closer: Policy = toCloser()

function toCloser(): Policy {
  const { categories } = strict
  const { tamper, debugger: debug } = categories
  return policySchema.parse({
    ...strict,
    name: 'closer',
    categories: {
      ...categories,
      tamper: {
        ...tamper,
        signals: { ...tamper.signals, attestation_provider: { values: { 'naïve 😀': 25 } } },
      },
      debugger: {
        ...debug,
        signals: { ...debug.signals, tracer_pid: { atLeast: 2.5, weight: 30 } },
      },
    },
  })
}

const suppressing: Policy = policySchema.parse({
  ...toSmall(presets.permissive),
  name: 'suppressing',
  suppressions: [
    { signals: ['root.*', 'tamper.*'], platforms: ['IOS'], expiresAt: null, reason: 'test' },
    {
      signals: ['emulator.*'],
      sdkVersions: ['4.2.*'],
      reason: 'test',
      expiresAt: new Date(startMs + 3 * hourMs).toISOString(),
    },
  ],
})

beforeAll(async () => {
  process.stdout.write(`backtest seed ${seed}\n`)
  rig = await startConsoleRig()
  backtests = createBacktests({
    postgres: rig.postgres,
    leases: rig.deps.leases,
    clickhouse,
    log: testLog,
    metrics: createMetrics('console'),
    nowMs: () => performance.now(),
  })
  app = await createConsoleApp(
    {
      ...rig.deps,
      adminToken,
      wallMs: outcomesEndMs,
      backtests,
      overview: createOverviewStore(clickhouse),
      ...createRulePerformanceStore(clickhouse),
      suggestions: createSuggestions({
        postgres: rig.postgres,
        leases: rig.deps.leases,
        clickhouse,
        log: testLog,
        metrics: createMetrics('suggestions'),
        wallMs: outcomesEndMs,
      }),
      scores: createScoreStore(clickhouse),
    },
    {
      log: testLog,
      metrics: createMetrics('test'),
    },
  )
  consoleUrl = await app.listen({ host: '127.0.0.1', port: 0 })
  const toText = (policy: Policy) => ({ hash: toPolicyHash(policy), text: JSON.stringify(policy) })
  for (const tenantId of ['acme', 'twin', 'quiet', 'mixed', 'learn']) {
    await createTenantStore(rig.postgres).insertTenant({
      tenantId,
      name: '',
      environment: 'sandbox',
      webhookUrl: null,
      createdBy: 'test',
      policy: toText(defaultPolicy),
    })
  }
  for (const small of [usual, strict]) {
    await insertPolicyDocument(rig.postgres, toText(small))
  }
  events = makeHistory('acme')
  alerts = makeAlerts(events)
  await store(events)
  // A duplicated message, and another tenant's devices with the same ids.
  await store(events.filter((_, n) => n % 5 === 0))
  await store(makeHistory('twin').slice(0, 600))
  await store(makeListed())
  await insertAlertRows(clickhouse, 1, alerts.map(toRow))
  await storeOutcomes(clickhouse, outcomes)
})

afterAll(async () => {
  await app?.close()
  await rig?.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Events of 160 devices with up to three sessions each; a session has one SDK on one platform. */
function makeHistory(tenantId: string): AcceptedEvent[] {
  const versions = ['4.2.0', '4.2.1', '4.20.0', 'β.1']
  const platforms = ['android', 'iOS', 'ios']
  const drawn = fc.sample(fc.tuple(anyEvent, fc.nat(159), fc.nat(2)), { seed, numRuns: eventCount })
  const facts = drawn.map(([one, device, session], n) => ({
    tenantId,
    signals: one.signals!,
    nonce: n,
    receivedAtMs: startMs + (n % 400) * 60_000,
    deviceId: `device-${device}`,
    sessionId: `session-${device}-${session}`,
    policy: n % 3 === 0 ? strict : usual,
    more: {
      sdk_meta: {
        sdk_version: versions[(device + session) % versions.length]!,
        platform: platforms[(device * 3 + session) % platforms.length]!,
        batch_type: '',
      },
    },
  }))
  const forced = ['test-allow', 'test-review', 'test-block'].flatMap((deviceId) =>
    [0, 1].map((n) => ({
      tenantId,
      deviceId,
      sessionId: `forced-${n}`,
      nonce: `f${n}`,
      receivedAtMs: startMs,
      signals: { root: { magisk_detected: true } },
      policy: usual,
    })),
  )
  const made = makeEvents([...facts, ...forced])
  for (const [n, event] of made.entries()) {
    const force = findForcedScore(event.body.device_id, usual.thresholds)
    // Of two, the second was received while the tenant was live.
    if (force !== null && event.body.session_id === 'forced-0') {
      const { score, action, reasons } = force
      Object.assign(event, { rasp_score: score, rasp_action: action, reasons })
    }
    // A policy whose document is missing, and a verdict that was changed.
    if (n % 97 === 5) event.policy_hash = 'f'.repeat(32)
    else if (n % 300 === 7) event.rasp_score = (event.rasp_score + 1) % 100
  }
  return made
}

/** Events that a list decided, which no backtest counts. */
function makeListed(): AcceptedEvent[] {
  const facts = Array.from({ length: 40 }, (_, n) => ({
    tenantId: 'acme',
    deviceId: `device-${n}`,
    sessionId: n % 2 === 0 ? `session-${n}-0` : `listed-${n}`,
    nonce: `l${n}`,
    receivedAtMs: startMs + n * 60_000,
    signals: { root: { magisk_detected: true } },
  }))
  return makeEvents(facts).map((event, n) => {
    const list = n % 3 === 0 ? ('allow' as const) : ('deny' as const)
    const entry = {
      entryId: 'lst_1',
      list,
      kind: 'device',
      reason: 'x',
      expiresAtMs: null,
    } as const
    const { rasp_score: score, rasp_action: action, reasons } = event
    const listed = applyListReasons(
      { score, action, reasons },
      toListReasons({ decides: entry, silences: null }),
    )
    return Object.assign(event, { rasp_action: listed.action, reasons: listed.reasons })
  })
}

/**
 * Most expected alerts of the events, some with a higher score by correlation, and some only by it.
 */
function makeAlerts(of: readonly AcceptedEvent[]): ModelAlert[] {
  const made = new Map<string, ModelAlert>()
  const names = ['OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED']
  for (const [n, event] of of.entries()) {
    const { device_id: deviceId, session_id: sessionId } = event.body
    const own = event.rasp_action
    const action = own === 'ALLOW' ? (n % 40 === 3 ? 'REVIEW' : null) : own
    const key = `${deviceId} ${sessionId} ${action}`
    if (action === null || made.has(key) || n % 11 === 1) continue
    const isMore = own === 'ALLOW' || n % 7 === 2
    made.set(key, {
      deviceId,
      sessionId,
      action,
      disposition: names[n % names.length]!,
      raspScore: event.rasp_score,
      riskScore: event.rasp_score + (isMore ? 1 : 0),
      createdAtMs: event.received_at,
    })
  }
  return [...made.values()]
}

const toRow = (alert: ModelAlert, seq: number) => ({
  tenant_id: 'acme',
  alert_id: `alert-${seq}`,
  seq: seq + 1,
  disposition: alert.disposition,
  device_id: alert.deviceId,
  session_id: alert.sessionId,
  action: alert.action,
  risk_score: alert.riskScore,
  rasp_score: alert.raspScore,
  created_at: toInstant(alert.createdAtMs),
})

async function store(some: readonly AcceptedEvent[]): Promise<void> {
  const { insertTelemetry } = createTelemetryStore(clickhouse)
  for (let at = 0; at < some.length; at += 800) {
    const { refused } = await insertTelemetry(some.slice(at, at + 800))
    expect(refused).toEqual([])
  }
}

type Answer = { status: number; lines: BacktestLine[] }

async function requestBacktest(
  tenantId: string,
  document: unknown,
  more: { query?: string; token?: string; signal?: AbortSignal } = {},
): Promise<Answer> {
  const path = `/admin/v1/tenants/${tenantId}/policy/backtest${more.query ?? ''}`
  const answer = await fetch(`${consoleUrl}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${more.token ?? adminToken}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(document),
    signal: more.signal ?? null,
  })
  const text = await answer.text()
  const lines = text.split('\n').filter((line) => line !== '')
  return { status: answer.status, lines: lines.map((line) => JSON.parse(line) as BacktestLine) }
}

async function backtest(tenantId: string, policy: unknown, query = ''): Promise<BacktestResult> {
  const { status, lines } = await requestBacktest(tenantId, policy, { query })
  expect(status, JSON.stringify(lines)).toBe(200)
  const last = lines.at(-1)!
  if (!('report' in last)) throw new Error(JSON.stringify(last))
  return last.report
}

/** A report in the form of the model. */
function toComparable(report: BacktestResult) {
  const named = <One extends { name: string }>(all: readonly One[]) =>
    Object.fromEntries(all.map(({ name, ...counts }) => [name, counts]))
  const { correlated, recomputed } = report
  return {
    events: report.events,
    sessions: report.sessions,
    matrix: report.matrix,
    alerts: report.alerts,
    by_action: report.by_action,
    changes: report.changes,
    byPlatform: named(report.by_platform),
    byVersion: named(report.by_sdk_version),
    byDisposition: named(report.by_disposition),
    byFlag: named(report.by_flag),
    mayStay: correlated.may_stay,
    existAlready: correlated.exist_already,
    correlatedAlerts: correlated.alerts,
    moved_most: report.moved_most,
    recomputed: { ...recomputed, first: [...recomputed.first].sort() },
  }
}

const expected = (policy: Policy, sinceMs = 0) =>
  modelBacktest(
    events.filter((event) => event.received_at >= sinceMs),
    {
      policy,
      scoredBy: [usual, strict],
      alerts: alerts.filter((one) => sinceMs === 0 || one.createdAtMs >= 0),
    },
  )

describe('a report', () => {
  const policies = { strict, suppressing, closer }

  it.each(Object.entries(policies))(
    'for the policy %s equals counting event by event',
    async (_, policy) => {
      const report = await backtest('acme', policy)
      expect(toComparable(report)).toEqual(expected(policy))
      expect(report.recomputed.different).toBeGreaterThan(2)
      const { unchanged, ...changed } = report.changes
      expect(unchanged).toBeGreaterThan(0)
      expect(Object.values(changed).reduce((sum, count) => sum + count)).toBeGreaterThan(20)
      expect(report).toMatchObject({
        tenant_id: 'acme',
        since: null,
        policy: { name: policy.name, policy_hash: toPolicyHash(policy) },
      })
    },
  )

  it('begins at the given time, and lists the policies that it could not find', async () => {
    const sinceMs = startMs + 4 * hourMs
    const query = `?since=${new Date(sinceMs).toISOString()}`
    const report = await backtest('acme', strict, query)
    const { correlatedAlerts: _, ...model } = expected(strict, sinceMs)
    expect(toComparable(report)).toMatchObject(model)
    expect(report.since).toBe(new Date(sinceMs).toISOString())
    expect(report.correlated.alerts).toBe(
      alerts.filter((one) => one.riskScore > one.raspScore && one.createdAtMs >= sinceMs).length,
    )
    const gone = events.filter(
      (event) => event.policy_hash === 'f'.repeat(32) && event.received_at >= sinceMs,
    ).length
    // Duplicated rows count until they are merged.
    expect(report.not_recomputed).toEqual([
      { policy_hash: 'f'.repeat(32), events: expect.any(Number), why: 'not_stored' },
    ])
    expect(report.not_recomputed[0]!.events).toBeGreaterThanOrEqual(gone)
    expect(report.scored_by.map((one) => one.policy_hash).sort()).toEqual(
      [toPolicyHash(usual), toPolicyHash(strict)].sort(),
    )
  })

  it('for the active policy differs only where data was changed', async () => {
    const own = events.filter((event) => event.policy_hash === toPolicyHash(usual))
    await store(own.map((event) => toTenant(event, 'mixed')))
    const report = await backtest('mixed', usual)
    expect(report.events).toBe(own.length)
    expect(report.alerts.after).toBe(report.alerts.before)
    expect(report.changes).toMatchObject({ new: 0, gone: 0, stricter: 0, milder: 0 })
    expect(report.recomputed.different).toBeGreaterThan(0)
    expect(report.moved_most.length).toBeLessThanOrEqual(report.recomputed.different)
  })

  it('covers one tenant only, and is empty where nothing was stored', async () => {
    expect((await backtest('twin', strict)).events).toBe(600)
    const nothing = await backtest('quiet', strict)
    expect(nothing).toMatchObject({ events: 0, sessions: 0, moved_most: [], scored_by: [] })
  })
})

const toTenant = (event: AcceptedEvent, tenantId: string): AcceptedEvent => ({
  ...event,
  tenant_id: tenantId,
  body: { ...event.body, tenant_id: tenantId },
})

describe('events without stored patterns', () => {
  it('are scored one by one, with the same report', async () => {
    const run = (query: string) => clickhouse.command({ query })
    // Of a tenant that one policy scored, which shortens the planning of the queries.
    const byPatterns = toComparable(await backtest('mixed', strict))
    await run('create table kept as telemetry')
    await run('insert into kept (* except row_version) select * from telemetry')
    await run('truncate table telemetry')
    // A third without a pattern, a third without bits, and parts of both tenants.
    await run(`insert into telemetry (* except row_version)
      select * replace (
        if(kind = 0, pattern, '') as pattern,
        if(kind = 2, 0, stream_offset) as stream_offset,
        if(kind = 2, 0, detected_bits) as detected_bits,
        if(kind = 2, 0, clean_bits) as clean_bits
      ) except kind from (select *, cityHash64(event_id) % 3 as kind from kept)`)
    expect(toComparable(await backtest('mixed', strict))).toEqual(byPatterns)
    // Patterns that were never stored.
    await run('truncate table telemetry')
    await run('insert into telemetry (* except row_version) select * from kept')
    await run('rename table signal_patterns to away')
    await run('create table signal_patterns as away')
    expect(byPatterns.moved_most).not.toHaveLength(0)
    expect(toComparable(await backtest('mixed', strict))).toEqual(byPatterns)
    await run('drop table signal_patterns')
    await run('rename table away to signal_patterns')
  })
})

describe('patterns', () => {
  it('are fewer than events, and all but a few events have one', async () => {
    const result = await clickhouse.query({
      query: `select toFloat64(uniqExact(pattern)), toFloat64(countIf(pattern = ''))
        from telemetry where tenant_id = 'acme'`,
      format: 'JSONCompactEachRow',
    })
    const [[patterns, without] = [0, 0]] = await result.json<[number, number]>()
    expect(without).toBe(0)
    expect(patterns).toBeLessThan(events.length)
    const scoredBy = [{ policyHash: toPolicyHash(defaultPolicy), policy: defaultPolicy }]
    const range = { tenantId: 'acme', sinceMs: null }
    const of = (policy: Policy) =>
      createBacktestStore(clickhouse).prepare({ ...range, policy, scoredBy })
    const { trustedInstallers: _, ...plain } = presets.strict
    const known = [{ policyHash: toPolicyHash(plain), policy: plain }]
    const prepare = (policy: Policy, by = known) =>
      createBacktestStore(clickhouse).prepare({ ...range, policy, scoredBy: by })
    expect((await prepare(plain)).all).toEqual({ byExpression: 0, byBody: 0 })
    // Patterns leave out the installer, which decides only where a store is unknown.
    const unknown = events.filter(
      ({ body }) => body.signals.tamper.untrusted_install_source === true,
    )
    expect(unknown.length).toBeGreaterThan(0)
    expect((await of(presets.strict)).all.byExpression).toBeLessThanOrEqual(unknown.length)
    expect((await of(closer)).all.byExpression).toBeGreaterThan(0)
  })
})

describe('a request', () => {
  it('with an invalid policy is rejected as setting it is, with every fault', async () => {
    const document = structuredClone(presets.strict) as { thresholds: unknown; name: string }
    document.thresholds = { review: 90, block: 10 }
    const [tried, set] = await Promise.all([
      requestBacktest('acme', document),
      fetch(`${consoleUrl}/admin/v1/tenants/acme/policy`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
        body: JSON.stringify(document),
      }).then((answer) => answer.json() as Promise<{ errors: unknown }>),
    ])
    expect(tried.status).toBe(400)
    expect(tried.lines[0]).toMatchObject({ code: 'invalid_policy', errors: set.errors })
  })

  it('needs the token, a tenant, and a valid time', async () => {
    expect((await requestBacktest('acme', strict, { token: 'x' })).status).toBe(401)
    expect((await requestBacktest('nobody', strict)).status).toBe(404)
    expect((await requestBacktest('acme', strict, { query: '?since=soon' })).status).toBe(400)
    expect((await requestBacktest('quiet', { preset: 'strict' })).lines.at(-1)).toHaveProperty(
      'report',
    )
  })

  it('never waits: one backtest runs at a time per tenant, over all consoles', async () => {
    await withLease(rig.deps.leases, 'backtest acme', async () => {
      const answer = await requestBacktest('acme', strict)
      expect(answer).toMatchObject({ status: 409, lines: [{ code: 'conflict' }] })
      expect((await requestBacktest('quiet', strict)).status).toBe(200)
    })
    expect((await requestBacktest('acme', usual)).status).toBe(200)
  })

  it('reports an unavailable engine in its last line', async () => {
    const absent = createClickhouse('http://127.0.0.1:1', { name: 'test' })
    const { start } = createBacktests({
      postgres: rig.postgres,
      leases: rig.deps.leases,
      clickhouse: absent,
      log: testLog,
      metrics: createMetrics('absent'),
      nowMs: () => performance.now(),
    })
    const request = { tenantId: 'acme', policy: closer, sinceMs: null, requestId: 'req_1' }
    const lines = await Array.fromAsync((await start(request)).lines())
    expect(lines).toEqual([
      { problem: expect.objectContaining({ code: 'unavailable', request_id: 'req_1' }) },
    ])
    await absent.close()
  })

  it('has released its permit when it sends its last line', async () => {
    for (let n = 0; n < 5; n++) {
      const running = await backtests.start({
        tenantId: 'acme',
        policy: closer,
        sinceMs: Date.now(),
        requestId: 'req_1',
      })
      for await (const line of running.lines()) if ('report' in line) break
    }
  })

  it('ends when its client leaves, and the next one may begin', async () => {
    const request = { tenantId: 'acme', policy: closer, sinceMs: null, requestId: 'req_1' }
    const running = await backtests.start(request)
    const lines = running.lines()
    expect((await lines.next()).value).toHaveProperty('progress')
    running.cancel()
    expect(await lines.next()).toEqual({ done: true, value: undefined })
    // Its client left before it read a line.
    const isFree = async () => {
      const next = await backtests.start(request).catch(() => null)
      next?.cancel()
      return next !== null
    }
    await until('the turn was given back', isFree)
    await until('and by one that told no line', isFree)
    const gone = new AbortController()
    const aborted = requestBacktest('acme', closer, { signal: gone.signal })
    setTimeout(() => gone.abort(), 30)
    await aborted.catch(() => undefined)
    await until('and by a connection that was cut', isFree)
  })
})

describe('a suggestion', () => {
  it('reads sessions, decisions and labels as they are', async () => {
    const range = { tenantId: 'learn', sinceMs: learnStartMs }
    const reading = readOutcomeTable(clickhouse, { range, policy: defaultPolicy })
    let step = await reading.next()
    while (!step.done) step = await reading.next()
    const { table, sessions, leftOut } = step.value!
    expect([sessions, leftOut]).toEqual([1_200, 0])
    const scores = scoreEvents(defaultPolicy, table.events)
    expect(countScores(table.rows, scores)).toEqual(outcomes.expected)
    // 70 % of the labelled sessions are older.
    const older = table.rows.filter(({ period }) => period === 'older')
    const labelled = (rows: readonly OutcomeRow[]) =>
      rows.reduce((sum, { fraud, legitimate }) => sum + fraud + legitimate, 0)
    expect(labelled(older) / labelled(table.rows)).toBeCloseTo(0.7, 2)
    expect(table.days.older + table.days.newer).toBeCloseTo(1_199 / 24, 1)
  })

  it('is of the sessions whose scores the threshold picker shows', async () => {
    const read = (days: number) =>
      fetch(`${consoleUrl}/admin/v1/tenants/learn/policy/scores?days=${days}`, {
        headers: { authorization: `Bearer ${adminToken}` },
      }).then((answer) => answer.json() as Promise<FoundScores>)
    const all = await read(90)
    expect(all.counts).toEqual(outcomes.expected)
    expect(all.days).toBeCloseTo(60, 1)
    // Of each honest user the session with the highest score counts, wherever it was labelled.
    const highest = new Map<string, number>()
    for (const { outcome, userId, riskScore } of outcomes.sessions) {
      if (outcome !== 'legitimate') continue
      highest.set(userId, Math.max(riskScore, highest.get(userId) ?? 0))
    }
    const users = new Array<number>(101).fill(0)
    for (const score of highest.values()) users[score]!++
    expect(all.honest_users).toEqual(users)
    const count = (of: FoundScores) => countAlerts(of.counts, 0)
    // One session an hour, for 50 of the 60 days.
    expect(count(await read(20))).toBe(10 * 24)
    const range = { tenantId: 'learn', sinceMs: 0, untilMs: outcomesEndMs() }
    const whole = await createScoreStore(clickhouse).countScores(range)
    const { fraud, legitimate, unlabelled } = outcomes.expected
    const together = fraud.map((one, at) => one + legitimate[at]! + unlabelled[at]!)
    expect(whole).toEqual({ ...noScores(), unlabelled: together })
    const none = await read(5)
    expect([count(none), none.days]).toEqual([0, 0])
  })

  it('leaves out what is known of a session that began before its range', async () => {
    const isCut = ({ startedAtMs, outcome, events }: StoredSession) =>
      outcome !== null && events.some((event) => event.received_at > startedAtMs)
    const sinceMs = outcomes.sessions.find(isCut)!.startedAtMs + 500
    const range = { tenantId: 'learn', sinceMs }
    const reading = readOutcomeTable(clickhouse, { range, policy: defaultPolicy })
    let step = await reading.next()
    while (!step.done) step = await reading.next()
    const known = step.value!.table.rows.reduce((sum, row) => sum + row.fraud + row.legitimate, 0)
    const { fraud, honest } = countFigures(outcomes.sessions, sinceMs)
    expect(known).toBe(fraud + honest)
  })

  it('reads the signals that the tenant declares, which no pattern has', async () => {
    const { root, ecosystem } = defaultPolicy.categories
    const own = policySchema.parse({
      ...defaultPolicy,
      signals: {
        'root.own_check': { type: 'boolean' },
        'root.own_age': { type: 'number' },
        'ecosystem.own_state': { type: 'string' },
        'ecosystem.own_list': { type: 'strings' },
      },
      categories: {
        ...defaultPolicy.categories,
        root: { ...root, signals: { ...root.signals, own_age: { atLeast: 2.5, weight: 50 } } },
        ecosystem: {
          ...ecosystem,
          signals: {
            ...ecosystem.signals,
            own_state: { values: { odd: 7, bad: 30 } },
            own_list: { values: { '(empty)': 9, x: 11 }, unless: ['y'] },
          },
        },
      },
      suppressions: [
        { signals: ['root.own_age'], platforms: ['ios'], expiresAt: null, reason: 'test' },
      ],
    })
    const shown: Record<string, Record<string, unknown>>[] = [
      {},
      { root: { own_check: true, magisk_detected: true } },
      { root: { own_check: false, own_age: 3 } },
      { root: { own_age: 2 }, ecosystem: { own_state: 'bad' } },
      { root: { own_age: '3' }, ecosystem: { own_state: ['bad'], own_list: 'x' } },
      { ecosystem: { own_state: 'odd', own_list: [] } },
      { root: { own_age: 9 }, ecosystem: { own_list: ['x', 'z'] } },
      { ecosystem: { own_list: ['x', 'y'], developer_mode: true } },
    ]
    const mine = makeEvents(
      [...shown, ...shown].map((signals, n) => ({
        tenantId: 'own',
        deviceId: `own-${n}`,
        sessionId: `own-${n}`,
        nonce: n,
        receivedAtMs: learnStartMs + n,
        signals,
        more: {
          sdk_meta: { sdk_version: '1', platform: n < 8 ? 'ios' : 'android', batch_type: '' },
        },
      })),
    )
    await store(mine)
    const range = { tenantId: 'own', sinceMs: learnStartMs }
    const reading = readOutcomeTable(clickhouse, { range, policy: own })
    let step = await reading.next()
    while (!step.done) step = await reading.next()
    const { table, leftOut } = step.value!
    expect(leftOut).toBe(0)
    const model = toModelScorer(own)
    const expectedScores = noScores()
    for (const event of mine) expectedScores.unlabelled[model(event).score]!++
    expect(countScores(table.rows, scoreEvents(own, table.events))).toEqual(expectedScores)
    const { features, columnsOf } = toFeatures(own)
    const check = features.findIndex(({ name }) => name === 'root.own_check')
    expect(features[check]!.today).toBe(0)
    const sessions = table.rows.filter(({ events: [event] }) => {
      return columnsOf(table.events[event!]!).includes(check)
    })
    expect(sessions.reduce((sum, { unlabelled }) => sum + unlabelled, 0)).toBe(2)
    const points = features.map(({ name, today }) => (name === 'root.own_check' ? 21 : today))
    const drafted = withPoints(own, features, points).categories.root.signals
    expect(drafted).toEqual({ ...own.categories.root.signals, own_check: 21 })
  })

  it('is a draft on the command line, and nothing is set', async () => {
    const file = join(folder, 'suggested.json')
    const text = await di('policy', 'suggest', 'learn', '--out', file)
    const draft = checkPolicy(JSON.parse(readFileSync(file, 'utf8')))
    if (!draft.ok) throw new Error(JSON.stringify(draft.errors))
    const { emulator, ecosystem } = draft.policy.categories
    const cloned = Number(emulator.signals.app_cloned)
    expect(cloned).toBeGreaterThan(Number(defaultPolicy.categories.emulator.signals.app_cloned))
    expect(ecosystem.signals.developer_mode).toBe(0)
    expect(text).toContain('1200 sessions since 2026-')
    expect(text).toMatch(/emulator\.app_cloned +20 -> \d+ +\d+ to \d+/)
    const nothing =
      /ecosystem\.developer_mode +4 -> 0 .*predicts nothing of its own \(-?\d\.\d\d to /
    expect(text).toMatch(nothing)
    expect(text).toMatch(/review: EUR caught +\d+\.\d\d of \d+\.\d\d, \d+\.\d\d missed +\d/)
    expect(text).toMatch(/equal alerts: recall +[\d.]+ % \([\d.]+ to [\d.]+\) +[\d.]+ % \(/)
    const report = JSON.parse(await di('policy', 'suggest', 'learn', '--json'))
    expect(report.suggestion.policy).toEqual(draft.policy)
    const versions = JSON.parse(await di('policy', 'versions', 'learn', '--json'))
    expect(versions.data ?? versions).toHaveLength(1)
  })

  it('is refused where too little is known, and says what is missing', async () => {
    let printed = ''
    const refused = di('policy', 'suggest', 'quiet', (text) => {
      printed += text
    })
    await expect(refused).rejects.toThrow('Nothing is suggested.')
    expect(printed).toContain('fraud sessions: 0, at least 100 are needed')
    expect(printed).toContain('legitimate sessions: 0, at least 100 are needed')
  })
})

describe('the figures of one policy and period', () => {
  const asOf = new Date(learnStartMs + 55 * 24 * hourMs).toISOString()
  const get = async <T>(path: string): Promise<T> => {
    const headers = { authorization: `Bearer ${adminToken}` }
    const answer = await app.inject({ url: `/admin/v1/tenants/learn${path}`, headers })
    expect(answer.statusCode, answer.body).toBe(200)
    return answer.json<T>()
  }
  const readRules = async (since: string, until = '') => {
    const { outcomes } = await get<RulePerformance>(`/rule-performance?since=${since}${until}`)
    return outcomes
  }
  let policyHash: string

  beforeAll(async () => {
    await markRound(clickhouse, { round: 1, copiedAtMs: Date.parse(asOf) })
    policyHash = await storeShadow(clickhouse, outcomes)
  })

  it('are the same in every report and in SQL, money included', async () => {
    const report = JSON.parse(await di('policy', 'suggest', 'learn', '--json'))
    const newerMs = Date.parse(report.newer_since)
    const { compared, totals, policy: draft } = report.suggestion
    const { fraud, legitimate: honest } = totals.newer
    const suggested = (policy: 'active' | 'suggested') =>
      toFigures({ ...compared[policy].review, fraud, honest })
    // Of a session that began just before the second of them, later events are in the range.
    for (const sinceMs of [newerMs, newerMs + 500]) {
      const since = new Date(sinceMs).toISOString()
      const expected = countFigures(outcomes.sessions, sinceMs)
      for (const count of Object.values(expected)) expect(count).not.toBe(0)
      const rules = await readRules(since)
      expect(toFigures(rules)).toEqual(expected)
      expect(await readViewFigures(clickhouse, sinceMs)).toEqual(expected)
      const tested = await backtest('learn', defaultPolicy, `?since=${since}`)
      expect(toFigures(tested.outcomes.before)).toEqual(expected)
      expect(toFigures(tested.outcomes.after)).toEqual(expected)
      expect(tested.outcomes).toMatchObject({ as_of: asOf, fraud_lost: 0, honest_newly_harmed: 0 })
      const { compareShadow } = createShadowComparisonStore(clickhouse)
      const shadow = (await compareShadow({ tenantId: 'learn', policyHash, sinceMs })).outcomes
      expect(toFigures(shadow.active)).toEqual(expected)
      expect(toFigures(shadow.shadow)).toEqual(expected)
      const to = new Date(sinceMs + 30 * 24 * hourMs).toISOString()
      const { outcomes: shown } = await get<{ outcomes: typeof rules }>(
        `/overview?from=${since}&to=${to}`,
      )
      expect(toFigures(shown)).toEqual(expected)
      expect([rules.as_of, shown.as_of, shadow.as_of]).toEqual([asOf, asOf, asOf])
      expect(shown.recall).toEqual(rules.recall)
      if (sinceMs > newerMs) continue
      expect(suggested('active')).toEqual(expected)
      expect(suggested('suggested')).toEqual(
        countFigures(outcomes.sessions, sinceMs, toDecidedUnder(draft, outcomes)),
      )
    }
  })

  it('are those of the cookbook: honest users with an alert, each once', async () => {
    const honest = outcomes.sessions.filter(({ outcome }) => outcome === 'legitimate')
    const sessionOf = ({ events: [event] }: StoredSession) => event!.body.session_id
    const judged = new Map(outcomes.alerts.map((alert) => [alert.session_id, alert]))
    const harmed = honest.filter((session) => judged.has(sessionOf(session)))
    expect(harmed.length).toBeGreaterThan(1)
    // One of these users has an alert in another session too, which nobody has judged.
    const [first] = harmed
    const again = honest.find((session) => session.userId === first!.userId && session !== first)
    const { device_id, session_id } = again!.events[0]!.body
    const alert = { ...judged.get(sessionOf(first!))!, alert_id: 'alr_learn_again', seq: 9_999 }
    const open = { ...alert, device_id, session_id, disposition: 'OPEN' as const }
    await insertAlertRows(clickhouse, 1, [open])
    const [row] = await askHarmedUsers(clickhouse, 'learn', learnStartMs)
    expect(row).toMatchObject({
      honest_sessions: honest.length,
      harmed_sessions: harmed.length + 1,
      harmed_users: new Set(harmed.map(({ userId }) => userId)).size,
    })
  })

  it('end where the period ends', async () => {
    const [sinceMs, untilMs] = [learnStartMs, learnStartMs + 400 * hourMs]
    const [since, until] = [sinceMs, untilMs].map((ms) => new Date(ms).toISOString())
    const before = outcomes.sessions.filter(({ startedAtMs }) => startedAtMs < untilMs)
    const expected = countFigures(before, sinceMs)
    expect(toFigures(await readRules(since!, `&until=${until}`))).toEqual(expected)
    const { outcomes: shown } = await get<{ outcomes: RulePerformance['outcomes'] }>(
      `/overview?from=${since}&to=${until}`,
    )
    expect(toFigures(shown)).toEqual(expected)
  })

  it.each(['strict', 'permissive'] as const)(
    'of a backtest of %s are those of counting session by session',
    async (name) => {
      const { outcomes: found } = await backtest('learn', presets[name])
      const isAlerted = toAlertedUnder(presets[name])
      const before = countFigures(outcomes.sessions, 0)
      const after = countFigures(outcomes.sessions, 0, isAlerted)
      expect(toFigures(found.before)).toEqual(before)
      expect(toFigures(found.after)).toEqual(after)
      expect(found.fraud_gained - found.fraud_lost).toBe(after.caught - before.caught)
      expect(found.honest_newly_harmed - found.honest_spared).toBe(after.harmed - before.harmed)
      expect(found.fraud_lost + found.fraud_gained).toBeGreaterThan(0)
    },
  )

  it('of a tenant without sessions are too few to say', async () => {
    const { outcomes: found } = await backtest('quiet', strict)
    expect(found.before).toMatchObject({ fraud: 0, recall: { rate: null, low: 0, high: 1 } })
    expect(found.after).toEqual(found.before)
  })
})

describe('the command', () => {
  it('prints one JSON document, or text', async () => {
    const file = join(folder, 'policy.json')
    writeFileSync(file, JSON.stringify(strict))
    const report = JSON.parse(await di('policy', 'backtest', 'acme', file, '--json'))
    expect(report).toMatchObject({ tenant_id: 'acme', events: events.length })
    const text = await di('policy', 'backtest', 'acme', file)
    expect(text).toContain(`${events.length} events under strict`)
    expect(text).toMatch(/OUTCOMES +BEFORE +AFTER\n\d+ fraudulent sessions +\d+ caught \(.+/)
    expect(text).toContain('confirmed fraud sessions would no longer be caught')
    expect(text).toMatch(/SESSIONS +NEW +GONE +STRICTER +MILDER +UNCHANGED/)
    expect(text).toContain('do not score as they were stored: evt_')
    expect(text).toContain(`the policy ${'f'.repeat(32)}, which is not stored here`)
    writeFileSync(file, JSON.stringify({ ...strict, schema: 2 }))
    await expect(di('policy', 'backtest', 'acme', file)).rejects.toThrow(/\$\.schema/)
  })
})

async function di(...words: (string | ((text: string) => void))[]): Promise<string> {
  let text = ''
  const args = words.filter((word) => typeof word === 'string')
  const listeners = words.filter((word) => typeof word === 'function')
  const env = { ADMIN_TOKEN: adminToken, CONSOLE_URL: consoleUrl }
  const program = new Command('di').exitOverride()
  policy(
    program,
    createCliContext({
      env,
      json: () => args.includes('--json'),
      write: (more) => {
        text += more
        for (const listen of listeners) listen(more)
      },
    }),
  )
  await program.parseAsync(args, { from: 'user' })
  return text
}
