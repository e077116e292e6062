/** The columns of the list of events, and which of them the address chooses. */
import { Link } from '@tanstack/react-router'
import { nameFlags } from '#shared/core/alerts/alert-sentence.ts'
import type { AnswerOf } from '../../api/client.ts'
import { ActionBadge } from '../../components/badge.tsx'
import { cutMiddle, IdText } from '../../components/id.tsx'
import type { Column } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'

export type Event = AnswerOf<'/admin/v1/tenants/{tenant_id}/events', 'get'>['data'][number]

type ListColumn = {
  id: string
  /** In the head and in the menu. */
  text: string
  /** In rem, of a table that is as wide as its columns together. */
  width: number
  numeric?: true
  cell: (event: Event, tenant: string) => React.ReactNode
}

const none = <span className="text-muted">none</span>
const orNone = (value: string | null | undefined) => (value ? <IdText value={value} /> : none)

export const listColumns: readonly ListColumn[] = [
  {
    id: 'received',
    text: 'Received',
    width: 7,
    cell: ({ received_at }) => <Time at={received_at} />,
  },
  {
    id: 'event',
    text: 'Event',
    width: 8,
    cell: ({ event_id: eventId }, tenant) => (
      <Link
        className="font-mono text-sm"
        params={{ tenant, eventId }}
        title={eventId}
        to="/t/$tenant/events/$eventId"
      >
        {cutMiddle(eventId, 12)}
      </Link>
    ),
  },
  {
    id: 'action',
    text: 'Action',
    width: 6.5,
    cell: ({ action }) => <ActionBadge action={action} />,
  },
  { id: 'risk', text: 'Risk', width: 4, numeric: true, cell: (event) => event.risk_score },
  {
    id: 'flags',
    text: 'Reasons',
    width: 13,
    cell: ({ flags }) =>
      flags.length === 0 ? none : <span title={flags.join(', ')}>{nameFlags(flags)}</span>,
  },
  {
    id: 'device_score',
    text: 'Device score',
    width: 7,
    numeric: true,
    cell: (event) => event.rasp_score,
  },
  {
    id: 'device',
    text: 'Device',
    width: 10,
    cell: ({ device_id: deviceId }, tenant) => (
      <Link
        className="block truncate"
        params={{ tenant, deviceId }}
        to="/t/$tenant/devices/$deviceId"
      >
        <IdText value={deviceId} />
      </Link>
    ),
  },
  {
    id: 'user',
    text: 'User',
    width: 7,
    cell: ({ user_id, account_id }, tenant) => {
      const userId = user_id ?? account_id
      return userId === undefined ? (
        none
      ) : (
        <Link className="block truncate" params={{ tenant, userId }} to="/t/$tenant/users/$userId">
          <IdText value={userId} />
        </Link>
      )
    },
  },
  {
    id: 'session',
    text: 'Session',
    width: 9,
    cell: ({ session_id: sessionId }) => <IdText value={sessionId} />,
  },
  {
    id: 'platform',
    text: 'Platform',
    width: 6.5,
    cell: ({ sdk_meta: { platform } }) => orNone(platform),
  },
  { id: 'app', text: 'App version', width: 7, cell: ({ app_version }) => orNone(app_version) },
  {
    id: 'sdk',
    text: 'SDK version',
    width: 7,
    cell: ({ sdk_meta: { sdk_version } }) => orNone(sdk_version),
  },
  {
    id: 'model',
    text: 'Model',
    width: 9,
    cell: ({ device_brand, device_model }) =>
      orNone([device_brand, device_model].filter(Boolean).join(' ')),
  },
  {
    id: 'country',
    text: 'Country',
    width: 5.5,
    cell: ({ connection }) => orNone(connection?.country),
  },
  {
    id: 'network',
    text: 'Network',
    width: 11,
    cell: ({ connection }) => orNone(connection?.network),
  },
  {
    id: 'asn',
    text: 'ASN',
    width: 11,
    cell: ({ connection }) =>
      orNone(
        connection?.asn ? `AS${connection.asn} ${connection.organization ?? ''}`.trim() : undefined,
      ),
  },
]

/** What is shown until columns are chosen. */
const usual = ['received', 'event', 'action', 'risk', 'flags', 'device', 'user', 'app', 'country']

/** The ids of the columns that the address names, in the order of the table. */
export function readColumns(list: string | undefined): string[] {
  const chosen = list?.split(',') ?? usual
  const known = listColumns.flatMap(({ id }) => (chosen.includes(id) ? [id] : []))
  return known.length === 0 ? usual : known
}

/** The parameter for these columns; empty for the usual ones. */
export function writeColumns(ids: readonly string[]): string {
  const list = readColumns(ids.join(',')).join(',')
  return list === readColumns(undefined).join(',') ? '' : list
}

export const toTableColumns = (tenant: string, ids: readonly string[]): Column<Event>[] =>
  listColumns
    .filter(({ id }) => ids.includes(id))
    .map(({ id, text, width, numeric, cell }) => ({
      id,
      head: text,
      ...(numeric === undefined ? {} : { numeric }),
      width: `${width}rem`,
      cell: (event) => cell(event, tenant),
    }))

/** In rem: below it the table scrolls sideways. */
export const toTableWidth = (ids: readonly string[]): number =>
  listColumns.reduce((sum, { id, width }) => sum + (ids.includes(id) ? width : 0), 0)
