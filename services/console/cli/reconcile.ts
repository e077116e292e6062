/**
 * `di reconcile` (alias `di ledger`): what each stage counted of a tenant's events, hour by hour,
 * and the differences.
 */
import type { ReconciliationView } from '#shared/core/reconciliation/reconciliation-api.ts'
import { type Entry, read } from './commands.ts'
import { toTable, toTime } from './tables.ts'

const addReconcile = read(
  'reconcile <slug>',
  'the counts of each stage, hour by hour, and the differences',
  '/tenants/{tenant_id}/reconciliation',
  {
    options: [
      ['--from <instant>', 'ISO-8601; a day before the end when left out'],
      ['--to <instant>', 'ISO-8601; now when left out'],
    ],
    text: toReconciliationText,
  },
)

export const reconcile: Entry = (program, context) => {
  addReconcile(program, context)
  program.commands.at(-1)!.alias('ledger')
}

/** The table of hours, then the differences. */
export function toReconciliationText({ as_of, agrees, data }: ReconciliationView): string {
  if (data.length === 0) return 'There are no events in these hours.'
  const header = ['HOUR', 'ACCEPTED', 'STORED', 'REPEATS', 'REFUSED', 'ERASED', 'ROWS', 'DECIDED']
  header.push('ALERTS', 'DELIVERIES', 'ATTEMPTED', 'DELIVERED', 'IN FLIGHT', '')
  const rows = data.map((hour) => [
    toTime(hour.hour),
    ...[hour.accepted, hour.stored, hour.repeats, hour.refused, hour.erased, hour.rows].map(String),
    String(hour.decided),
    hour.alerts === hour.alerts_due ? String(hour.alerts) : `${hour.alerts} of ${hour.alerts_due}`,
    ...[hour.deliveries, hour.attempted, hour.delivered, hour.in_flight].map(String),
    hour.expired ? 'removed by retention' : hour.differences.length === 0 ? 'agrees' : 'DIFFERS',
  ])
  const differences = data.flatMap((hour) =>
    hour.differences.map(({ stage, kind, count, ids }) => {
      const named =
        ids.length === 0 ? '' : `: ${ids.join(', ')}${ids.length < count ? ', ...' : ''}`
      return `${toTime(hour.hour)}  ${count} of ${stage} ${kind}${named}`
    }),
  )
  const until = as_of === null ? 'Nothing has been compared yet.' : `As of ${toTime(as_of)}.`
  const verdict = agrees ? `All agree. ${until}` : `They do not agree. ${until}`
  return [toTable(header, rows), '', verdict, ...differences].join('\n')
}
