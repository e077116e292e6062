/** `di tenants retention`: how long a tenant's events, alerts and deliveries are kept. */
import { type Command, InvalidArgumentError } from 'commander'
import {
  type RetentionSetting,
  type RetentionView,
  retainedKinds,
  retentionDaysMax,
} from '#shared/core/tenants/retention.ts'
import type { TenantView } from '#shared/io/tenants/tenant-store.ts'
import { type CliContext, toTenantPath } from './context.ts'
import { toFields } from './tables.ts'

type Options = {
  events?: RetentionSetting
  alerts?: RetentionSetting
  deliveries?: RetentionSetting
}

/** Adds `retention` to the group `tenants`, which must be there. */
export function registerRetention(program: Command, context: CliContext): void {
  const tenants = program.commands.find((command) => command.name() === 'tenants')!
  const days = 'a number of days, `default` or `forever`'
  tenants
    .command('retention <slug>')
    .description('show or set retention periods; older data is removed for good within minutes')
    .option('--events <days>', `telemetry and the history of devices: ${days}`, toSetting)
    .option('--alerts <days>', `alerts with their deliveries: ${days}`, toSetting)
    .option('--deliveries <days>', `deliveries that have ended: ${days}`, toSetting)
    .option('--json', 'print one JSON document')
    .action(async (slug: string, { events, alerts, deliveries }: Options) => {
      const path = toTenantPath(slug)
      const settings = { events, alerts, deliveries }
      const nothing = Object.values(settings).every((setting) => setting === undefined)
      const tenant = (
        nothing
          ? await context.adminFetch('GET', path)
          : await context.adminFetch('PUT', `${path}/retention`, settings)
      ) as Pick<TenantView, 'tenant_id' | 'retention'>
      const { tenant_id, retention } = tenant
      context.out({ tenant_id, retention }, (answer) =>
        toFields({
          tenant_id,
          ...Object.fromEntries(
            retainedKinds.map((kind) => [kind, toText(answer.retention[kind])]),
          ),
        }),
      )
    })
}

function toSetting(text: string): RetentionSetting {
  if (text === 'default' || text === 'forever') return text
  const days = Number(text)
  if (Number.isInteger(days) && days >= 1 && days <= retentionDaysMax) return days
  throw new InvalidArgumentError(
    `It must be a number of days from 1 to ${retentionDaysMax}, default or forever.`,
  )
}

const toText = ({ days, default: isDefault }: RetentionView): string =>
  `${days === null ? 'forever' : `${days} days`}${isDefault ? ' (the default)' : ''}`
