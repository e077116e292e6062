/** What an alert is about, each with a link to it, and who works on it. */
import { Link } from '@tanstack/react-router'
import { Button } from '../../components/button.tsx'
import { cutMiddle, Id } from '../../components/id.tsx'
import { Facts } from '../../components/page.tsx'
import { useMay, useSignedIn } from '../../shell/operator.ts'
import type { Alert } from './alert.ts'
import { AlertsOf } from './alerts-of.tsx'
import { useAssign } from './work.ts'

export function AlertFacts({ alert }: { alert: Alert }) {
  const { alert_id: id, tenant_id: tenant, event_id: eventId, entity } = alert
  const user = entity.user?.user_id
  return (
    <Facts
      facts={[
        ['Alert', <Id key="id" value={id} />],
        ['Assignee', <Assignee alert={alert} key="assignee" />],
        [
          'Device',
          <AlertsOf by="device_id" id={entity.device.device_id} key="d" tenant={tenant} />,
        ],
        [
          'User',
          user === undefined ? 'none' : <AlertsOf by="user_id" id={user} key="u" tenant={tenant} />,
        ],
        [
          'Session',
          <AlertsOf by="session_id" id={entity.session.session_id} key="s" tenant={tenant} />,
        ],
        [
          'Event',
          <Link
            className="font-mono text-sm"
            key="event"
            title={eventId}
            to={`/t/${tenant}/events/${eventId}` as '/'}
          >
            {cutMiddle(eventId)}
          </Link>,
        ],
      ]}
    />
  )
}

function Assignee({ alert }: { alert: Alert }) {
  const { operator } = useSignedIn()
  const mayAssign = useMay('analyst')
  const assign = useAssign()
  const { assignee } = alert
  return (
    <span className="flex flex-wrap items-center gap-2">
      {assignee === null ? (
        <span className="text-muted">nobody</span>
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
