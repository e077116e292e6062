// Rule performance and the alarm for bad releases, on the real engine over the simulated fleet: as
// views, over the admin API and on the command line.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { type Outcome, toCountingLabels } from '#shared/core/outcomes/labels.ts'
import { toRate } from '#shared/core/outcomes/wilson.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import {
  createPrevalenceSpikeStore,
  requestPrevalenceCheck,
} from '#shared/io/analytics/prevalence-spike-store.ts'
import { insertAlertRows } from '#shared/io/analytics/replica-rows-store.ts'
import {
  createRulePerformanceStore,
  type Precision,
  type RulePerformance,
} from '#shared/io/analytics/rule-performance-store.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { createCliContext } from '../../../services/console/cli/context.ts'
import { labels } from '../../../services/console/cli/outcomes/labels.ts'
import { rulePerformance } from '../../../services/console/cli/rule-performance.ts'
import { signals } from '../../../services/console/cli/signals.ts'
import {
  createPrevalenceSpikes,
  type PrevalenceSpikes,
} from '../../../services/console/jobs/prevalence-spikes.ts'
import { historyEndMs, historyStartMs } from '../../support/analytics/cookbook-span.ts'
import {
  type FleetHistory,
  fleetTenant,
  insertHistory,
  planHistory,
} from '../../support/analytics/fleet-history.ts'
import { type HistoryAlert, toInstant } from '../../support/analytics/history-alerts.ts'
import type { HistoryLabel } from '../../support/analytics/history-labels.ts'
import {
  findKnownSessions,
  sumLosses,
  toCents,
  toSessionKey,
} from '../../support/analytics/known-sessions.ts'
import { acceptEvent } from '../../support/http/api-rig.ts'
import { type ConsoleRig, startConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { testHourlyJob } from './hourly-job.ts'

const adminToken = randomBytes(32).toString('base64url')
const clickhouse = await useClickhouse()
let rig: ConsoleRig
let app: FastifyInstance
let consoleUrl: string
let history: FleetHistory
/** Queries of the events of a spike. */
let affectedReads = 0

beforeAll(async () => {
  rig = await startConsoleRig()
  const spikes = createPrevalenceSpikeStore(clickhouse)
  app = await createConsoleApp(
    {
      ...rig.deps,
      adminToken,
      wallMs: Date.now,
      ...createRulePerformanceStore(clickhouse),
      prevalenceSpikes: {
        ...spikes,
        findAffected: (question) => {
          affectedReads++
          return spikes.findAffected(question)
        },
      },
    },
    {
      log: testLog,
      metrics: createMetrics('console'),
    },
  )
  consoleUrl = await app.listen({ host: '127.0.0.1', port: 0 })
  for (const tenantId of [fleetTenant, 'acme', 'twin', 'quiet']) {
    await createTenantStore(rig.postgres).insertTenant({
      tenantId,
      name: '',
      environment: 'sandbox',
      webhookUrl: null,
      createdBy: 'test',
      policy: { hash: toPolicyHash(defaultPolicy), text: JSON.stringify(defaultPolicy) },
    })
  }
  history = planHistory(11, 700)
  await insertHistory(clickhouse, history)
})

afterAll(async () => {
  await app?.close()
  await rig?.close()
})

async function read<Row>(query: string): Promise<Row[]> {
  const result = await clickhouse.query({ query, format: 'JSONEachRow' })
  return result.json<Row>()
}

async function get<T>(path: string): Promise<T> {
  const headers = { authorization: `Bearer ${adminToken}` }
  const answer = await app.inject({ url: `/admin/v1${path}`, headers })
  expect(answer.statusCode, answer.body).toBe(200)
  return answer.json<T>()
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
  rulePerformance(program, context)
  labels(program, context)
  await program.parseAsync(args, { from: 'user' })
  return printed
}

type Counts = [what: string, alerts: number, confirmed: number, refuted: number]

/** Counts computed independently from the dispositions of the history. */
function count(thingsOf: (one: HistoryAlert) => string[], sinceMs = 0): Counts[] {
  const counts = new Map<string, Counts>()
  for (const alert of history.alerts) {
    if (alert.createdAtMs < sinceMs) continue
    for (const what of new Set(thingsOf(alert))) {
      const own = counts.get(what) ?? [what, 0, 0, 0]
      counts.set(what, own)
      own[1]++
      if (alert.disposition === 'CONFIRMED') own[2]++
      if (alert.disposition === 'FALSE_POSITIVE') own[3]++
    }
  }
  return [...counts.values()].sort(byName)
}
const byName = (a: Counts, b: Counts) => (a[0] < b[0] ? -1 : 1)
const toCounts = (rows: Precision[]): Counts[] =>
  rows.map((one): Counts => [one.what, one.alerts, one.confirmed, one.false_positive]).sort(byName)

describe('precision', () => {
  type Row = Record<string, number | null> & { what: string }
  const readView = (name: string, what: string) =>
    read<Row>(`select *, ${what} as what from analytics.precision_by_${name}
      where tenant_id = '${fleetTenant}'`)

  test('by flag, signal and reason follows from dispositions, also in the API', async () => {
    const performance = await get<RulePerformance>(`/tenants/${fleetTenant}/rule-performance`)
    expect(toCounts(performance.flags)).toEqual(count((one) => one.codes))
    expect(toCounts(performance.signals)).toEqual(count((one) => one.signals))
    expect([['', performance.alerts, performance.confirmed, performance.false_positive]]).toEqual(
      count(() => ['']),
    )
    const reason =
      "concat(reason, if(empty(seen_from), '', ' by '), arrayStringConcat(seen_from, ' + '))"
    for (const [rows, name, what] of [
      [performance.flags, 'flag', 'flag'],
      [performance.signals, 'signal', 'signal'],
      [performance.reasons, 'reason', reason],
    ] as const) {
      const view = await readView(name, what)
      expect(view.length).toBe(rows.length)
      for (const row of rows) {
        const same = view.find((one) => one.what === row.what)
        expect(same).toMatchObject({
          alerts: row.alerts,
          confirmed: row.confirmed,
          false_positive: row.false_positive,
          precision: row.precision,
        })
        expect(same?.precision_low).toBeCloseTo(row.precision_low, 3)
        expect(same?.precision_high).toBeCloseTo(row.precision_high, 3)
        if (row.lift === null) expect(same?.lift).toBeNull()
        else expect(same?.lift).toBeCloseTo(row.lift, 6)
      }
    }
  })

  test('stands beside the fraud that was caught and missed, the harm and the money', async () => {
    const { outcomes } = await get<RulePerformance>(`/tenants/${fleetTenant}/rule-performance`)
    const known = findKnownSessions(history)
    const alerted = new Set(
      history.events
        .filter(({ event }) => event.rasp_action !== 'ALLOW')
        .map(({ event: { body } }) => toSessionKey(body.device_id, body.session_id)),
    )
    const count = (outcome: Outcome, hasAlert?: boolean) => {
      const of = known.filter((one) => one.outcome === outcome)
      if (hasAlert === undefined) return of.length
      return of.filter((one) => alerted.has(toSessionKey(one.deviceId, one.sessionId)) === hasAlert)
        .length
    }
    expect(outcomes).toMatchObject({
      as_of: new Date(historyEndMs).toISOString(),
      fraud: count('fraud'),
      caught: count('fraud', true),
      missed: count('fraud', false),
      honest: count('legitimate'),
      harmed: count('legitimate', true),
      recall: toRate(count('fraud', true), count('fraud')),
      harmed_share: toRate(count('legitimate', true), count('legitimate')),
    })
    expect(outcomes.missed).toBeGreaterThan(0)
    expect(outcomes.harmed).toBeGreaterThan(0)
    const counting = toCountingLabels(history.labels)
    const covering = new Set(known.flatMap(({ labels }) => labels))
    expect([outcomes.labels, outcomes.labels_without_session]).toEqual([
      counting.length,
      counting.filter((label) => !covering.has(label as HistoryLabel)).length,
    ])
    expect(outcomes.labels_without_session).toBeGreaterThan(0)
    const lost = outcomes.losses.map(({ currency, lost }) => [currency, toCents(lost)] as const)
    expect(Object.fromEntries(lost)).toEqual(sumLosses(known))
    for (const one of outcomes.losses) {
      expect(toCents(one.caught) + toCents(one.missed)).toBe(toCents(one.lost))
    }
    // The same flags as the question of the cookbook, which reads the view.
    const asked = await read<{ flag: string; fraud: number }>(
      `select flag, countIf(outcome = 'fraud') as fraud from analytics.labelled_sessions
       array join arrayDistinct(arrayConcat(flags, risk_flags)) as flag
       where tenant_id = '${fleetTenant}' group by flag`,
    )
    expect(outcomes.flags.map(({ flag, fraud }) => ({ flag, fraud }))).toEqual(
      expect.arrayContaining(asked),
    )
    expect(outcomes.flags).toHaveLength(asked.length)
    const text = await di('rule-performance', fleetTenant)
    expect(text).toContain(`${outcomes.fraud} fraudulent sessions: ${outcomes.caught} caught`)
  })

  test('of a tenant without labels is too few to say', async () => {
    const { outcomes } = await get<RulePerformance>('/tenants/quiet/rule-performance')
    expect(outcomes).toMatchObject({ fraud: 0, recall: { rate: null, low: 0, high: 1 }, flags: [] })
    expect(await di('rule-performance', 'quiet')).toContain('0 caught (too few to say)')
  })

  test('is not claimed for rules with few dispositions', async () => {
    const { signals, flags, reasons } = await get<RulePerformance>(
      `/tenants/${fleetTenant}/rule-performance`,
    )
    const all = [...signals, ...flags, ...reasons]
    const few = all.filter((one) => one.confirmed + one.false_positive < 10)
    expect(few.length).toBeGreaterThan(3)
    for (const one of few) expect([one.precision, one.lift]).toEqual([null, null])
    const sure = all.filter((one) => one.confirmed === 1 && one.false_positive === 0)
    expect(sure.length).toBeGreaterThan(0)
    for (const one of sure) {
      expect(one.precision_low).toBeCloseTo(0.206, 2)
      expect(one.precision_high).toBe(1)
    }
  })

  test('shows the signal that a bad release made worthless', async () => {
    const { signals, base_precision: base } = await get<RulePerformance>(
      `/tenants/${fleetTenant}/rule-performance`,
    )
    const { signal } = history.stories.release
    const broken = signals.find((one) => one.what === signal)!
    const farms = signals.find((one) => one.what === 'emulator.emulator_files')!
    expect(broken.lift).toBeLessThan(1)
    expect(farms.lift).toBeGreaterThan(1)
    expect(farms.precision_low).toBeGreaterThan(base!)
  })

  test('begins at the given time', async () => {
    const sinceMs = historyStartMs + 60 * dayMs
    const since = new Date(sinceMs).toISOString()
    const performance = await get<RulePerformance>(
      `/tenants/${fleetTenant}/rule-performance?since=${since}`,
    )
    expect(toCounts(performance.flags)).toEqual(count((one) => one.codes, sinceMs))
  })

  test('is printed as text and as JSON, and is empty for another tenant', async () => {
    const text = await di('rule-performance', fleetTenant)
    expect(text).toMatch(/^\d+ alerts: \d+ confirmed, \d+ false positives, precision \d+\.\d %/)
    expect(text).toMatch(/^HOOKING_DETECTED +\d+ +\d+ +\d+ +\d+\.\d % +\d+\.\d % to \d+\.\d %/m)
    const none = JSON.parse(await di('rule-performance', 'quiet', '--json')) as RulePerformance
    expect(none).toMatchObject({ alerts: 0, base_precision: null, flags: [], signals: [] })
    const answer = await app.inject({
      url: '/admin/v1/tenants/nobody/rule-performance',
      headers: { authorization: `Bearer ${adminToken}` },
    })
    expect(answer.statusCode).toBe(404)
  })
})

describe('entities linked to a confirmed case', () => {
  test('are its users and their other devices, with times and alerts', async () => {
    const { deviceId, users } = history.stories.movedTo
    const rows = await read<Record<string, string | number>>(
      `select * from analytics.linked_entities
       where tenant_id = '${fleetTenant}' and case_device_id = '${deviceId}'`,
    )
    const confirmed = history.alerts.filter(
      (one) => one.disposition === 'CONFIRMED' && one.deviceId === deviceId,
    )
    const usersOf = (one: AcceptedEvent) =>
      [one.body.user_id, one.body.account_id].filter((id) => id !== undefined)
    const events = history.events.map(({ event }) => event)
    const onCase = new Set(events.filter((one) => one.body.device_id === deviceId).flatMap(usersOf))
    const pairs = new Map<string, number[]>()
    for (const one of events) {
      for (const user of usersOf(one).filter((id) => onCase.has(id))) {
        const key = `${user} ${one.body.device_id}`
        pairs.set(key, [...(pairs.get(key) ?? []), one.received_at])
      }
    }
    expect(users.every((user) => onCase.has(user))).toBe(true)
    expect(new Set(rows.map((row) => row.alert_id))).toEqual(
      new Set(confirmed.map((one) => one.alertId)),
    )
    expect(rows).toHaveLength(confirmed.length * pairs.size)
    for (const row of rows) {
      const seen = pairs.get(`${row.user_id} ${row.device_id}`)!
      expect(row).toMatchObject({
        relation: row.device_id === deviceId ? 'case device' : 'other device',
        first_seen_at: toInstant(Math.min(...seen)),
        last_seen_at: toInstant(Math.max(...seen)),
        alerts: history.alerts.filter((one) => one.deviceId === row.device_id).length,
      })
      expect(row.confirmed_at).not.toBeNull()
    }
  })

  test('exclude links by placeholder ids, which no rule counts either', async () => {
    const tenantId = 'links'
    const atMs = Date.now() - hourMs
    const placeholders = ['unknown', 'null', '0', 'Anonymous', '(null)']
    const seen = (deviceId: string, userId: string, n: number) =>
      acceptEvent({ tenantId, deviceId, userId, sessionId: `s${n}`, atMs: atMs + n })
    const events = [
      ...placeholders.flatMap((userId, n) => [
        seen('case', userId, n),
        seen(`other-${n}`, userId, 20 + n),
      ]),
      seen('case', 'eve', 40),
      seen('tablet', 'eve', 41),
      // A real user on a device without its own id.
      seen('unknown', 'eve', 42),
      seen('unknown', 'bob', 43),
    ]
    await createTelemetryStore(clickhouse).insertTelemetry(events)
    await insertAlertRows(
      clickhouse,
      1,
      ['case', 'unknown'].map((deviceId, n) => ({
        tenant_id: tenantId,
        alert_id: `alr_${deviceId}`,
        seq: n + 1,
        device_id: deviceId,
        created_at: toInstant(atMs),
        action: 'BLOCK',
        disposition: 'CONFIRMED',
        event_id: `evt_${n}`,
        reason_codes: ['HOOKING_DETECTED'],
        reason_weights: [80],
        reason_evidence: ['{}'],
      })),
    )
    const pairs = ['eve case', 'eve tablet']
    const from = (view: string) =>
      read(`select concat(user_id, ' ', device_id) as pair from analytics.${view}
        where tenant_id = '${tenantId}' order by pair`)
    const expected = pairs.map((pair) => ({ pair }))
    expect(await from('linked_entities')).toEqual(expected)
    expect(await from('user_devices')).toEqual(expected)
    expect(await from("user_devices_as_of(as_of = '2100-01-01 00:00:00.000')")).toEqual(expected)
    expect(
      await read(`select user_id, devices from analytics.users where tenant_id = '${tenantId}'`),
    ).toEqual([{ user_id: 'eve', devices: 2 }])
    // Erasure needs every pair.
    const kept = await read<{ user_id: string }>(
      `select distinct user_id from user_devices where tenant_id = '${tenantId}'`,
    )
    expect(kept.map((row) => row.user_id).sort()).toEqual([...placeholders, 'bob', 'eve'].sort())
  })
})

describe('a bad release', () => {
  const nowMs = Date.now()
  const signal = 'debugger.xposed_detected'
  const bad = { debugger: { xposed_detected: true } }
  let wallMs = nowMs
  const logged: Record<string, unknown>[] = []
  const metrics = createMetrics('console')
  const log = { ...testLog, warn: (facts: Record<string, unknown>) => logged.push(facts) }

  /** Devices of one version on one day, the first few of them with the signal. */
  function oneDay(of: {
    tenantId: string
    version: string
    day: number
    fleet: number
    detected: number
  }) {
    return Array.from({ length: of.fleet }, (_, n) =>
      acceptEvent({
        tenantId: of.tenantId,
        deviceId: `${of.version}-${n}`,
        sdkVersion: of.version,
        sessionId: `${of.version}-${n}-${of.day}`,
        atMs: nowMs - of.day * dayMs - 2 * hourMs - n,
        signals: n < of.detected ? bad : { debugger: { xposed_detected: false } },
      }),
    )
  }
  const createAlarm = (own = createMetrics('console')) =>
    createPrevalenceSpikes({
      leases: { renewals: rig.postgres, work: rig.postgres },
      clickhouse,
      metrics: own,
      wallMs: () => wallMs,
      log: log as never,
    })
  let alarm: PrevalenceSpikes
  type Listed = { data: Record<string, unknown>[] }
  const listed = async (tenantId = 'acme') =>
    (await get<Listed>(`/tenants/${tenantId}/prevalence-spikes`)).data

  beforeAll(async () => {
    alarm = createAlarm(metrics)
    const { insertTelemetry } = createTelemetryStore(clickhouse)
    const events = [6, 5, 4, 3, 2, 1, 0].flatMap((day) => [
      ...oneDay({
        tenantId: 'acme',
        version: '3.2.0',
        day,
        fleet: 60,
        detected: day === 0 ? 24 : 1,
      }),
      ...oneDay({ tenantId: 'acme', version: '3.1.0', day, fleet: 90, detected: 1 }),
      // The same rise on every version: an attack, no release.
      ...oneDay({
        tenantId: 'twin',
        version: '3.2.0',
        day,
        fleet: 60,
        detected: day === 0 ? 24 : 1,
      }),
      ...oneDay({
        tenantId: 'twin',
        version: '3.1.0',
        day,
        fleet: 90,
        detected: day === 0 ? 40 : 1,
      }),
    ])
    await insertTelemetry(events)
    const hit = events.filter(
      (one) => one.tenant_id === 'acme' && one.received_at > nowMs - 20 * hourMs,
    )
    await insertAlertRows(
      clickhouse,
      1,
      ['3.2.0-0', '3.2.0-1', '3.1.0-0', '3.2.0-2'].map((deviceId, n) => ({
        tenant_id: 'acme',
        alert_id: `alr_${n}`,
        seq: n + 1,
        device_id: deviceId,
        created_at: toInstant(nowMs - hourMs + n),
        action: 'REVIEW',
        disposition: 'OPEN',
        event_id: hit.find((one) => one.body.device_id === deviceId)!.event_id,
        reason_codes: ['HOOKING_DETECTED'],
        reason_weights: [60],
        // The last is such a device's alert for another reason.
        reason_evidence: [JSON.stringify({ signals: [n === 3 ? 'root.su_binary' : signal] })],
      })),
    )
  })

  test('is reported once, with the affected devices and alerts', async () => {
    expect(await alarm.runRound()).toBe('checked')
    expect(await alarm.runRound()).toBe('not_due')
    expect(await listed()).toMatchObject([
      {
        signal,
        platform: 'android',
        sdk_version: '3.2.0',
        ended_at: null,
        share: 0.4,
        devices: 24,
        alerts: 2,
        alert_ids: ['alr_1', 'alr_0'],
        device_ids: Array.from({ length: 24 }, (_, n) => `3.2.0-${n}`).sort(),
      },
    ])
    expect(logged).toMatchObject([
      { tenantId: 'acme', sdkVersion: '3.2.0', signal, devices: 24, alerts: 2 },
    ])
    // What each page reads again and again takes no query of the events.
    const before = affectedReads
    const open = '/tenants/acme/prevalence-spikes?open=true'
    expect((await get<Listed>(`${open}&affected=false`)).data).toMatchObject([
      { signal, ended_at: null, devices: 24, alerts: 2, alert_ids: [], device_ids: [] },
    ])
    expect(affectedReads).toBe(before)
    expect((await get<Listed>(open)).data).toMatchObject([{ alert_ids: ['alr_1', 'alr_0'] }])
    expect(affectedReads).toBe(before + 1)
    wallMs += hourMs + 1_000
    expect(await alarm.runRound()).toBe('checked')
    // As after a history was written.
    await requestPrevalenceCheck(clickhouse)
    expect(await alarm.runRound()).toBe('checked')
    expect(logged).toHaveLength(1)
    expect(await listed()).toHaveLength(1)
    const [row] = await read<Record<string, unknown>>('select * from analytics.prevalence_spikes')
    expect(row).toMatchObject({ tenant_id: 'acme', signal, devices: 24, alerts: 2 })
  })

  test('is not reported when every version rises, nor for another tenant', async () => {
    expect(await listed('twin')).toEqual([])
    expect(await listed('quiet')).toEqual([])
  })

  test('is printed as text, and counted', async () => {
    const text = await di('signals', 'spikes', 'acme')
    expect(text).toMatch(
      /debugger\.xposed_detected +3\.2\.0 +android +40\.0 % +1\.7 % +1\.1 % +24 +2/,
    )
    expect(await di('signals', 'spikes', 'quiet')).toMatch(/^No prevalence spikes\. Compared /)
    const exposed = await metrics.registry.metrics()
    expect(exposed).toMatch(/^di_prevalence_spikes_total\{?.*1$/m)
  })

  test('ends when the next release is normal, and stays on record', async () => {
    const { insertTelemetry } = createTelemetryStore(clickhouse)
    await insertTelemetry(
      oneDay({ tenantId: 'acme', version: '3.2.0', day: -1, fleet: 60, detected: 1 }),
    )
    await insertTelemetry(
      oneDay({ tenantId: 'acme', version: '3.1.0', day: -1, fleet: 90, detected: 1 }),
    )
    wallMs = nowMs + dayMs
    expect(await alarm.runRound()).toBe('checked')
    expect(await listed()).toMatchObject([{ signal, ended_at: new Date(wallMs).toISOString() }])
    expect((await get<Listed>('/tenants/acme/prevalence-spikes?open=true')).data).toEqual([])
  })

  test('is checked by one console at a time', async () => {
    wallMs += 2 * hourMs
    const outcomes = await Promise.all([1, 2, 3].map(() => createAlarm().runRound()))
    expect(outcomes.filter((one) => one === 'checked')).toHaveLength(1)
  })
})

describe('a file of labels', () => {
  const folder = mkdtempSync(join(tmpdir(), 'labels-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const write = (...lines: string[]) => {
    const file = join(folder, 'labels.csv')
    writeFileSync(file, lines.join('\n'))
    return file
  }
  const countLabels = async () => {
    const { data } = await get<{ data: unknown[] }>('/tenants/acme/labels?limit=500')
    return data.length
  }

  test('with a fault is not imported, and the dry run and the import name the line', async () => {
    const file = write('label,user_id,amount,currency', 'fraud,u1,,', 'fraud,u2,1.999,EUR')
    const fault = 'line 3: amount has 3 digits behind the point; EUR has 2'
    await expect(di('labels', 'import', 'acme', file)).rejects.toThrow(fault)
    await expect(di('labels', 'import', 'acme', file, '--dry-run')).rejects.toThrow(
      'Nothing was added: 1 faults.',
    )
    expect(await countLabels()).toBe(0)
  })

  test('is imported in calls of 500, and listed with who and when', async () => {
    const rows = Array.from({ length: 1_201 }, (_, n) => `chargeback,u${n},12.${10 + (n % 90)},EUR`)
    const file = write('label,user_id,amount,currency', ...rows)
    const checked = JSON.parse(await di('labels', 'import', 'acme', file, '--dry-run', '--json'))
    expect(checked).toEqual({ valid: 1_201, faults: [] })
    expect(await countLabels()).toBe(0)
    const done = JSON.parse(await di('labels', 'import', 'acme', file, '--json'))
    expect(done).toEqual({ tenant_id: 'acme', added: 1_201 })
    const { rows: calls } = await rig.postgres.query<{ n: number }>(
      `select (after->>'labels')::int as n from audit_log
       where action = 'labels.added' and tenant_id = 'acme' order by audit_id`,
    )
    expect(calls.map(({ n }) => n)).toEqual([500, 500, 201])
    expect(await di('labels', 'list', 'acme', '--user', 'u1200')).toMatch(
      /chargeback +user u1200 .*12\.40 EUR +(-|) *admin/,
    )
  })
})

testHourlyJob(() => ({ clickhouse, postgres: rig.postgres }))
