/** What an alert is about, each with a link to it, and who works on it. */
import { Link } from '@tanstack/react-router'
import { Button } from '../../components/button.tsx'
import { cutMiddle, Id } from '../../components/id.tsx'
import { Facts } from '../../components/page.tsx'
import { useMay, useSignedIn } from '../../shell/operator.ts'
import { deviceAddress, userAddress } from '../entities/addresses.ts'
import type { Alert } from './alert.ts'
import { useChangeAlerts } from './changes.ts'
import { SessionLink } from './session-link.tsx'

export function AlertFacts({ alert }: { alert: Alert }) {
  const { alert_id: id, tenant_id: tenant, event_id: eventId, entity } = alert
  const device = entity.device.device_id
  const user = entity.user?.user_id
  return (
    <Facts
      facts={[
        ['Alert', <Id key="id" value={id} />],
        ['Assignee', <Assignee alert={alert} key="assignee" />],
        [
          'Device',
          <Link className="break-all" key="d" to={deviceAddress(tenant, device) as '/'}>
            {device}
          </Link>,
        ],
        [
          'User',
          user === undefined ? (
            'none'
          ) : (
            <Link className="break-all" key="u" to={userAddress(tenant, user) as '/'}>
              {user}
            </Link>
          ),
        ],
        ['Session', <SessionLink id={entity.session.session_id} key="s" tenant={tenant} />],
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
