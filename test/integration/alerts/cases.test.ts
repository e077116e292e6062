// Cases on a real PostgreSQL: what they count is what their alerts are, whatever raises, judges,
// moves and removes alerts at the same time; nobody gets a case twice.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import {
  caseHistoryMax,
  notesPerCaseMax,
  savedViewsMax,
  savedViewsPerOwnerMax,
} from '#shared/core/base/limits/alerts.ts'
import { proposalsEndedMax } from '#shared/core/base/limits/policies.ts'
import { createSeededRandom } from '#shared/core/base/seeded-random.ts'
import { judgementBody, nextCaseBody } from '#shared/core/cases/case-schemas.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { stepBulkJob } from '#shared/io/alerts/bulk/bulk-job-steps.ts'
import { startBulkJob } from '#shared/io/alerts/bulk/bulk-job-store.ts'
import { startBulkUndo } from '#shared/io/alerts/bulk/undo-bulk-job.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { setDisposition } from '#shared/io/alerts/set-disposition.ts'
import { insertProposal } from '#shared/io/approvals/proposal-store.ts'
import { enterCase, leaveCase } from '#shared/io/cases/case-presence.ts'
import { setCaseRules, showCaseRules } from '#shared/io/cases/case-rules-store.ts'
import { addCaseNote, assignCase, snoozeCase } from '#shared/io/cases/change-case.ts'
import { judgeCase } from '#shared/io/cases/judge-case.ts'
import { showCase } from '#shared/io/cases/list-cases.ts'
import { findCaseless, mergeCases, placeAlerts, splitCase } from '#shared/io/cases/move-alerts.ts'
import { takeNextCase } from '#shared/io/cases/next-case.ts'
import { eraseAlerts } from '#shared/io/erasure/erasure-alerts-store.ts'
import { correctPhone, undoCorrection } from '#shared/io/identity/correct-phone.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { saveView } from '#shared/io/operators/saved-view-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { removeAlerts } from '#shared/io/retention/retention-store.ts'
import { startCases } from '../../../services/console/jobs/cases.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

let server: TestPostgres
let postgres: Postgres

beforeAll(async () => {
  server = await startPostgres()
  const url = await server.createMigratedDatabase()
  // Changes wait for one another here, on a machine that may be busy.
  const patient = { connectTimeoutMs: 60_000, lockTimeoutMs: 60_000, statementTimeoutMs: 60_000 }
  const log = createLog('test', 'silent')
  postgres = createPostgres(url, { role: 'test', log, connectionsMax: 8, ...patient })
})
afterAll(async () => {
  await postgres?.close()
  await server?.stop()
})

const actor = 'ada@example.com'
const scope = 'all' as const

/** Alerts of a device, each of a session of its own. @returns their ids */
async function raise(
  tenantId: string,
  sessions: readonly string[],
  more: Partial<Parameters<typeof makeAlertCandidate>[0]> = {},
): Promise<string[]> {
  const alerts = sessions.map((sessionId) => makeAlertCandidate({ tenantId, sessionId, ...more }))
  await raiseAlerts(postgres, alerts)
  return alerts.map(({ alertId }) => alertId)
}

async function findCaseOf(alertId: string): Promise<string> {
  const { rows } = await postgres.query<{ case_id: string }>(
    'select case_id from alerts where alert_id = $1',
    [alertId],
  )
  return rows[0]!.case_id
}

const show = async (caseId: string) => (await showCase(postgres, { caseId, scope })).case

const judge = (caseId: string, judgement: object) =>
  judgeCase(postgres, {
    caseId,
    scope,
    actor,
    judgement: judgementBody.parse(judgement),
    nowMs: Date.now(),
  })

/** What each case should have, computed from the alerts, beside what it has: those that differ. */
const differencesSql = `
with present as (
  select case_id, count(*) as alerts, count(*) filter (where disposition = 'OPEN') as open_alerts,
    max(a.risk_score) as risk_score, min(a.action) as action, min(created_at) as first_at,
    max(created_at) as latest_at,
    min(created_at + case a.action when 'BLOCK' then block_due_hours else review_due_hours end
      * interval '1 hour') filter (where disposition = 'OPEN') as due_at
  from alerts as a left join cases using (case_id) group by case_id
), flagged as (
  select case_id, jsonb_object_agg(code, n) as flags from (
    select case_id, code, count(distinct alert_id) as n
    from alerts cross join lateral jsonb_array_elements_text(flags) as found (code)
    group by case_id, code) as counted group by case_id
)
select c.*, p.*, f.flags as wanted_flags from cases as c
full join present as p using (case_id) left join flagged as f using (case_id)
where c.case_id is null
  or (c.merged_into is null and (c.alert_count, c.open_count, c.risk_score, c.action,
    c.first_alert_at, c.latest_alert_at, c.due_at, c.flags) is distinct from (p.alerts,
    p.open_alerts, p.risk_score, p.action, p.first_at, p.latest_at,
    coalesce(p.due_at, 'infinity'), f.flags))
  or (c.merged_into is not null and (c.alert_count <> 0 or p.case_id is not null))
  or (c.state = 'OPEN') <> (coalesce(p.open_alerts, 0) > 0)`

describe('what a case counts', () => {
  test('is what its alerts are, under random concurrent changes of every kind', async () => {
    const seed = Date.now() % 1_000_000
    const random = createSeededRandom(seed)
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!
    await insertBareTenants(postgres, ['random'])
    const tenantId = 'random'
    const ids = async (text: string) =>
      (await postgres.query<{ id: string }>(text)).rows.map(({ id }) => id)
    let sessions = 0
    const changes: Record<string, () => Promise<unknown>> = {
      raise: () =>
        raise(tenantId, [`s${sessions++}`, `s${sessions++}`, `s${sessions++}`], {
          deviceId: `d${Math.floor(random() * 6)}`,
          ...(random() < 0.5 ? {} : { userId: `u${Math.floor(random() * 3)}` }),
          action: pick(['REVIEW', 'BLOCK']),
          riskScore: 40 + Math.floor(random() * 60),
          reasons: pick([['ROOTED'], ['ROOTED', 'EMULATOR'], ['VPN_SUSPECTED']]).map((code) => ({
            code: code as 'ROOTED',
            weight: 20,
            evidence: { signals: [] },
          })),
        }),
      dispose: async () => {
        const alertId = pick(await ids('select alert_id as id from alerts'))
        const change = { alertId, disposition: pick(dispositions), note: null, actor }
        await setDisposition(postgres, change)
      },
      bulk: async () => {
        const alertIds = (await ids('select alert_id as id from alerts')).slice(0, 20)
        const by = { actor: 'admin', runningMax: 99 }
        const jobId = `blk_${sessions++}_${Math.floor(random() * 1e9)}`
        const job = await startBulkJob(postgres, {
          ...by,
          jobId,
          tenantId,
          target: { alertIds },
          note: null,
          change: { sets: 'disposition', disposition: pick(dispositions) },
          expectedCount: alertIds.length,
        })
        if (typeof job !== 'object') return
        await stepBulkJob(postgres, jobId)
        const undo = { ...by, jobId: `${jobId}u`, undoOf: jobId, scope }
        if (typeof (await startBulkUndo(postgres, undo)) === 'object') {
          await stepBulkJob(postgres, undo.jobId)
        }
      },
      judge: async () =>
        judge(pick(await ids('select case_id as id from cases')), {
          disposition: pick(['CONFIRMED', 'FALSE_POSITIVE', 'REVIEWED']),
        }),
      merge: async () => {
        const all = await ids('select case_id as id from cases where merged_into is null')
        await mergeCases(postgres, { caseId: pick(all), into: pick(all), scope, actor })
      },
      split: async () => {
        const alertId = pick(await ids('select alert_id as id from alerts'))
        const caseId = await findCaseOf(alertId)
        await splitCase(postgres, { caseId, alertIds: [alertId], scope, actor })
      },
      regroup: async () => {
        const rules = await showCaseRules(postgres, tenantId)
        const groupBy = pick(['phone', 'device', 'user'] as const)
        await setCaseRules(postgres, { tenantId, actor, rules: { ...rules, group_by: groupBy } })
      },
      retain: () => removeAlerts(postgres, { tenantId, cutoffMs: Date.now() - 500 }, 3),
      erase: () => {
        const subject = { tenantId, kind: 'device', id: `d${Math.floor(random() * 6)}` } as const
        return eraseAlerts(postgres, { subject, eventIds: [], sessionIds: [] })
      },
      next: () => {
        const wanted = nextCaseBody.parse({})
        return takeNextCase(postgres, { tenantId, operator: `o${random()}`, ...wanted })
      },
    }
    const often = [
      'raise',
      'raise',
      'raise',
      'dispose',
      'dispose',
      'judge',
      'split',
      'merge',
      'next',
    ]
    const refused = (error: unknown) => {
      // What a change names may be gone, merged or judged by then.
      if (!(error instanceof Problem) || !/^(conflict|case_not_found)$/.test(error.code))
        throw error
    }
    for (let round = 0; round < 12; round++) {
      const names = Array.from({ length: 12 }, () =>
        random() < 0.8 ? pick(often) : pick(Object.keys(changes)),
      )
      await changes.raise!()
      await Promise.all(names.map((name) => changes[name]!().catch(refused)))
      const { rows } = await postgres.query(differencesSql)
      expect(rows, `seed ${seed}, round ${round}: ${names.join(' ')}`).toEqual([])
    }
    expect(await ids('select case_id as id from cases')).not.toEqual([])
  })
})

describe('the rule', () => {
  test('joins, opens again within the days of the rule, and begins anew later', async () => {
    const tenantId = 'ruled'
    await insertBareTenants(postgres, [tenantId])
    const day = 86_400_000
    const at = async (sessionId: string, ms: number) => {
      const one = makeAlertCandidate({ tenantId, sessionId })
      await raiseAlerts(postgres, [one], () => ms)
      return { alertId: one.alertId, caseId: await findCaseOf(one.alertId) }
    }
    const confirm = (alertId: string, atMs: number) =>
      setDisposition(postgres, { alertId, disposition: 'CONFIRMED', note: null, actor, atMs })
    const startMs = Date.UTC(2026, 0, 1)
    const first = await at('s1', startMs)
    const second = await at('s2', startMs + 30 * day)
    expect(second.caseId).toBe(first.caseId)
    await confirm(first.alertId, startMs + 31 * day)
    expect(await show(first.caseId)).toMatchObject({ state: 'OPEN', open_alerts: 1, alerts: 2 })
    await confirm(second.alertId, startMs + 40 * day)
    const closed = await show(first.caseId)
    expect(closed).toMatchObject({ state: 'CLOSED', due_at: null, judged_by: actor })
    const third = await at('s3', startMs + 47 * day - 1)
    expect(third.caseId).toBe(first.caseId)
    const { case: reopened, history } = await showCase(postgres, { caseId: first.caseId, scope })
    expect(reopened).toMatchObject({ state: 'OPEN', open_alerts: 1, alerts: 3, breached: true })
    expect(reopened.due_at).toBe(new Date(startMs + 48 * day - 1).toISOString())
    expect(history.map(({ kind }) => kind)).toEqual(['reopened'])
    await confirm(third.alertId, startMs + 50 * day)
    expect((await at('s4', startMs + 57 * day)).caseId).not.toBe(first.caseId)
  })

  test('sets due times of open cases at once', async () => {
    const tenantId = 'due'
    await insertBareTenants(postgres, [tenantId])
    const [alertId] = await raise(tenantId, ['s1'], { action: 'BLOCK' })
    const caseId = await findCaseOf(alertId!)
    const rules = { group_by: 'device', reopen_days: 0, block_due_hours: 1, review_due_hours: 9 }
    await setCaseRules(postgres, { tenantId, actor, rules: { ...rules, group_by: 'device' } })
    const { first_alert_at: at, due_at: due } = await show(caseId)
    expect(Date.parse(due!) - Date.parse(at)).toBe(3_600_000)
  })

  test('puts alerts of a release without cases into one case of each subject', async () => {
    const tenantId = 'older'
    await insertBareTenants(postgres, [tenantId])
    const open = await raise(tenantId, ['s1', 's2'])
    const [judged] = await raise(tenantId, ['s3'], { deviceId: 'device-2' })
    const reviewed = { alertId: judged!, disposition: 'REVIEWED', note: null, actor } as const
    await setDisposition(postgres, reviewed)
    await postgres.query('update alerts set case_id = null where tenant_id = $1', [tenantId])
    const none = 'select from cases where tenant_id = $1'
    expect((await postgres.query(none, [tenantId])).rowCount).toBe(0)
    expect(await findCaseless(postgres)).toBe(tenantId)
    expect(await placeAlerts(postgres, tenantId)).toBe(3)
    expect(await placeAlerts(postgres, tenantId)).toBe(0)
    expect(await findCaseless(postgres)).toBeNull()
    expect(await findCaseOf(open[0]!)).toBe(await findCaseOf(open[1]!))
    expect(await show(await findCaseOf(open[0]!))).toMatchObject({ state: 'OPEN', alerts: 2 })
    expect(await show(await findCaseOf(judged!))).toMatchObject({ state: 'CLOSED', alerts: 1 })
    expect((await postgres.query(differencesSql)).rows).toEqual([])
  })
})

describe('next', () => {
  const take = (tenantId: string, operator: string, body: object = {}) =>
    takeNextCase(postgres, { tenantId, operator, ...nextCaseBody.parse(body) })

  test('hands each case out once to four analysts at the same time', async () => {
    const tenantId = 'queue'
    await insertBareTenants(postgres, [tenantId])
    const alerts = Array.from({ length: 80 }, (_, n) =>
      makeAlertCandidate({ tenantId, sessionId: `s${n}`, deviceId: `d${n}` }),
    )
    await raiseAlerts(postgres, alerts)
    const taken: string[] = []
    await Promise.all(
      ['ada', 'bob', 'eve', 'joe'].map(async (operator) => {
        for (;;) {
          const one = await take(tenantId, operator)
          if (one === null) return
          taken.push(one.case_id)
        }
      }),
    )
    expect(taken).toHaveLength(80)
    expect(new Set(taken).size).toBe(80)
  })

  test('passes over what is snoozed, assigned to others or open on a page of theirs', async () => {
    const tenantId = 'passed'
    await insertBareTenants(postgres, [tenantId])
    const cases: string[] = []
    for (const n of [1, 2, 3]) {
      const [alertId] = await raise(tenantId, [`s${n}`], { deviceId: `d${n}`, riskScore: 90 - n })
      cases.push(await findCaseOf(alertId!))
    }
    const [first, second, third] = cases as [string, string, string]
    const byRisk = { sort: 'risk' }
    const nowMs = Date.now()
    const snooze = { caseId: first, scope, actor, nowMs, untilMs: nowMs + 60_000 }
    await snoozeCase(postgres, snooze)
    await enterCase(postgres, { caseId: second, operator: 'bob' })
    expect((await take(tenantId, 'ada', byRisk))?.case_id).toBe(third)
    await leaveCase(postgres, { caseId: second, operator: 'bob' })
    const { case_id: got, leased_by: by } = (await take(tenantId, 'ada', byRisk))!
    expect([got, by]).toEqual([second, 'ada'])
    // A snooze that ends, and a lease that is left, bring cases back by themselves.
    expect(await take(tenantId, 'eve', { ...byRisk, leave: second })).toBeNull()
    await postgres.query(`update cases set snoozed_until = now() where case_id = $1`, [first])
    expect((await take(tenantId, 'ada', { ...byRisk, leave: second }))?.case_id).toBe(first)
    expect((await take(tenantId, 'eve', byRisk))?.case_id).toBe(second)
  })
})

describe('a judgement', () => {
  test('changes alerts, labels and lists together or not at all', async () => {
    const tenantId = 'judged'
    await insertBareTenants(postgres, [tenantId])
    const alertIds = await raise(tenantId, ['s1', 's2'])
    const caseId = await findCaseOf(alertIds[0]!)
    const { version } = await show(caseId)
    await raise(tenantId, ['s3'])
    const list = { list: 'deny', reason: 'fraud', expires_at: '2100-01-01' }
    const judgement = { disposition: 'CONFIRMED', list, label: { label: 'fraud' } }
    const refusal = (error: unknown) => error as Problem
    const unseen = await judge(caseId, { ...judgement, expected_version: version }).catch(refusal)
    expect(unseen).toMatchObject({ code: 'case_changed', presentCase: { open_alerts: 3 } })
    const late = { ...judgement, list: { ...list, expires_at: '2001-01-01' } }
    expect(await judge(caseId, late).catch(refusal)).toMatchObject({ code: 'invalid_body' })
    const count = async (table: string) =>
      (await postgres.query(`select from ${table} where tenant_id = $1`, [tenantId])).rowCount
    expect(await show(caseId)).toMatchObject({ state: 'OPEN', open_alerts: 3 })
    expect([await count('labels'), await count('list_entries')]).toEqual([0, 0])
    const present = (await show(caseId)).version
    const done = await judge(caseId, { ...judgement, expected_version: present, note: 'frida' })
    expect(done).toMatchObject({ judged: 3, case: { state: 'CLOSED', judged_by: actor } })
    expect([done.label_ids.length, done.entry_ids.length]).toEqual([1, 1])
    expect([await count('labels'), await count('list_entries')]).toEqual([1, 1])
    expect(await count('alert_dispositions')).toBe(3)
  })

  test('of a case whose devices lost money is shown with it, each loss once', async () => {
    const tenantId = 'money'
    await insertBareTenants(postgres, [tenantId])
    const [alertId] = await raise(tenantId, ['s1', 's2'])
    const caseId = await findCaseOf(alertId!)
    const label = { label: 'chargeback', amount: '20.50', currency: 'EUR', external_id: 'cb-1' }
    await judge(caseId, { disposition: 'CONFIRMED', label })
    await judge(caseId, { disposition: 'CONFIRMED', label: { ...label, amount: '30.00' } })
    await judge(caseId, { disposition: 'CONFIRMED', label: { ...label, external_id: 'cb-2' } })
    expect((await show(caseId)).money).toEqual([{ currency: 'EUR', amount: '50.50' }])
  })
})

describe('alerts that are moved by hand', () => {
  test('go to the case that theirs was merged into, until they are split off again', async () => {
    const tenantId = 'moved'
    await insertBareTenants(postgres, [tenantId])
    const ofDevice = async (deviceId: string, sessionId: string) => {
      const [alertId] = await raise(tenantId, [sessionId], { deviceId })
      return { alertId: alertId!, caseId: await findCaseOf(alertId!) }
    }
    const a = await ofDevice('a', 's1')
    const b = await ofDevice('b', 's2')
    await addCaseNote(postgres, { caseId: a.caseId, note: 'a ring', scope, actor })
    await mergeCases(postgres, { caseId: a.caseId, into: b.caseId, scope, actor })
    const merged = await showCase(postgres, { caseId: b.caseId, scope })
    expect(merged.case).toMatchObject({ alerts: 2, subject: { kind: 'device', id: 'b' } })
    expect(merged.notes.map(({ note }) => note)).toEqual(['a ring'])
    expect(await show(a.caseId)).toMatchObject({ merged_into: b.caseId, alerts: 0 })
    expect((await ofDevice('a', 's3')).caseId).toBe(b.caseId)
    const split = { caseId: b.caseId, alertIds: [a.alertId], scope, actor }
    const { case: own, from } = await splitCase(postgres, split)
    expect(own).toMatchObject({ alerts: 1, subject: { kind: 'device', id: 'a' } })
    expect(from).toMatchObject({ alerts: 2 })
    expect((await ofDevice('a', 's4')).caseId).toBe(own.case_id)
    // What is split off without a subject of its own gets no new alerts.
    const more = await ofDevice('b', 's5')
    await splitCase(postgres, { ...split, alertIds: [more.alertId] })
    expect((await ofDevice('b', 's6')).caseId).toBe(b.caseId)
  })

  test('leave no name of an erased device behind', async () => {
    const tenantId = 'erased'
    await insertBareTenants(postgres, [tenantId])
    const [one] = await raise(tenantId, ['s1'], { deviceId: 'gone' })
    const [two] = await raise(tenantId, ['s2'], { deviceId: 'stays' })
    const into = await findCaseOf(one!)
    await mergeCases(postgres, { caseId: await findCaseOf(two!), into, scope, actor })
    await addCaseNote(postgres, { caseId: into, note: 'of a person', scope, actor })
    const subject = { tenantId, kind: 'device', id: 'gone' } as const
    await eraseAlerts(postgres, { subject, eventIds: [], sessionIds: [] })
    const left = await showCase(postgres, { caseId: into, scope })
    expect(left).toMatchObject({ case: { alerts: 1, subject: { id: 'stays' } }, notes: [] })
  })
})

describe('a correction of a phone', () => {
  const own = (tenantId: string, deviceId: string) => toPhoneId(tenantId, deviceId)
  const correct = (tenantId: string, deviceId: string, to: string | null, decidedOf = deviceId) => {
    const phoneId = to === null ? null : own(tenantId, to)
    const decided = { phoneId: own(tenantId, decidedOf), targetInstalls: 1 }
    return correctPhone(postgres, { tenantId, deviceId, phoneId, reason: 'seen', actor, decided })
  }
  /** An alert of an install, on the phone of another one when the service says so. */
  const alertOf = async (tenantId: string, deviceId: string, session: string, on = deviceId) => {
    const phone = { phoneId: own(tenantId, on), confidence: 1 }
    const [alertId] = await raise(tenantId, [session], { deviceId, phone })
    return { alertId: alertId!, caseId: await findCaseOf(alertId!) }
  }

  test('takes the alerts of the install to the case of its phone, and back when undone', async () => {
    const tenantId = 'corrected'
    await insertBareTenants(postgres, [tenantId])
    const a = await alertOf(tenantId, 'a', 's1')
    const b = await alertOf(tenantId, 'b', 's2', 'a')
    expect(b.caseId).toBe(a.caseId)
    // Split: the alert leaves for a case of its own, which the next one joins.
    const split = await correct(tenantId, 'b', null, 'a')
    const own = await findCaseOf(b.alertId)
    expect(own).not.toBe(a.caseId)
    expect(await show(own)).toMatchObject({ alerts: 1, subject: { id: split.phone_id } })
    expect(await show(a.caseId)).toMatchObject({ alerts: 1, subject: { id: split.from_phone_id } })
    const { history } = await showCase(postgres, { caseId: own, scope })
    expect(history).toMatchObject([{ kind: 'regrouped', details: { from: a.caseId, into: own } }])
    // Decided before the correction, raised after it.
    expect((await alertOf(tenantId, 'b', 's3', 'a')).caseId).toBe(own)
    const noted = { caseId: own, note: 'two people', scope, actor }
    await addCaseNote(postgres, noted)
    // Undone: the whole case goes back, with its notes, and its link leads there.
    const undo = { tenantId, correctionId: split.correction_id, actor }
    await undoCorrection(postgres, undo)
    const joined = await showCase(postgres, { caseId: a.caseId, scope })
    expect(joined).toMatchObject({ case: { alerts: 3 }, notes: [{ note: 'two people' }] })
    expect(await show(own)).toMatchObject({ alerts: 0, merged_into: a.caseId })
    const late = await alertOf(tenantId, 'b', 's4', 'b')
    expect(late.caseId).toBe(a.caseId)
    expect((await postgres.query(differencesSql)).rows).toEqual([])
  })

  test('renames a case that moves as a whole where the other phone has none', async () => {
    const tenantId = 'renamed'
    await insertBareTenants(postgres, [tenantId])
    const { caseId, alertId } = await alertOf(tenantId, 'c', 's1')
    await addCaseNote(postgres, { caseId, note: 'kept', scope, actor })
    await correct(tenantId, 'c', 'd')
    expect(await findCaseOf(alertId)).toBe(caseId)
    const { case: renamed, notes } = await showCase(postgres, { caseId, scope })
    expect(renamed.subject.id).toBe(own(tenantId, 'd'))
    expect(notes).toHaveLength(1)
    expect((await alertOf(tenantId, 'd', 's2')).caseId).toBe(caseId)
    // The phone that was left begins a case again, also when another of its installs is seen.
    expect((await alertOf(tenantId, 'e', 's3', 'c')).caseId).not.toBe(caseId)
  })

  test('leaves closed cases and what was moved by hand, and opens a fresh one again', async () => {
    const tenantId = 'left'
    await insertBareTenants(postgres, [tenantId])
    const closed = await alertOf(tenantId, 'a', 's1')
    await judge(closed.caseId, { disposition: 'CONFIRMED' })
    const open = await alertOf(tenantId, 'b', 's2')
    const other = await alertOf(tenantId, 'c', 's3')
    const byHand = await alertOf(tenantId, 'd', 's4')
    await mergeCases(postgres, { caseId: byHand.caseId, into: other.caseId, scope, actor })
    await correct(tenantId, 'd', 'b')
    expect(await findCaseOf(byHand.alertId)).toBe(other.caseId)
    // The case of the phone it comes to ended a moment ago, so it opens again, as by a new alert.
    await correct(tenantId, 'b', 'a')
    expect(await findCaseOf(open.alertId)).toBe(closed.caseId)
    expect(await show(closed.caseId)).toMatchObject({ state: 'OPEN', alerts: 2, open_alerts: 1 })
    await judge(closed.caseId, { disposition: 'CONFIRMED' })
    await correct(tenantId, 'b', 'c')
    expect(await findCaseOf(open.alertId)).toBe(closed.caseId)
    expect((await postgres.query(differencesSql)).rows).toEqual([])
  })

  test('and raises at the same time leave each open alert with its phone', async () => {
    const tenantId = 'raced'
    await insertBareTenants(postgres, [tenantId])
    await alertOf(tenantId, 'home', 's0')
    const devices = ['r1', 'r2', 'r3']
    let session = 0
    for (let round = 0; round < 4; round++) {
      const to = round % 2 === 0 ? 'home' : null
      const raises = devices.flatMap((deviceId) =>
        [0, 1].map(() => alertOf(tenantId, deviceId, `s${++session}`)),
      )
      // A device without an alert yet has nothing to move; all are on another phone afterwards.
      await Promise.all([...raises, ...devices.map((one) => correct(tenantId, one, to))])
    }
    const { rows } = await postgres.query(
      `select a.alert_id, c.subject_id from alerts as a join cases as c using (case_id)
       where a.tenant_id = $1 and c.subject_id <> $2 and a.device_id = 'home'
         or a.tenant_id = $1 and a.device_id <> 'home' and c.subject_id <> (
           select phone_id from phone_corrections as p
           where p.tenant_id = $1 and p.device_id = a.device_id collate "C"
           order by at desc limit 1)`,
      [tenantId, own(tenantId, 'home')],
    )
    expect(rows).toEqual([])
    const open = await postgres.query<{ n: number }>(
      `select count(*) as n from cases where tenant_id = $1 and closed_at is null
         and merged_into is null group by subject_id`,
      [tenantId],
    )
    expect(open.rows.map(({ n }) => n)).toEqual([1, 1, 1, 1])
    expect((await postgres.query(differencesSql)).rows).toEqual([])
  })
})

describe('what grows by operators', () => {
  const some = async (tenantId: string) => {
    await insertBareTenants(postgres, [tenantId])
    const cases: string[] = []
    for (const deviceId of ['a', 'b']) {
      const [alertId] = await raise(tenantId, [`s-${deviceId}`], { deviceId })
      cases.push(await findCaseOf(alertId!))
    }
    return cases as [string, string]
  }
  const addNotes = (caseId: string, count: number) =>
    postgres.query(
      `insert into case_notes (case_id, author, note)
       select $1, $2, 'note ' || n from generate_series(1, $3::int) as n`,
      [caseId, actor, count],
    )

  test('has a bound: notes of a case, also by a merge, and says which field is too much', async () => {
    const [a, b] = await some('noted')
    await addNotes(a, notesPerCaseMax)
    await addNotes(b, 1)
    const note = { caseId: a, note: 'one more', scope, actor }
    const refusal = { code: 'conflict', errors: [{ path: '$.note' }] }
    await expect(addCaseNote(postgres, note)).rejects.toMatchObject(refusal)
    const merge = { caseId: b, into: a, scope, actor }
    const tooMany = { code: 'conflict', errors: [{ path: '$.into' }] }
    await expect(mergeCases(postgres, merge)).rejects.toMatchObject(tooMany)
    expect(await show(b)).toMatchObject({ alerts: 1, merged_into: null })
  })

  test('has a bound: the history of a case keeps the newest entries', async () => {
    const [caseId] = await some('told')
    await postgres.query(
      `insert into case_events (case_id, kind, actor) select $1, 'woken', $2
       from generate_series(1, $3::int)`,
      [caseId, actor, caseHistoryMax + 7],
    )
    await assignCase(postgres, { caseId, assignee: actor, scope, actor })
    const { rows } = await postgres.query<{ kind: string }>(
      'select kind from case_events where case_id = $1 order by event_id',
      [caseId],
    )
    expect([rows.length, rows.at(-1)?.kind]).toEqual([caseHistoryMax, 'assigned'])
  })

  test('has a bound: of proposals that ended the newest are kept', async () => {
    const tenantId = 'proposed'
    await insertBareTenants(postgres, [tenantId])
    await postgres.query(
      `insert into proposals (proposal_id, tenant_id, kind, parameters, base, reason, author,
         created_at, expires_at)
       select 'prp_' || gen_random_uuid(), $1, 'bulk', '{}', '{}', 'old ' || n, $2,
         now() - interval '8 days', now() - n * interval '1 minute'
       from generate_series(1, $3::int) as n`,
      [tenantId, actor, proposalsEndedMax + 3],
    )
    const wanted = { tenantId, kind: 'bulk', parameters: {}, base: {}, reason: 'new' } as const
    const more = { author: actor, days: 1, openMax: 9, subject: null }
    const sealer = createSealer([randomBytes(32).toString('base64')])
    const proposalId = `prp_${randomUUID()}`
    await insertProposal(postgres, sealer, { ...wanted, ...more, proposalId })
    const { rows } = await postgres.query<{ reason: string }>(
      'select reason from proposals where tenant_id = $1 order by expires_at desc',
      [tenantId],
    )
    expect(rows.map(({ reason }) => reason)).toEqual([
      'new',
      ...Array.from({ length: proposalsEndedMax }, (_, n) => `old ${n + 1}`),
    ])
  })
})

test('open cases and those that are late are counted for metrics', async () => {
  const tenantId = 'measured'
  await insertBareTenants(postgres, [tenantId])
  const metrics = createMetrics('test')
  const log = createLog('test', 'silent')
  const gauges = async () => {
    const text = await metrics.registry.metrics()
    return ['open', 'breached'].map((name) =>
      Number(new RegExp(`^di_cases_${name}\\S* (\\d+)$`, 'm').exec(text)?.[1]),
    )
  }
  const sql = `select count(*) as open, count(*) filter (where due_at <= now()) as breached
    from cases where closed_at is null`
  const late = makeAlertCandidate({ tenantId, sessionId: 's1', action: 'BLOCK' })
  await raiseAlerts(postgres, [late], () => Date.now() - 5 * 3_600_000)
  const { rows } = await postgres.query<{ open: number; breached: number }>(sql)
  expect(rows[0]!.breached).toBeGreaterThan(0)
  const job = startCases({ postgres, log, metrics })
  try {
    await until('the gauges are the counts', async () => {
      const [open, breached] = await gauges()
      return open === rows[0]!.open && breached === rows[0]!.breached
    })
  } finally {
    await job.stop()
  }
})

describe('saved views', () => {
  /** Rows as the store writes them, of each owner so many. */
  const fill = (tenantId: string, owners: readonly string[], each: number) =>
    postgres.query(
      `insert into saved_views (view_id, tenant_id, kind, name, query, shared, owner)
       select 'viw_' || left(md5($1 || owner || n), 22), $1, 'cases', 'view ' || n, '{}', false,
         owner
       from unnest($2::text[]) as owner, generate_series(1, $3::int) as n`,
      [tenantId, owners, each],
    )
  const save = (tenantId: string, name: string) => {
    const view = { kind: 'cases', name, query: { sort: 'risk' }, shared: false } as const
    return saveView(postgres, { tenantId, operator: actor, view })
  }

  test('of one operator never fill those of a tenant, and are replaced at the limit', async () => {
    const tenantId = 'own-views'
    await insertBareTenants(postgres, [tenantId])
    await fill(tenantId, [actor], savedViewsPerOwnerMax)
    expect(await save(tenantId, 'view 7')).toMatchObject({ query: { sort: 'risk' } })
    await expect(save(tenantId, 'one more')).rejects.toMatchObject({ code: 'conflict' })
    const view = { kind: 'alerts', name: 'mine', query: {}, shared: true } as const
    const saved = await saveView(postgres, { tenantId, operator: 'bo@example.com', view })
    expect(saved).toMatchObject({ owner: 'bo@example.com', shared: true })
  })

  test('are replaced also where a tenant has as many as it may', async () => {
    const tenantId = 'views'
    await insertBareTenants(postgres, [tenantId])
    const others = savedViewsMax / savedViewsPerOwnerMax - 1
    const owners = Array.from({ length: others }, (_, at) => `owner-${at}@example.com`)
    await fill(tenantId, owners, savedViewsPerOwnerMax)
    await fill(tenantId, [actor, 'last@example.com'], savedViewsPerOwnerMax / 2)
    expect(await save(tenantId, 'view 7')).toMatchObject({ query: { sort: 'risk' } })
    await expect(save(tenantId, 'one more')).rejects.toMatchObject({ code: 'conflict' })
  })
})
