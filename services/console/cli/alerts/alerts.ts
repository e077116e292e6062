/** `di alerts ...`: dispositions of alerts. */
import { type Command, Option } from 'commander'
import { alertFields } from '#shared/core/alerts/alert.ts'
import { alertFilters, filterNames } from '#shared/core/alerts/alert-filters.ts'
import type { OperatorAlert } from '#shared/core/alerts/alert-schema.ts'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import type { AlertDetail, AlertPage } from '../../alerts/alert-schemas.ts'
import { type CliContext, toTenantPath } from '../context.ts'
import { toFields, toTable, toTime } from '../tables.ts'
import { bulk } from './bulk-jobs.ts'

/** The option of each filter: `--min-score` for `min_score`, `--device` for `device_id`. */
const filterOptions = filterNames.map((name) => {
  const flag = name.replace('_id', '').replaceAll('_', '-')
  return { name, option: new Option(`--${flag} <value>`, alertFilters[name].description) }
})

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
      context.out(detail as AlertDetail, toDetailText)
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
      context.out(alert as OperatorAlert, toAlertText)
    })
}

function registerList(alerts: Command, context: CliContext): void {
  const list = alerts
    .command('list <slug>')
    .description('list the alerts of a tenant, newest first')
  for (const { option } of filterOptions) list.addOption(option)
  list
    .option('--limit <n>', 'how many', '50')
    .option('--cursor <cursor>', '`next_cursor` of the previous page')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, options: Record<string, string | undefined>) => {
      const query = new URLSearchParams({ limit: options.limit! })
      if (options.cursor !== undefined) query.set('cursor', options.cursor)
      for (const { name, option } of filterOptions) {
        const value = options[option.attributeName()]
        if (value !== undefined) query.set(name, value)
      }
      const page = await context.adminFetch('GET', `${toTenantPath(slug)}/alerts?${query}`)
      context.out(page as AlertPage, ({ data, total }) =>
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

function toDetailText({ alert, history, notes }: AlertDetail): string {
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

const toAlertText = (alert: OperatorAlert): string =>
  toFields(
    Object.fromEntries(Object.entries(alertFields).map(([name, of]) => [name, of(alert) || '-'])),
  )
