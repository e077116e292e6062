/** `di alerts ...`: dispositions of alerts. */
import type { Command } from 'commander'
import { type Alert, dispositions } from '#shared/core/alerts/alert-rules.ts'
import type { CliContext } from './context.ts'
import { toFields, toTime } from './tables.ts'

/** Adds the group `alerts`. */
export function registerAlerts(program: Command, context: CliContext): void {
  program
    .command('alerts')
    .description('set dispositions of alerts')
    .command('disposition <alert-id> <disposition>')
    .description(`set the disposition of an alert: ${dispositions.join(', ')}`)
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
