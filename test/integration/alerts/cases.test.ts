// Cases on a real PostgreSQL: what they count is what their alerts are, whatever raises, judges,
// moves and removes alerts at the same time; nobody gets a case twice.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { createSeededRandom } from '#shared/core/base/seeded-random.ts'
import { judgementBody, nextCaseBody } from '#shared/core/cases/case-schemas.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { stepBulkJob } from '#shared/io/alerts/bulk/bulk-job-steps.ts'
import { startBulkJob } from '#shared/io/alerts/bulk/bulk-job-store.ts'
import { startBulkUndo } from '#shared/io/alerts/bulk/undo-bulk-job.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { setDisposition } from '#shared/io/alerts/set-disposition.ts'
import { enterCase, leaveCase } from '#shared/io/cases/case-presence.ts'
import { setCaseRules, showCaseRules } from '#shared/io/cases/case-rules-store.ts'
import { addCaseNote, snoozeCase } from '#shared/io/cases/change-case.ts'
import { judgeCase } from '#shared/io/cases/judge-case.ts'
import { showCase } from '#shared/io/cases/list-cases.ts'
import { findCaseless, mergeCases, placeAlerts, splitCase } from '#shared/io/cases/move-alerts.ts'
import { takeNextCase } from '#shared/io/cases/next-case.ts'
import { eraseAlerts } from '#shared/io/erasure/erasure-alerts-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { removeAlerts } from '#shared/io/retention/retention-store.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import {
  type MigratedPostgres,
  startMigratedPostgres,
} from '../../support/servers/migrated-postgres.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

let servers: MigratedPostgres
let postgres: Postgres

beforeAll(async () => {
  servers = await startMigratedPostgres({ connectionsMax: 16 })
  postgres = servers.postgres
})
afterAll(() => servers?.close())

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
    ...{ caseId, scope, actor },
    judgement: judgementBody.parse(judgement),
    nowMs: Date.now(),
  })

/** What each case should have, computed from the alerts, beside what it has: those that differ. */
const differencesSql = `
with present as (
  select case_id, count(*) as alerts, count(*) filter (where disposition = 'OPEN') as open_alerts,
    max(risk_score) as risk_score, min(action) as action, min(created_at) as first_at,
    max(created_at) as latest_at,
    min(created_at + case action when 'BLOCK' then 4 else 24 end * interval '1 hour')
      filter (where disposition = 'OPEN') as due_at
  from alerts group by case_id
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
        const jobId = `blk_${sessions++}_${Math.floor(random() * 1e9)}`
        const job = await startBulkJob(postgres, {
          ...{ jobId, tenantId, target: { alertIds }, actor: 'admin', note: null, runningMax: 99 },
          change: { sets: 'disposition', disposition: pick(dispositions) },
          expectedCount: alertIds.length,
        })
        if (typeof job !== 'object') return
        await stepBulkJob(postgres, jobId)
        const undo = { jobId: `${jobId}u`, undoOf: jobId, scope, actor: 'admin', runningMax: 99 }
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
    const often = ['raise', 'raise', 'raise', 'dispose', 'dispose', 'judge', 'split', 'merge', 'next']
    const refused = (error: unknown) => {
      // What a change names may be gone, merged or judged by then.
      if (!(error instanceof Problem) || !/^(conflict|case_not_found)$/.test(error.code)) throw error
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
