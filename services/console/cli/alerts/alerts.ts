/** `di alerts ...`: dispositions of alerts. */
import type { Command } from 'commander'
import { type Alert, dispositions } from '#shared/core/alerts/alert-rules.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { type CliContext, toTenantPath } from '../context.ts'
import { toFields, toTable, toTime } from '../tables.ts'
import { bulk } from './bulk-jobs.ts'

type Row = Alert & { assignee: string | null }
type Page = { data: Row[]; total: number; next_cursor: string | null }
type Detail = {
  alert: Row
  history: {
    at: string
    actor: string
    from: string
    to: string
    note: string | null
    undo: boolean
  }[]
  notes: { at: string; author: string; note: string }[]
}

/** Options of `alerts list`, each a parameter of the list. */
const filters = [
  'disposition',
  'decision',
  'severity',
  'flag',
  'device',
  'user',
  'session',
] as const
const parameterOf = (name: string) =>
  ['device', 'user', 'session'].includes(name) ? `${name}_id` : name

/** Adds the group `alerts`. */
export function registerAlerts(program: Command, context: CliContext): void {
  const alerts = program.command('alerts').description('find and judge alerts')
  registerList(alerts, context)
  bulk(alerts, context)
  alerts
    .command('show <alert-id>')
    .description('show one alert: why, notes, history, deliveries')
    .option('--json', 'print one JSON document')
    .action(async (alertId: string) => {
      const detail = await context.adminFetch('GET', `/alerts/${encodeURIComponent(alertId)}`)
      context.out(detail as Detail, toDetailText)
    })
  alerts
    .command('disposition <alert-id> <disposition>')
    .description(`set what an alert turned out to be: ${dispositions.join(', ')}`)
    .option('--note <text>', 'why; kept with the change')
    .option('--json', 'print one JSON document')
    .action(async (alertId: string, disposition: string, options: { note?: string }) => {
      const path = `/alerts/${encodeURIComponent(alertId)}/disposition`
      const alert = await context.adminFetch('POST', path, {
        disposition: disposition.toUpperCase(),
        ...(options.note === undefined ? {} : { note: options.note }),
      })
      context.out(alert as Alert, toAlertText)
    })
}

function registerList(alerts: Command, context: CliContext): void {
  const list = alerts
    .command('list <slug>')
    .description('list the alerts of a tenant, newest first')
  for (const name of filters) list.option(`--${name} <value>`, `only of this ${name}`)
  list
    .option('--limit <n>', 'how many', '50')
    .option('--cursor <cursor>', '`next_cursor` of the previous page')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, options: Record<string, string | undefined>) => {
      const query = new URLSearchParams()
      for (const name of [...filters, 'limit', 'cursor']) {
        const value = options[name]
        if (value !== undefined) query.set(parameterOf(name), value)
      }
      const page = await context.adminFetch('GET', `${toTenantPath(slug)}/alerts?${query}`)
      context.out(page as Page, ({ data, total }) =>
        data.length === 0
          ? 'There are no such alerts.'
          : `${toTable(
              ['ALERT', 'CREATED', 'DECISION', 'DISPOSITION', 'ASSIGNEE', 'DEVICE', 'FLAGS'],
              data.map((one) => [
                one.alert_id,
                toTime(one.created_at),
                `${one.decision.action} ${one.decision.risk_score}`,
                one.disposition,
                one.assignee ?? '-',
                one.entity.device.device_id,
                one.flags.join(', '),
              ]),
            )}\n\n${data.length} of ${total}`,
      )
    })
}

function toDetailText({ alert, history, notes }: Detail): string {
  const reasons = alert.reasons.map((reason) => [String(reason.weight), reason.code])
  return [
    toAlertText(alert),
    toTable(['WEIGHT', 'REASON'], reasons),
    ...history.map(({ at, actor, from, to, note, undo }) => {
      const what = `${from} -> ${to} by ${actor}${undo ? ', as an undo' : ''}`
      return toVisible(`${toTime(at)}  ${what}${note === null ? '' : `: ${note}`}`)
    }),
    ...notes.map(({ at, author, note }) => toVisible(`${toTime(at)}  ${author}: ${note}`)),
  ].join('\n')
}

function toAlertText(alert: Alert): string {
  return toFields({
    alert_id: alert.alert_id,
    disposition: alert.disposition,
    decision: `${alert.decision.action} (${alert.decision.severity} ${alert.decision.risk_score})`,
    device: alert.entity.device.device_id,
    flags: alert.flags.join(', '),
    created: toTime(alert.created_at),
  })
}
