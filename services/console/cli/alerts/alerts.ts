/** `di alerts ...`: find alerts and set their dispositions. */

import { Option } from 'commander'
import { alertFields } from '#shared/core/alerts/alert.ts'
import { alertFilters, filterNames } from '#shared/core/alerts/alert-filters.ts'
import type { OperatorAlert } from '#shared/core/alerts/alert-schema.ts'
import { toAlertSentence } from '#shared/core/alerts/alert-sentence.ts'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { withPercentile } from '#shared/core/outcomes/percentile-text.ts'
import { type Answer, change, cursor, group, limit, read } from '../commands.ts'
import { toFields, toTable, toTime } from '../tables.ts'
import { bulk } from './bulk-jobs.ts'

type Values = Record<string, string | number | undefined>

/** The option of each filter: `--min-score` for `min_score`, `--device` for `device_id`. */
const filterOptions = filterNames.map((name) => {
  const flag = name.replace('_id', '').replaceAll('_', '-')
  return { name, option: new Option(`--${flag} <value>`, alertFilters[name].description) }
})

/** The parameters of the list, from the options under their own names. */
const toParameters = ({ limit, cursor, ...values }: Values): Values => ({
  limit,
  cursor,
  ...Object.fromEntries(
    filterOptions.map(({ name, option }) => [name, values[option.attributeName()]]),
  ),
})

export const alerts = group('alerts', 'find and judge alerts', [
  read('list <slug>', 'list the alerts of a tenant, newest first', '/tenants/{tenant_id}/alerts', {
    options: [...filterOptions.map(({ option }) => option), limit(50), cursor],
    query: toParameters,
    columns: [
      ['ALERT', 'alert_id'],
      ['CREATED', 'created_at'],
      ['DECISION', ({ decision }) => `${decision.action} ${decision.risk_score}`],
      ['DISPOSITION', 'disposition'],
      ['ASSIGNEE', 'assignee'],
      ['DEVICE', ({ entity }) => entity.device.device_id],
      ['FLAGS', ({ flags }) => flags.join(', ')],
    ],
    empty: 'There are no such alerts.',
    note: ({ data, total }) => `${data.length} of ${total}`,
  }),
  bulk,
  read('show <alert-id>', 'show one alert: why, notes, history, deliveries', '/alerts/{alert_id}', {
    text: toDetailText,
  }),
  change(
    'disposition <alert-id> <disposition>',
    `set what an alert turned out to be: ${dispositions.join(', ')}`,
    ['post', '/alerts/{alert_id}/disposition'],
    {
      options: [['--note <text>', 'why; kept with the change']],
      body: ({ note }: { note?: string }, [, disposition]) => ({
        disposition: disposition!.toUpperCase(),
        note,
      }),
      text: toAlertText,
    },
  ),
])

function toDetailText(detail: Answer<'/alerts/{alert_id}'>): string {
  const { alert, history, notes, risk_percentile: percentile } = detail
  const reasons = alert.reasons.map((reason) => [String(reason.weight), reason.code])
  return [
    toAlertText(alert),
    toAlertSentence(alert.reasons, alert.decision.risk_score),
    `Risk score ${withPercentile(alert.decision.risk_score, percentile)}`,
    toTable(['WEIGHT', 'REASON'], reasons),
    ...history.map(({ at, actor, from, to, note, undo }) => {
      const what = `${from} -> ${to} by ${actor}${undo ? ', as an undo' : ''}`
      return toVisible(`${toTime(at)}  ${what}${note === null ? '' : `: ${note}`}`)
    }),
    ...notes.map(({ at, author, note }) => toVisible(`${toTime(at)}  ${author}: ${note}`)),
  ].join('\n')
}

function toAlertText(alert: OperatorAlert): string {
  const fields = Object.entries(alertFields).map(([name, read]) => [name, read(alert) || '-'])
  return toFields(Object.fromEntries(fields))
}
