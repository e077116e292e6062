/** The sessions of a device or a user: their scores over time, and each of them in a table. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { api, ok } from '../../api/client.ts'
import { ActionBadge } from '../../components/badge.tsx'
import { Chart } from '../../components/chart/chart.tsx'
import type { Mark } from '../../components/chart/series.ts'
import { Id, IdText } from '../../components/id.tsx'
import { Panel } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { useMay } from '../../shell/operator.ts'
import { LabelButton } from '../labels/label-button.tsx'

export type Session = {
  session_id: string
  /** Of a user's sessions, which are on several devices. */
  device_id?: string
  /** Of a device's sessions: the first of those that it named, of how many. */
  users?: string[]
  users_total?: number
  action: string
  started_at: string
  last_seen_at: string
  risk_score: number
  rasp_score: number
  risk_flags: string[]
}

/** What the two scores are. */
export const scoreTexts = {
  risk: 'Decides: signals, velocity, lists and what the service saw',
  device: 'Of the signals alone, as the device was answered',
}

const deviceColumn = (tenant: string): Column<Session> => ({
  id: 'device',
  head: 'Device',
  cell: ({ device_id: id = '' }) => (
    <Link
      className="block truncate"
      params={{ tenant, deviceId: id }}
      to="/t/$tenant/devices/$deviceId"
    >
      <IdText value={id} />
    </Link>
  ),
})

const usersColumn = (tenant: string): Column<Session> => ({
  id: 'users',
  head: 'Users',
  cell: ({ users = [], users_total: total = 0 }) =>
    users.length === 0 ? (
      <span className="text-muted">none named</span>
    ) : (
      <>
        {users.map((userId, at) => (
          <span key={userId}>
            {at > 0 && ', '}
            <Link params={{ tenant, userId }} to="/t/$tenant/users/$userId">
              <IdText value={userId} />
            </Link>
          </span>
        ))}
        {total > users.length && ` and ${(total - users.length).toLocaleString('en')} more`}
      </>
    ),
  width: '9rem',
})

const labelColumn = (tenant: string): Column<Session> => ({
  id: 'label',
  head: <span className="sr-only">Label</span>,
  cell: ({ session_id: id }) => (
    <LabelButton small subject={{ kind: 'session', id }} tenant={tenant} />
  ),
  width: '5.5rem',
})

type Thresholds = { review: number; block: number }

/** The thresholds of the policy in force; none while they are not known. */
function useThresholds(tenant: string): Mark[] | undefined {
  const { data } = useQuery({
    queryKey: ['policy', tenant],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/policy', {
          params: { path: { tenant_id: tenant } },
        }),
      ),
  })
  return useMemo(() => {
    if (data === undefined) return undefined
    const { review, block } = (data.document as { thresholds: Thresholds }).thresholds
    return [
      { label: 'REVIEW from', at: review, color: 'warn' },
      { label: 'BLOCK from', at: block, color: 'bad' },
    ]
  }, [data])
}

export function Sessions({
  tenant,
  sessions,
  total,
}: {
  tenant: string
  /** Most recent first. */
  sessions: Session[]
  /** How many there are where it is known. */
  total?: number
}) {
  const { times, series } = useMemo(() => {
    const ordered = sessions.toSorted((a, b) => (a.started_at < b.started_at ? -1 : 1))
    return {
      times: ordered.map((session) => Date.parse(session.started_at)),
      series: [
        {
          label: 'Risk score',
          values: ordered.map((session) => session.risk_score),
          look: 'points' as const,
        },
      ],
    }
  }, [sessions])
  const mayLabel = useMay('analyst')
  const marks = useThresholds(tenant)
  const columns: Column<Session>[] = [
    { id: 'session', head: 'Session', cell: ({ session_id: id }) => <Id value={id} /> },
    ...(sessions.some((one) => one.device_id !== undefined) ? [deviceColumn(tenant)] : []),
    {
      id: 'action',
      head: 'Action',
      cell: ({ action }) => <ActionBadge action={action} />,
      width: '7rem',
    },
    {
      id: 'risk',
      head: <span title={scoreTexts.risk}>Risk</span>,
      numeric: true,
      cell: (one) => one.risk_score,
      width: '4rem',
    },
    {
      id: 'score',
      head: <span title={scoreTexts.device}>Device score</span>,
      numeric: true,
      cell: (one) => one.rasp_score,
      width: '6.5rem',
    },
    {
      id: 'flags',
      head: 'Flags',
      cell: ({ session_id: id, risk_flags: flags }) =>
        flags.length === 0 ? (
          <span className="text-muted">none</span>
        ) : (
          <Link search={{ session_id: id }} params={{ tenant }} to="/t/$tenant/alerts">
            {flags.join(', ')}
          </Link>
        ),
      width: '22%',
    },
    ...(sessions.some((one) => one.users !== undefined) ? [usersColumn(tenant)] : []),
    { id: 'start', head: 'Began', cell: (one) => <Time at={one.started_at} />, width: '7rem' },
    { id: 'last', head: 'Last seen', cell: (one) => <Time at={one.last_seen_at} />, width: '7rem' },
    ...(mayLabel ? [labelColumn(tenant)] : []),
  ]
  return (
    <>
      {sessions.length > 1 && (
        <Panel>
          <div className="px-4 py-3">
            <Chart
              marks={marks}
              max={100}
              series={series}
              times={times}
              title="Risk score of each session"
            />
          </div>
        </Panel>
      )}
      <Panel
        action={
          total !== undefined &&
          sessions.length < total && (
            <span className="text-muted">
              the latest {sessions.length.toLocaleString('en')} of {total.toLocaleString('en')}
            </span>
          )
        }
        title="Sessions"
      >
        <Table
          columns={columns}
          heightClass="max-h-96"
          label="Sessions"
          minWidth="68rem"
          rowKey={({ device_id: device = '', session_id: id }) => `${device} ${id}`}
          rows={sessions}
        />
      </Panel>
    </>
  )
}
