// Shadow policies on real servers with real scorers: they decide exactly as active ones would, each
// event by one document and in one row, and never alert.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { toReconciliationHour } from '#shared/core/reconciliation/reconciliation.ts'
import { insertPolicyDocument } from '#shared/io/policies/policy-store.ts'
import { removeRows } from '#shared/io/retention/retention-rows-store.ts'
import { setShadowPolicy } from '../../../services/console/policies/manage-shadow.ts'
import { seed } from '../../support/process/seed.ts'
import { until } from '../../support/process/until.ts'
import { type EventFacts, signalsOf } from '../../support/telemetry/accepted-events.ts'
import {
  createScorerRig,
  type ScorerProcess,
  type ScorerRig,
} from '../../support/telemetry/scorer-rig.ts'

process.stdout.write(`shadow decisions seed ${seed}\n`)

const lean: Policy = { ...presets.permissive, name: 'lean', velocity: [], signalsMissing: null }
const harsh: Policy = { ...defaultPolicy, name: 'harsh', thresholds: { review: 1, block: 2 } }

/** Tenants that get the same stream, with their active policy and their shadow. */
const tenants: Record<string, { active: Policy; shadow: Policy | null }> = {
  plain: { active: defaultPolicy, shadow: null },
  same: { active: defaultPolicy, shadow: defaultPolicy },
  'default-lean': { active: defaultPolicy, shadow: lean },
  'lean-default': { active: lean, shadow: defaultPolicy },
  harsh: { active: defaultPolicy, shadow: harsh },
}
const tenantIds = Object.keys(tenants)
/** The number of events of each tenant. */
const eventCount = 400
const watched = ['harsh', 'same']

let rig: ScorerRig
let scorer: ScorerProcess
let firstMs: number

beforeAll(async () => {
  rig = await createScorerRig()
  for (const policy of [lean, harsh, defaultPolicy]) {
    const text = JSON.stringify(policy)
    await insertPolicyDocument(rig.postgres, { hash: toPolicyHash(policy), text })
  }
  scorer = await rig.startScorer()
  firstMs = 0
  for (const [tenantId, { shadow }] of Object.entries(tenants)) {
    await rig.addTenant(tenantId)
    if (shadow !== null) firstMs = Math.max(firstMs, (await setShadow(tenantId, shadow)) + 1)
  }
  await rig.publish(...makeStream())
  await rig.drained()
})
afterAll(() => rig?.close())

/** @returns the time from which it decides, in ms */
async function setShadow(tenantId: string, document: Policy | null): Promise<number> {
  const answer = await setShadowPolicy(
    { leases: { renewals: rig.postgres, work: rig.postgres } },
    { tenantId, document, actor: 'test' },
  )
  return Date.parse(answer!.effective_at)
}

/** The device of an event: a few that exceed every threshold, and many that exceed none. */
const anyPlace = fc.oneof(
  fc.record({
    deviceId: fc.integer({ min: 1, max: 7 }).map((n) => `d-${n}`),
    sessionId: fc.integer({ min: 1, max: 90 }).map((n) => `s-${n}`),
    userId: fc.integer({ min: 1, max: 14 }).map((n) => `u-${n}`),
  }),
  fc.integer({ min: 1, max: 90 }).map((n) => {
    return { deviceId: `quiet-${n}`, sessionId: `quiet-${n}`, userId: `quiet-${n}` }
  }),
)

/** Events in the same order for each tenant, with retries of the same bytes. */
function makeStream(): EventFacts[][] {
  const facts = fc.sample(
    fc.record({
      place: anyPlace,
      signals: fc.constantFrom(
        signalsOf.ALLOW,
        signalsOf.ALLOW,
        signalsOf.REVIEW,
        signalsOf.BLOCK,
        { emulator: { app_cloned: true } },
        { root: { su_binary: false, dangerous_props: true } },
        { root: { su_binary: true } },
      ),
      platform: fc.constantFrom('android', 'android', 'android', 'ios'),
      client: fc.constantFrom(0, 40, 90),
    }),
    { seed, numRuns: eventCount },
  )
  // Chance alone may produce no device with a flipping signal.
  const flapping = facts.slice(0, 12).map((fact, n) => ({
    ...fact,
    place: { deviceId: 'd-1', sessionId: 's-1', userId: 'u-1' },
    signals: { root: { su_binary: n % 2 === 1 } },
  }))
  return [...flapping, ...facts.slice(12)].map(({ place, signals, platform, client }, n) =>
    tenantIds.flatMap((tenantId) => {
      const event: EventFacts = {
        tenantId,
        ...place,
        signals,
        policy: tenants[tenantId]!.active,
        nonce: n,
        receivedAtMs: firstMs + n * 40,
        more: {
          sdk_meta: { sdk_version: '4.2.0', platform, batch_type: 'launch' },
          scorer: { rasp_score: client, rasp_action: 'ALLOW', rasp_flags: [] },
        },
      }
      // The same bytes again: decided when they first came.
      return n % 25 === 0 ? [event, event] : [event]
    }),
  )
}

type Verdict = { rasp_score: number; risk_score: number; action: string; flags: string[] }
type DecisionRow = {
  event_id: string
  device_id: string
  session_id: string
  stream_offset: number
  shadow_version: number
  shadow_policy_hash: string
  shadow: Verdict
  active: Verdict
}

async function read<Row>(query: string): Promise<Row[]> {
  const result = await rig.clickhouse.query({ query, format: 'JSONEachRow' })
  return result.json<Row>()
}

/** The rows of a tenant in the order of the stream. */
async function decisionsOf(tenantId: string): Promise<DecisionRow[]> {
  const rows = await read<Record<string, unknown>>(
    `select * from shadow_decisions final where tenant_id = '${tenantId}' order by stream_offset`,
  )
  const verdict = (row: Record<string, unknown>, who: string) => ({
    rasp_score: row[`${who}_rasp_score`],
    risk_score: row[`${who}_risk_score`],
    action: row[`${who}_action`],
    flags: row[`${who}_flags`],
  })
  return rows.map((row) => ({
    ...(row as DecisionRow),
    shadow: verdict(row, 'shadow') as Verdict,
    active: verdict(row, 'active') as Verdict,
  }))
}

type AlertRow = Record<string, unknown> & {
  tenant_id: string
  alert_id: string
  event_id: string
  device_id: string
  session_id: string
  action: string
  risk_score: number
  reasons: { code: string }[]
}

async function alertsOf(tenantId: string): Promise<AlertRow[]> {
  const { rows } = await rig.postgres.query<AlertRow>(
    `select device_id, session_id, action, event_id, risk_score, rasp_score, reasons
     from alerts where tenant_id = $1 order by device_id, session_id, action`,
    [tenantId],
  )
  return rows
}

/** All rows in Postgres that alerting changes. */
async function readAlerting(tenantId: string): Promise<unknown> {
  const select = async (sql: string) => (await rig.postgres.query(sql, [tenantId])).rows
  return {
    alerts: (await alertsOf(tenantId)).map(({ event_id: _, ...rest }) => rest),
    deliveries: await select('select count(*) as n from deliveries where tenant_id = $1'),
    last: await select('select last_seq from alert_sequences where tenant_id = $1'),
    counts: await select(
      `select disposition, decision, sum(alert_count) as n from alert_counts_by_day where tenant_id = $1
       group by 1, 2 order by 1, 2`,
    ),
    due: await read(
      `select count() as n from reconciliation_expected_alerts final where tenant_id = '${tenantId}'`,
    ),
  }
}

describe('a shadow policy', () => {
  it('that equals the active one gives exactly the active decisions', async () => {
    const rows = await decisionsOf('same')
    expect(rows).toHaveLength(eventCount)
    for (const row of rows) expect(row.shadow).toEqual(row.active)
    const codes = new Set(rows.flatMap((row) => row.shadow.flags))
    expect([...codes]).toEqual(
      expect.arrayContaining([
        'HIGH_VELOCITY',
        'MANY_USERS_PER_DEVICE',
        'MANY_DEVICES_PER_USER',
        'SESSION_REUSED',
        'PLATFORM_CHANGED',
        'SIGNAL_FLAPPING',
        'SCORE_MISMATCH',
      ]),
    )
  })

  it('shows the active decisions that raised alerts', async () => {
    const firstRows = new Map<string, DecisionRow>()
    for (const row of await decisionsOf('same')) {
      const key = `${row.device_id} ${row.session_id} ${row.active.action}`
      if (row.active.action !== 'ALLOW' && !firstRows.has(key)) firstRows.set(key, row)
    }
    const alerts = await alertsOf('same')
    expect(alerts.length).toBeGreaterThan(50)
    expect(firstRows.size).toBe(alerts.length)
    for (const alert of alerts) {
      const row = firstRows.get(`${alert.device_id} ${alert.session_id} ${alert.action}`)
      expect(row?.event_id).toBe(alert.event_id)
      expect(row?.active.risk_score).toBe(alert.risk_score)
      expect(row?.active.flags).toEqual(alert.reasons.map(({ code }) => code))
    }
  })

  it('decides as it would if it were active, with more or fewer risk features', async () => {
    const [defaultActive, leanActive] = await Promise.all([
      decisionsOf('default-lean'),
      decisionsOf('lean-default'),
    ])
    expect(leanActive).toHaveLength(eventCount)
    expect(leanActive.map((row) => row.shadow)).toEqual(defaultActive.map((row) => row.active))
    expect(defaultActive.map((row) => row.shadow)).toEqual(leanActive.map((row) => row.active))
    // The two policies differ, so the comparison proves something.
    const differing = leanActive.filter((row) => row.shadow.action !== row.active.action)
    expect(differing.length).toBeGreaterThan(20)
  })

  it('that blocks nearly everything changes no alert, delivery, number or total', async () => {
    const rows = await decisionsOf('harsh')
    const blocked = (who: 'shadow' | 'active') =>
      rows.filter((row) => row[who].action === 'BLOCK').length
    expect(blocked('shadow')).toBeGreaterThan(blocked('active') + 50)
    const plain = await readAlerting('plain')
    expect(await readAlerting('harsh')).toEqual(plain)
    expect(await readAlerting('same')).toEqual(plain)
    expect(await decisionsOf('plain')).toEqual([])
  })

  it('writes each row once when two concurrent scorers get all messages again', async () => {
    const before = await Promise.all(watched.map(decisionsOf))
    await rig.startScorer()
    await rig.redeliverAll()
    await rig.drained()
    expect(await Promise.all(watched.map(decisionsOf))).toEqual(before)
    const [counts] = await read<{ rows: number; events: number }>(
      `select count() as rows, uniqExact(tenant_id, event_id) as events
       from analytics.shadow_decisions`,
    )
    expect(counts).toEqual({ rows: 4 * eventCount, events: 4 * eventCount })
  })

  it('loses no row when a scorer is killed meanwhile', async () => {
    const before = await Promise.all(watched.map(decisionsOf))
    await rig.endScorers()
    await rig.clickhouse.command({ query: 'truncate table shadow_decisions' })
    await rig.redeliverAll()
    const killed = await rig.startScorer()
    const rows = () => read('select 1 from shadow_decisions limit 100')
    await until('some rows are there', async () => (await rows()).length === 100)
    await killed.end('SIGKILL')
    scorer = await rig.startScorer()
    await rig.drained()
    expect(await Promise.all(watched.map(decisionsOf))).toEqual(before)
  })

  it('that changes during the stream is named by each row, after any redelivery', async () => {
    await rig.addTenant('changing')
    const times: number[] = []
    for (const document of [harsh, lean, null, lean]) {
      times.push(await setShadow('changing', document))
    }
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b))
    const [harshMs, leanMs, offMs, againMs] = times as [number, number, number, number]
    const moments = [
      [harshMs - 1, null],
      [harshMs, 1],
      [leanMs - 1, 1],
      [leanMs, 2],
      [offMs - 1, 2],
      [offMs, null],
      [againMs - 1, null],
      [againMs, 4],
    ] as const
    await rig.publish(
      moments.map(([receivedAtMs], nonce) => ({ tenantId: 'changing', receivedAtMs, nonce })),
    )
    await rig.drained()
    const decided = async () =>
      (await decisionsOf('changing')).map((row) => [row.shadow_version, row.shadow_policy_hash])
    const expected = moments.flatMap(([, version]) =>
      version === null ? [] : [[version, toPolicyHash(version === 1 ? harsh : lean)]],
    )
    expect(await decided()).toEqual(expected)
    await rig.redeliverAll()
    await rig.drained()
    expect(await decided()).toEqual(expected)
  })
})

describe('retention', () => {
  it('removes rows beyond the limit of the tenant', async () => {
    const cutoffMs = firstMs + 100 * 40
    const others = await decisionsOf('default-lean')
    const removed = await removeRows(rig.clickhouse, {
      table: 'shadow_decisions',
      tenantIds: ['harsh'],
      cutoffMs,
      signal: new AbortController().signal,
      nowMs: () => performance.now(),
    })
    // Unmerged duplicates are removed too.
    expect(removed).toBeGreaterThanOrEqual(100)
    expect(await decisionsOf('harsh')).toHaveLength(eventCount - 100)
    expect(await decisionsOf('default-lean')).toEqual(others)
  })
})

describe('a broken shadow path', () => {
  const alertsFor = async (tenantId: string, nonce: string) => {
    const deviceId = `broken-${nonce}`
    const receivedAtMs = toReconciliationHour(Date.now()) + 7_200_000
    await rig.publish([{ tenantId, deviceId, nonce, receivedAtMs, signals: signalsOf.BLOCK }])
    await rig.drained()
    return (await alertsOf(tenantId)).filter((alert) => alert.device_id === deviceId)
  }
  const skipped = async (reason: string) => {
    const label = `reason="${reason}"`
    return scorer.readMetric('di_shadow_skipped_total', label)
  }

  beforeAll(async () => {
    await rig.endScorers()
    scorer = await rig.startScorer()
  })

  it('a document that cannot be compiled leaves decisions unchanged and is counted', async () => {
    await rig.addTenant('broken')
    await setShadow('broken', harsh)
    const document = '{"schema":1,"name":"not a policy"}'
    await insertPolicyDocument(rig.postgres, { hash: 'broken', text: document })
    await rig.postgres.query(
      `update shadow_policies set policy_hash = 'broken' where tenant_id = 'broken'`,
    )
    await rig.postgres.query('update shadow_policy_changes set changes = changes + 1')
    expect(await alertsFor('broken', '1')).toMatchObject([{ action: 'BLOCK' }])
    expect(await skipped('policy')).toBe(1)
    expect(await decisionsOf('broken')).toEqual([])
    // Others continue.
    expect(await alertsFor('lean-default', '1')).toHaveLength(1)
    expect((await decisionsOf('lean-default')).at(-1)?.device_id).toBe('broken-1')
  })

  it('a missing table leaves decisions unchanged and is counted', async () => {
    await rig.clickhouse.command({ query: 'rename table shadow_decisions to hidden' })
    try {
      expect(await alertsFor('lean-default', '2')).toMatchObject([{ action: 'BLOCK' }])
      await until('it is counted', async () => (await skipped('store')) === 1)
      // It pauses: no decision waits for a failing store.
      expect(await alertsFor('lean-default', '3')).toHaveLength(1)
      expect(await skipped('resting')).toBe(1)
    } finally {
      await rig.clickhouse.command({ query: 'rename table hidden to shadow_decisions' })
    }
  })
})
