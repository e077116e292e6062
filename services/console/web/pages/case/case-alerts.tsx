/** The alerts of a case, each with its own disposition; some of them can be split off. */
import { Link } from '@tanstack/react-router'
import { nameFlags } from '#shared/core/alerts/alert-sentence.ts'
import { ActionBadge, Badge } from '../../components/badge.tsx'
import { IdText } from '../../components/id.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import type { Alert } from '../alert/alert.ts'
import { DispositionBadge } from '../alert/disposition.tsx'

export function CaseAlerts({
  alerts,
  withDevice,
  isNew,
  checked,
  onCheck,
  onEnd,
}: {
  alerts: Alert[]
  /** Whether they are of several devices. */
  withDevice: boolean
  /** Whether an alert came after the case was last looked at. */
  isNew: (alert: Alert) => boolean
  /** Left out, alerts cannot be selected. */
  checked?: ReadonlySet<string> | undefined
  onCheck: (alertId: string) => void
  onEnd: () => void
}) {
  return (
    <Table
      columns={toColumns(isNew, checked, onCheck).filter(({ id }) => withDevice || id !== 'device')}
      heightClass="max-h-80"
      label="Alerts of the case"
      minWidth="44rem"
      onEnd={onEnd}
      rowKey={({ alert_id: id }) => id}
      rows={alerts}
    />
  )
}

function toColumns(
  isNew: (alert: Alert) => boolean,
  checked: ReadonlySet<string> | undefined,
  onCheck: (alertId: string) => void,
): Column<Alert>[] {
  const box: Column<Alert> = {
    id: 'box',
    head: <span className="sr-only">Selected</span>,
    cell: ({ alert_id: id }) => (
      <input
        aria-label={`Select the alert ${id}`}
        checked={checked?.has(id) ?? false}
        className="size-4 align-middle accent-accent"
        onChange={() => onCheck(id)}
        type="checkbox"
      />
    ),
    width: '2.5rem',
  }
  return [
    ...(checked === undefined ? [] : [box]),
    {
      id: 'raised',
      head: 'Raised',
      cell: (alert) => (
        <span className="inline-flex items-center gap-2">
          <Link
            params={{ tenant: alert.tenant_id, alertId: alert.alert_id }}
            title={alert.alert_id}
            to="/t/$tenant/alerts/$alertId"
          >
            <Time at={alert.created_at} />
          </Link>
          {isNew(alert) && <Badge tone="warn">new</Badge>}
        </span>
      ),
      width: '9rem',
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
      width: '4rem',
    },
    {
      id: 'flags',
      head: 'Flags',
      cell: ({ flags }) => <span title={flags.join(', ')}>{nameFlags(flags)}</span>,
    },
    {
      id: 'device',
      head: 'Device',
      cell: ({ tenant_id: tenant, entity: { device } }) => (
        <Link params={{ tenant, deviceId: device.device_id }} to="/t/$tenant/devices/$deviceId">
          <IdText value={device.device_id} />
        </Link>
      ),
      width: '9rem',
    },
    {
      id: 'disposition',
      head: 'Disposition',
      cell: ({ disposition }) => <DispositionBadge disposition={disposition} />,
      width: '8rem',
    },
  ]
}
