/** A session by its id, which leads to its alerts. */
import { Link } from '@tanstack/react-router'
import { IdText } from '../../components/id.tsx'

const idMax = 32

export function SessionLink({ tenant, id }: { tenant: string; id: string }) {
  return (
    <Link
      className="break-all"
      search={{ session_id: id }}
      params={{ tenant }}
      to="/t/$tenant/alerts"
    >
      <IdText most={idMax} value={id} />
    </Link>
  )
}
