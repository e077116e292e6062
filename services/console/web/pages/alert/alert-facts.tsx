/** What an alert is about, each with a link to it, and who works on it. */

import { Link } from '@tanstack/react-router'
import { Fragment, type ReactNode } from 'react'
import { type AlertField, alertFieldNames, alertFields } from '#shared/core/alerts/alert.ts'
import { Button } from '../../components/button.tsx'
import { cutMiddle, Id, IdText } from '../../components/id.tsx'
import { Facts } from '../../components/page.tsx'
import { Time } from '../../components/time/time.tsx'
import { toWords } from '../../components/words.ts'
import { useMay, useSignedIn } from '../../shell/operator.ts'
import { ConnectionFact } from '../entities/connection.tsx'
import type { Alert } from './alert.ts'
import { useChangeAlerts } from './changes.ts'
import { SessionLink } from './session-link.tsx'

/** Fields that the page shows elsewhere: above the facts, as the reasons, or in one line. */
const elsewhere: AlertField[] = [
  'created_at',
  'action',
  'severity',
  'risk_score',
  'rasp_score',
  'disposition',
  'flags',
  'country',
  'asn',
  'organization',
  'network',
  'network_kinds',
]

export function AlertFacts({ alert }: { alert: Alert }) {
  const { tenant_id: tenant, event_id: eventId, entity } = alert
  const device = entity.device.device_id
  const user = entity.user?.user_id
  const cells: Partial<Record<AlertField, ReactNode>> = {
    alert_id: <Id value={alert.alert_id} />,
    assignee: <Assignee alert={alert} />,
    updated_at: <Time at={alert.updated_at} exact />,
    device_id: (
      <Link
        className="break-all"
        params={{ tenant, deviceId: device }}
        to="/t/$tenant/devices/$deviceId"
      >
        <IdText value={device} />
      </Link>
    ),
    user_id: user && (
      <Link className="break-all" params={{ tenant, userId: user }} to="/t/$tenant/users/$userId">
        <IdText value={user} />
      </Link>
    ),
    phone_id: entity.phone && (
      <Link
        className="break-all font-mono text-sm"
        params={{ tenant, phoneId: entity.phone.phone_id }}
        title={`Confidence ${entity.phone.confidence}`}
        to="/t/$tenant/phones/$phoneId"
      >
        <IdText value={entity.phone.phone_id} />
      </Link>
    ),
    session_id: <SessionLink id={entity.session.session_id} tenant={tenant} />,
    event_id: (
      <Link
        className="font-mono text-sm"
        params={{ tenant, eventId }}
        to="/t/$tenant/events/$eventId"
      >
        <IdText most={20} value={eventId} />
      </Link>
    ),
  }
  const shown = alertFieldNames.filter((name) => !elsewhere.includes(name))
  return (
    <Facts
      facts={[
        ...(alert.case_id === null ? [] : [toCaseFact(tenant, alert.case_id)]),
        ...shown.map((name): [string, ReactNode] => [
          toWords(name),
          <Fragment key={name}>{cells[name] ?? toFact(alert, name)}</Fragment>,
        ]),
        [
          'Connection',
          <ConnectionFact connection={alert.connection} key="connection" tenant={tenant} />,
        ],
      ]}
    />
  )
}

/** What a client says of itself is shown as the ids are. */
function toFact(alert: Alert, name: AlertField): ReactNode {
  const text = String(alertFields[name](alert))
  return text === '' ? 'none' : <IdText value={text} />
}

const toCaseFact = (tenant: string, caseId: string): [string, ReactNode] => [
  'Case',
  <Link
    className="font-mono text-sm"
    key="case"
    params={{ tenant }}
    search={{ case: caseId }}
    title={caseId}
    to="/t/$tenant/cases"
  >
    {cutMiddle(caseId)}
  </Link>,
]

function Assignee({ alert }: { alert: Alert }) {
  const { operator } = useSignedIn()
  const mayAssign = useMay('analyst')
  const { assign } = useChangeAlerts()
  const { assignee } = alert
  return (
    <span className="flex flex-wrap items-center gap-2">
      {assignee === null ? (
        <span className="text-muted">unassigned</span>
      ) : (
        <span className="min-w-0 break-all">{assignee}</span>
      )}
      {mayAssign && assignee !== operator.email && (
        <Button onClick={() => assign([alert], operator.email)} small>
          Assign to me
        </Button>
      )}
      {mayAssign && assignee !== null && (
        <Button look="quiet" onClick={() => assign([alert], null)} small>
          Unassign
        </Button>
      )}
    </span>
  )
}
