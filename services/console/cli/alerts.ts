/** `di alerts ...` and `di deliveries ...`: judging alerts, and seeing how they go out. */
import { type Command, InvalidArgumentError } from 'commander'
import { type Alert, dispositions } from '#shared/core/alert-rules.ts'
import type { Delivery } from '../schemas.ts'
import type { CliContext } from './context.ts'
import { toFields, toTable, toTime } from './tables.ts'

/** Adds the groups `alerts` and `deliveries`. */
export function registerAlerts(program: Command, context: CliContext): void {
  program
    .command('alerts')
    .description('judge alerts')
    .command('disposition <alert-id> <disposition>')
    .description(`set what an alert turned out to be: ${dispositions.join(', ')}`)
    .option('--note <text>', 'why, for whoever reads it later')
    .option('--json', 'print one JSON document')
    .action(async (alertId: string, disposition: string, options: { note?: string }) => {
      const path = `/alerts/${encodeURIComponent(alertId)}/disposition`
      const alert = await context.adminFetch('POST', path, {
        disposition: disposition.toUpperCase(),
        ...(options.note === undefined ? {} : { note: options.note }),
      })
      context.out(alert as Alert, toAlertText)
    })
  program
    .command('deliveries')
    .description('see how alerts reach the webhook')
    .command('list <slug>')
    .description('list deliveries with their attempts, newest first')
    .option('--state <state>', 'pending, sending, delivered, failed or skipped')
    .option('--limit <n>', 'at most this many', toLimit, 50)
    .option('--json', 'print one JSON document')
    .action(async (slug: string, options: { state?: string; limit: number }) => {
      const query = new URLSearchParams({ limit: String(options.limit) })
      if (options.state !== undefined) query.set('state', options.state)
      const path = `/tenants/${encodeURIComponent(slug)}/deliveries?${query}`
      context.out((await context.adminFetch('GET', path)) as { data: Delivery[] }, toDeliveryTable)
    })
}

/** A whole number from 1 to 500. */
export function toLimit(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= 500) return value
  throw new InvalidArgumentError('must be a whole number from 1 to 500')
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

type Attempt = { status?: number | null; error_kind?: string | null }

function toDeliveryTable({ data }: { data: Delivery[] }): string {
  if (data.length === 0) return 'There are no such deliveries.'
  return toTable(
    ['DELIVERY', 'ALERT', 'STATE', 'ATTEMPTS', 'LAST', 'NEXT', 'CREATED'],
    data.map((delivery) => {
      const last = delivery.attempts.at(-1) as Attempt | undefined
      return [
        delivery.delivery_id,
        delivery.alert_id ?? '-',
        delivery.state,
        String(delivery.attempts.length),
        String(last?.status ?? last?.error_kind ?? '-'),
        toTime((delivery.due_at as string | null) ?? null),
        toTime((delivery.created_at as string | null) ?? null),
      ]
    }),
  )
}
