/** A session by its id, which leads to its alerts. */
import { Link } from '@tanstack/react-router'
import { cutMiddle } from '../../components/id.tsx'

const idMax = 32

export function SessionLink({ tenant, id }: { tenant: string; id: string }) {
  return (
    <Link
      className="break-all"
      search={{ session_id: id }}
      title={`Alerts of ${id}`}
      params={{ tenant }}
      to="/t/$tenant/alerts"
    >
      {cutMiddle(id, idMax)}
    </Link>
  )
}
