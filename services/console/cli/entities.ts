/** `di devices show` and `di users show`: what the pages of a device and of a user have. */
import { withPercentile } from '#shared/core/outcomes/percentile-text.ts'
import { type Answer, command, group } from './commands.ts'
import { toTenantPath } from './context.ts'
import { type Column, toColumns, toConnectionText, toFields, toTime } from './tables.ts'

const devicePath = '/tenants/{tenant_id}/devices/{device_id}'
const userPath = '/tenants/{tenant_id}/users/{user_id}'

type DevicePage = Answer<typeof devicePath>
type UserPage = Answer<typeof userPath>
type SignalChanges = Answer<`${typeof devicePath}/signal-changes`>
type Links = Answer<`${typeof devicePath}/links`>
type Device = DevicePage & { signal_changes: SignalChanges; links: Links }
type User = UserPage & { links: Links }
/** What sessions of a device and of a user have in common. */
type Session = Omit<DevicePage['device']['sessions'][number], 'users' | 'users_total'>

/** Rows of each table; `--json` has all that the API answers. */
const rowsShown = 20

export const devices = group('devices', 'devices', [
  command(
    'show <slug> <device-id>',
    'a device: sessions, signal changes, alerts, users and linked devices',
    [],
    async (context, [slug, id]) => {
      const path = `${toTenantPath(slug!)}/devices/${encodeURIComponent(id!)}`
      const page = (await context.adminFetch('GET', path)) as DevicePage
      const [signal_changes, links] = await Promise.all([
        context.adminFetch('GET', `${path}/signal-changes`) as Promise<SignalChanges>,
        context.adminFetch('GET', `${path}/links`) as Promise<Links>,
      ])
      context.out({ ...page, signal_changes, links }, toDeviceText)
    },
  ),
])

export const users = group('users', 'users and accounts', [
  command(
    'show <slug> <user-id>',
    'a user or account: devices, sessions, alerts and linked users',
    [],
    async (context, [slug, id]) => {
      const path = `${toTenantPath(slug!)}/users/${encodeURIComponent(id!)}`
      const page = (await context.adminFetch('GET', path)) as UserPage
      const links = (await context.adminFetch('GET', `${path}/links`)) as Links
      context.out({ ...page, links }, toUserText)
    },
  ),
])

const toInstallText = (install: Device['device']['install']): string =>
  install === null
    ? 'not registered'
    : `${install.provider}, ${install.verdict}, key: ${install.level}`

function toDeviceText({ device, alerts, signal_changes: changes, links }: Device): string {
  return [
    toFields({
      device_id: device.device_id,
      first_seen: toTime(device.first_seen_at),
      last_seen: toTime(device.last_seen_at),
      risk_score: withPercentile(device.risk_score, device.risk_percentile),
      device_score: device.peak_rasp_score,
      install: toInstallText(device.install),
      connection: toConnectionText(device.connection),
      sessions: device.sessions_total,
      users: device.users_seen_on.length,
    }),
    toSection('SESSIONS', device.sessions_total, sessionColumns, device.sessions),
    toChanges(changes),
    toAlerts(alerts),
    toSection('USERS', device.users_seen_on.length, [['USER', (id) => id]], device.users_seen_on),
    toLinks('device', links),
  ].join('\n\n')
}

function toChanges({ data, total, complete_from: from }: SignalChanges): string {
  const section = toSection('SIGNAL CHANGES', total, changeColumns, data)
  if (from === null) return section
  return `${section}\nBefore ${toTime(from)} only the first detection of each signal is known.`
}

function toUserText({ user, sessions, alerts, links }: User): string {
  return [
    toFields({
      user_id: user.user_id,
      first_seen: toTime(user.first_seen_at),
      last_seen: toTime(user.last_seen_at),
      risk_score: user.risk_score,
      device_score: user.peak_rasp_score,
      devices: user.devices_total,
    }),
    toSection('DEVICES', user.devices_total, deviceColumns, user.devices),
    toSection('SESSIONS', sessions.length, [['DEVICE', 'device_id'], ...sessionColumns], sessions),
    toAlerts(alerts),
    toLinks('user', links),
  ].join('\n\n')
}

const sessionColumns: readonly Column<Session>[] = [
  ['SESSION', 'session_id'],
  ['BEGAN', 'started_at'],
  ['LAST SEEN', 'last_seen_at'],
  ['RISK', 'risk_score'],
  ['DEVICE SCORE', 'rasp_score'],
  ['ACTION', 'action'],
  ['FLAGS', ({ risk_flags: flags }) => flags.join(' ') || '-'],
]

const changeColumns: readonly Column<SignalChanges['data'][number]>[] = [
  ['AT', ({ at }) => toTime(at)],
  ['CHANGE', 'change'],
  ['SIGNAL', 'signal'],
  ['SESSION', 'session_id'],
]

const deviceColumns: readonly Column<UserPage['user']['devices'][number]>[] = [
  ['DEVICE', 'device_id'],
  ['RISK', 'risk_score'],
  ['DEVICE SCORE', 'peak_rasp_score'],
  ['FIRST SEEN', 'first_seen_at'],
  ['LAST SEEN', 'last_seen_at'],
]

const alertColumns: readonly Column<DevicePage['alerts']['data'][number]>[] = [
  ['ALERT', 'alert_id'],
  ['RAISED', 'created_at'],
  ['SCORE', ({ decision }) => decision.risk_score],
  ['ACTION', ({ decision }) => decision.action],
  ['DISPOSITION', 'disposition'],
  ['FLAGS', ({ flags }) => flags.join(' ') || '-'],
]

function toAlerts({ total, data }: DevicePage['alerts']): string {
  return toSection('ALERTS', total, alertColumns, data)
}

function toLinks(kind: 'device' | 'user', links: Links): string {
  const notes = [
    ...(links.complete ? [] : [`There may be more: only the latest ${kind}s were read.`]),
    ...(links.sessions_searched ? [] : ['Sessions in common were not all searched.']),
  ]
  const columns: Column<Links['data'][number]>[] =
    kind === 'device'
      ? [
          ['DEVICE', 'id'],
          ['LAST SEEN', 'last_seen_at'],
          ['SESSIONS IN COMMON', 'sessions'],
          ['USERS IN COMMON', toShared],
        ]
      : [
          ['USER', 'id'],
          ['LAST SEEN', 'last_seen_at'],
          ['DEVICES IN COMMON', toShared],
        ]
  const title = `LINKED ${kind.toUpperCase()}S`
  return [toSection(title, links.total, columns, links.data), ...notes].join('\n')
}

function toShared({ shared, shared_total: total }: Links['data'][number]): string {
  const shown = shared.slice(0, 2).map(({ id }) => id)
  if (total > shown.length) shown.push(`and ${total - shown.length} more`)
  return shown.join(', ') || '-'
}

function toSection<Row>(
  title: string,
  total: number,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): string {
  if (rows.length === 0) return `${title}: none`
  const shown = Math.min(rows.length, rowsShown)
  const count = shown < total ? ` (${shown} of ${total})` : ''
  return `${title}${count}\n${toColumns(columns, rows.slice(0, rowsShown))}`
}
