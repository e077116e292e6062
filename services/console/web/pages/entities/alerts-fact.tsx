/** How many alerts a device or a user has, with a link to them. */
import { Link } from '@tanstack/react-router'

export function AlertsFact({
  tenant,
  total,
  filter,
}: {
  tenant: string
  total: number
  filter: { device_id: string } | { user_id: string }
}) {
  if (total === 0) return <span className="text-muted">none</span>
  return (
    <Link params={{ tenant }} search={filter} to="/t/$tenant/alerts">
      {total.toLocaleString('en')}
    </Link>
  )
}
