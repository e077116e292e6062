/** How many alerts a device or a user has and what people said of them, with a link to them. */
import { Link } from '@tanstack/react-router'
import { totalOf, toVerdictText, type Verdicts } from './verdicts.ts'

export function AlertsFact({
  tenant,
  verdicts,
  filter,
}: {
  tenant: string
  verdicts: Verdicts
  filter: { device_id: string } | { user_id: string }
}) {
  if (totalOf(verdicts) === 0) return <span className="text-muted">none</span>
  return (
    <Link params={{ tenant }} search={filter} to="/t/$tenant/alerts">
      {toVerdictText(verdicts)}
    </Link>
  )
}
