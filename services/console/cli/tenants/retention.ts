/** `di tenants retention`: how long a tenant's events, alerts and deliveries are kept. */
import { InvalidArgumentError, Option } from 'commander'
import {
  type RetentionSetting,
  type RetentionView,
  retainedKinds,
  retentionDaysMax,
} from '#shared/core/tenants/retention.ts'
import { type Answer, command } from '../commands.ts'
import { toTenantPath } from '../context.ts'
import { toFields } from '../tables.ts'

type Options = {
  events?: RetentionSetting
  alerts?: RetentionSetting
  deliveries?: RetentionSetting
}

const days = 'a number of days, `default` or `forever`'
const daysOption = (flags: string, description: string) =>
  new Option(flags, `${description}: ${days}`).argParser(toSetting)

/** Of the group `tenants`. */
export const retention = command<Options>(
  'retention <slug>',
  'show or set retention periods; older data is removed for good within minutes',
  [
    daysOption('--events <days>', 'telemetry and the history of devices'),
    daysOption('--alerts <days>', 'alerts with their deliveries'),
    daysOption('--deliveries <days>', 'deliveries that have ended'),
  ],
  async (context, [slug], { events, alerts, deliveries }) => {
    const path = toTenantPath(slug!)
    const settings = { events, alerts, deliveries }
    const isRead = Object.values(settings).every((setting) => setting === undefined)
    const tenant = (
      isRead
        ? await context.adminFetch('GET', path)
        : await context.adminFetch('PUT', `${path}/retention`, settings)
    ) as Pick<Answer<'/tenants/{tenant_id}'>, 'tenant_id' | 'retention'>
    const { tenant_id, retention } = tenant
    context.out({ tenant_id, retention }, () => {
      const kept = retainedKinds.map((kind) => [kind, toText(retention[kind])])
      return toFields({ tenant_id, ...Object.fromEntries(kept) })
    })
  },
)

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
