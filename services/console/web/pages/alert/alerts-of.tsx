/** A device, user or session by its id, which leads to all of its alerts. */
import { Link } from '@tanstack/react-router'
import { cutMiddle } from '../../components/id.tsx'

const idMax = 32

export function AlertsOf({
  tenant,
  by,
  id,
}: {
  tenant: string
  by: 'device_id' | 'user_id' | 'session_id'
  id: string
}) {
  return (
    <Link
      className="break-all"
      title={`All alerts of ${id}`}
      search={{ [by]: id } as never}
      to={`/t/${tenant}/alerts` as '/'}
    >
      {cutMiddle(id, idMax)}
    </Link>
  )
}
