/** The latest alerts of a device, a user or a phone, with a link to all of them. */
import { Link } from '@tanstack/react-router'
import type { AnswerOf } from '../../api/client.ts'
import { ActionBadge, SeverityBadge } from '../../components/badge.tsx'
import { Panel } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { DispositionBadge } from '../alert/disposition.tsx'

type Alerts = AnswerOf<'/admin/v1/tenants/{tenant_id}/devices/{device_id}', 'get'>['alerts']
type Alert = Alerts['data'][number]

const columns: Column<Alert>[] = [
  {
    id: 'severity',
    head: 'Severity',
    cell: ({ decision }) => <SeverityBadge severity={decision.severity} />,
    width: '7rem',
  },
  {
    id: 'action',
    head: 'Action',
    cell: ({ decision }) => <ActionBadge action={decision.action} />,
    width: '6.5rem',
  },
  {
    id: 'score',
    head: 'Risk',
    numeric: true,
    cell: ({ decision }) => decision.risk_score,
    width: '5rem',
  },
  {
    id: 'flags',
    head: 'Flags',
    cell: ({ alert_id: id, tenant_id: tenant, flags }) => (
      <Link params={{ tenant, alertId: id }} to="/t/$tenant/alerts/$alertId">
        {flags.join(', ') || id}
      </Link>
    ),
  },
  {
    id: 'disposition',
    head: 'Disposition',
    cell: ({ disposition }) => <DispositionBadge disposition={disposition} />,
    width: '8rem',
  },
  {
    id: 'raised',
    head: 'Raised',
    cell: ({ created_at: at }) => <Time at={at} />,
    width: '8rem',
  },
]

export function LatestAlerts({
  tenant,
  alerts: { total, data },
  filter,
}: {
  tenant: string
  alerts: Alerts
  /** Of all of them; a phone has none, since alerts are found by install. */
  filter?: { device_id: string } | { user_id: string }
}) {
  return (
    <Panel
      action={
        filter === undefined
          ? total > data.length && (
              <span className="text-muted">
                the latest {data.length} of {total.toLocaleString('en')}
              </span>
            )
          : total > 0 && (
              <Link search={filter} params={{ tenant }} to="/t/$tenant/alerts">
                All {total.toLocaleString('en')}
              </Link>
            )
      }
      title="Alerts"
    >
      {data.length === 0 ? (
        <Empty title="No alerts" />
      ) : (
        <Table
          columns={columns}
          heightClass="max-h-96"
          label="Alerts"
          minWidth="52rem"
          rowKey={({ alert_id: id }) => id}
          rows={data}
        />
      )}
    </Panel>
  )
}
