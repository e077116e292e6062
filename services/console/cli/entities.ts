/** `di devices show` and `di users show`: what the pages of a device and of a user have. */
import type { Command } from 'commander'
import type { z } from 'zod'
import type { devicePageSchema, userPageSchema } from '../entities/entity-schemas.ts'
import type { LinksAnswer } from '../entities/link-routes.ts'
import type { SignalChanges } from '../entities/signal-change-routes.ts'
import { type CliContext, toTenantPath } from './context.ts'
import { toFields, toTable, toTime } from './tables.ts'

type DevicePage = z.infer<typeof devicePageSchema>
type UserPage = z.infer<typeof userPageSchema>
type Device = DevicePage & { signal_changes: SignalChanges; links: LinksAnswer }
type User = UserPage & { links: LinksAnswer }

/** Rows of each table; `--json` has all that the API answers. */
const rowsShown = 20

/** Adds the groups `devices` and `users`. */
export function registerEntities(program: Command, context: CliContext): void {
  program
    .command('devices')
    .description('devices')
    .command('show <slug> <device-id>')
    .description('a device: sessions, signal changes, alerts, users and linked devices')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, deviceId: string) => {
      const path = `${toTenantPath(slug)}/devices/${encodeURIComponent(deviceId)}`
      const page = (await context.adminFetch('GET', path)) as DevicePage
      const [changes, links] = await Promise.all([
        context.adminFetch('GET', `${path}/signal-changes`) as Promise<SignalChanges>,
        context.adminFetch('GET', `${path}/links`) as Promise<LinksAnswer>,
      ])
      context.out({ ...page, signal_changes: changes, links }, toDeviceText)
    })
  program
    .command('users')
    .description('users and accounts')
    .command('show <slug> <user-id>')
    .description('a user or account: devices, sessions, alerts and linked users')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, userId: string) => {
      const path = `${toTenantPath(slug)}/users/${encodeURIComponent(userId)}`
      const page = (await context.adminFetch('GET', path)) as UserPage
      const links = (await context.adminFetch('GET', `${path}/links`)) as LinksAnswer
      context.out({ ...page, links }, toUserText)
    })
}

function toDeviceText({ device, alerts, signal_changes: changes, links }: Device): string {
  return [
    toFields({
      device_id: device.device_id,
      first_seen: toTime(device.first_seen_at),
      last_seen: toTime(device.last_seen_at),
      highest_score: device.peak_rasp_score,
      sessions: device.sessions_total,
      users: device.users_seen_on.length,
    }),
    toSection('SESSIONS', device.sessions_total, {
      head: sessionHead,
      rows: device.sessions.map(toSessionRow),
    }),
    toChanges(changes),
    toAlerts(alerts),
    toSection('USERS', device.users_seen_on.length, {
      head: ['USER'],
      rows: device.users_seen_on.map((id) => [id]),
    }),
    toLinks('device', links),
  ].join('\n\n')
}

function toChanges({ data, total, complete_from: from }: SignalChanges): string {
  const section = toSection('SIGNAL CHANGES', total, {
    head: ['AT', 'CHANGE', 'SIGNAL', 'SESSION'],
    rows: data.map(({ at, change, signal, session_id: id }) => {
      return [toTime(at), change, signal, id]
    }),
  })
  if (from === null) return section
  return `${section}\nBefore ${toTime(from)} only the first detection of each signal is known.`
}

function toUserText({ user, sessions, alerts, links }: User): string {
  return [
    toFields({
      user_id: user.user_id,
      first_seen: toTime(user.first_seen_at),
      last_seen: toTime(user.last_seen_at),
      highest_score: user.peak_rasp_score,
      devices: user.devices_total,
    }),
    toSection('DEVICES', user.devices_total, {
      head: ['DEVICE', 'HIGHEST SCORE', 'FIRST SEEN', 'LAST SEEN'],
      rows: user.devices.map((one) => [
        one.device_id,
        String(one.peak_rasp_score),
        toTime(one.first_seen_at),
        toTime(one.last_seen_at),
      ]),
    }),
    toSection('SESSIONS', sessions.length, {
      head: ['DEVICE', ...sessionHead],
      rows: sessions.map((one) => [one.device_id, ...toSessionRow(one)]),
    }),
    toAlerts(alerts),
    toLinks('user', links),
  ].join('\n\n')
}

const sessionHead = ['SESSION', 'BEGAN', 'LAST SEEN', 'SCORE', 'ACTION', 'FLAGS']

function toSessionRow(session: DevicePage['device']['sessions'][number]): string[] {
  return [
    session.session_id,
    toTime(session.started_at),
    toTime(session.last_seen_at),
    String(session.rasp_score),
    session.rasp_action,
    session.flags.join(' ') || '-',
  ]
}

function toAlerts({ total, data }: DevicePage['alerts']): string {
  return toSection('ALERTS', total, {
    head: ['ALERT', 'RAISED', 'SCORE', 'ACTION', 'DISPOSITION', 'FLAGS'],
    rows: data.map(({ alert_id: id, created_at: at, decision, disposition, flags }) => [
      id,
      toTime(at),
      String(decision.risk_score),
      decision.action,
      disposition,
      flags.join(' ') || '-',
    ]),
  })
}

function toLinks(kind: 'device' | 'user', links: LinksAnswer): string {
  const isDevice = kind === 'device'
  const notes = [
    ...(links.complete ? [] : [`There may be more: only the latest ${kind}s were read.`]),
    ...(links.sessions_searched ? [] : ['Sessions in common were not all searched.']),
  ]
  const section = toSection(`LINKED ${kind.toUpperCase()}S`, links.total, {
    head: isDevice
      ? ['DEVICE', 'LAST SEEN', 'SESSIONS IN COMMON', 'USERS IN COMMON']
      : ['USER', 'LAST SEEN', 'DEVICES IN COMMON'],
    rows: links.data.map((one) => [
      one.id,
      toTime(one.last_seen_at),
      ...(isDevice ? [String(one.sessions)] : []),
      toShared(one),
    ]),
  })
  return [section, ...notes].join('\n')
}

function toShared({ shared, shared_total: total }: LinksAnswer['data'][number]): string {
  const shown = shared.slice(0, 2).map(({ id }) => id)
  if (total > shown.length) shown.push(`and ${total - shown.length} more`)
  return shown.join(', ') || '-'
}

function toSection(
  title: string,
  total: number,
  { head, rows }: { head: string[]; rows: string[][] },
): string {
  if (rows.length === 0) return `${title}: none`
  const shown = Math.min(rows.length, rowsShown)
  const count = shown < total ? ` (${shown} of ${total})` : ''
  return `${title}${count}\n${toTable(head, rows.slice(0, rowsShown))}`
}
