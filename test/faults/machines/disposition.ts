/**
 * Concurrent writers raise alerts and set dispositions on a real PostgreSQL. After every step `seq`
 * has no gap, every counter equals the number of its alerts, the history of an alert leads from
 * OPEN to its disposition, and each change has one row in the audit log.
 */
import fc from 'fast-check'
import { type Disposition, dispositions } from '#shared/core/alerts/dispositions.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { setDisposition } from '#shared/io/alerts/set-disposition.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'
import {
  anyCommands,
  demand,
  demandEqual,
  type MachineOptions,
  type MachineReport,
  type Note,
  runCommands,
  runMachine,
  toCommand,
} from './run-machine.ts'

type Judgement = { alert: number; to: Disposition }

let tenants = 0

async function createHistory(postgres: Postgres, note: Note) {
  const tenantId = `judged-${process.pid}-${++tenants}`
  await insertBareTenants(postgres, [tenantId])
  /** The alerts, each with its possible dispositions. */
  const model = new Map<string, Set<Disposition>>()
  const read = async <Row extends Record<string, unknown>>(sql: string): Promise<Row[]> =>
    (await postgres.query<Row>(sql, [tenantId])).rows

  const checkAlerts = async () => {
    const alerts = await read<{ alert_id: string; seq: number; disposition: Disposition }>(
      'select alert_id, seq, disposition from alerts where tenant_id = $1 order by seq',
    )
    demandEqual(
      alerts.map(({ seq }) => Number(seq)),
      alerts.map((_, at) => at + 1),
      'seq',
    )
    demandEqual(alerts.map((one) => one.alert_id).sort(), [...model.keys()].sort(), 'alerts')
    for (const { alert_id, disposition } of alerts) {
      demand(
        model.get(alert_id)!.has(disposition),
        `${alert_id} is ${disposition}, which was not set`,
      )
    }
    const deliveries = await read<{ n: number }>(
      'select count(*)::integer as n from deliveries where tenant_id = $1',
    )
    demandEqual(deliveries[0]!.n, alerts.length, 'deliveries')
  }
  const checkCounters = async () => {
    const groups = 'disposition, action as decision, count(*)::integer as n'
    const counted = await read(
      `select ${groups} from alerts where tenant_id = $1 group by 1, 2 order by 1, 2`,
    )
    for (const table of ['alert_counts_by_day', 'alert_counts_by_hour']) {
      const kept = await read(
        `select disposition, decision, sum(alert_count)::integer as n from ${table}
         where tenant_id = $1 group by 1, 2 having sum(alert_count) <> 0 order by 1, 2`,
      )
      demandEqual(kept, counted, table)
    }
  }
  const checkHistory = async () => {
    const broken = await read(
      `with steps as (
         select alert_id, from_disposition, to_disposition,
           lag(to_disposition, 1, 'OPEN') over of_alert as before,
           lead(disposition_id) over of_alert is null as is_last
         from alert_dispositions where tenant_id = $1
         window of_alert as (partition by alert_id order by disposition_id)
       )
       select steps.* from steps join alerts using (alert_id)
       where tenant_id = $1 and (from_disposition <> before or from_disposition = to_disposition
         or is_last and to_disposition <> disposition)`,
    )
    demandEqual(broken, [], 'breaks in histories')
    const [rows] = await read<{ changes: number; audited: number }>(
      `select (select count(*)::integer from alert_dispositions where tenant_id = $1) as changes,
         (select count(*)::integer from audit_log
          where tenant_id = $1 and action = 'alert.dispositioned') as audited`,
    )
    demandEqual(rows!.audited, rows!.changes, 'rows of the audit log')
    return rows!.changes
  }
  const check = async () => {
    await checkAlerts()
    await checkCounters()
    return checkHistory()
  }
  return {
    /** The writers raise their sessions at the same time; the sessions overlap. */
    raise: async (writers: readonly (readonly number[])[]) => {
      const candidates = writers.map((sessions) =>
        sessions.map((session) =>
          makeAlertCandidate({
            tenantId,
            sessionId: `session-${session}`,
            action: session % 2 === 0 ? 'REVIEW' : 'BLOCK',
          }),
        ),
      )
      await Promise.all(candidates.map((some) => raiseAlerts(postgres, some, Date.now)))
      for (const { alertId } of candidates.flat()) {
        if (model.has(alertId)) note('raised again')
        else model.set(alertId, new Set(['OPEN']))
      }
      await check()
    },
    /** The operators set dispositions at the same time. */
    judge: async (judgements: readonly Judgement[]) => {
      const ids = [...model.keys()]
      if (ids.length === 0) return
      const before = await checkHistory()
      const changes = judgements.map(({ alert, to }, at) => ({
        alertId: ids[alert % ids.length]!,
        disposition: to,
        note: null,
        actor: `operator ${at}`,
      }))
      const answers = await Promise.all(changes.map((change) => setDisposition(postgres, change)))
      answers.forEach((alert, at) => {
        demandEqual(alert?.disposition, changes[at]!.disposition, 'the response to the operator')
      })
      for (const alertId of new Set(changes.map((change) => change.alertId))) {
        const own = changes.filter((change) => change.alertId === alertId)
        if (own.length > 1) note('judged by several at once')
        model.set(alertId, new Set(own.map(({ disposition }) => disposition)))
      }
      note('changes', (await check()) - before)
    },
  }
}

type History = Awaited<ReturnType<typeof createHistory>>
const session = fc.nat({ max: 15 })
const writers = fc.array(fc.array(session, { minLength: 1, maxLength: 6 }), {
  minLength: 1,
  maxLength: 4,
})
const judgement = fc.record<Judgement>({
  alert: fc.nat({ max: 15 }),
  to: fc.constantFrom(...dispositions),
})
const judgements = fc.array(judgement, { minLength: 1, maxLength: 8 })
const raise = writers.map((some) =>
  toCommand<History>(`raise(${JSON.stringify(some)})`, (history) => history.raise(some)),
)
const judge = judgements.map((some) =>
  toCommand<History>(`judge(${JSON.stringify(some)})`, (history) => history.judge(some)),
)
const commands = anyCommands<History>([raise, judge, judge, judge], 25)

/** @param postgres migrated; with ten connections or more, so that races occur */
export function runDisposition(
  options: MachineOptions,
  postgres: Postgres,
): Promise<MachineReport> {
  return runMachine(options, commands, async (note, steps) => {
    await runCommands(await createHistory(postgres, note), steps)
  })
}
