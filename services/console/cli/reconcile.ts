/**
 * `di reconcile` (alias `di ledger`): what each stage counted of a tenant's events, hour by hour,
 * and the differences.
 */
import type { Command } from 'commander'
import type { ReconciliationView } from '#shared/core/reconciliation/reconciliation-api.ts'
import { type CliContext, toTenantPath } from './context.ts'
import { toTable, toTime } from './tables.ts'

/** Adds the command `reconcile`. */
export function registerReconcile(program: Command, context: CliContext): void {
  program
    .command('reconcile <slug>')
    .alias('ledger')
    .description('the counts of each stage, hour by hour, and the differences')
    .option('--from <instant>', 'ISO-8601; a day before the end when left out')
    .option('--to <instant>', 'ISO-8601; now when left out')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, { from, to }: { from?: string; to?: string }) => {
      const query = new URLSearchParams({
        ...(from === undefined ? {} : { from }),
        ...(to === undefined ? {} : { to }),
      })
      const path = `${toTenantPath(slug)}/reconciliation?${query}`
      context.out(
        (await context.adminFetch('GET', path)) as ReconciliationView,
        toReconciliationText,
      )
    })
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
