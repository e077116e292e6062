/** Alerts: the list at the left, the alert that is open at the right, worked by keyboard. */
import { useParams } from '@tanstack/react-router'
import { Workbench } from './workbench.tsx'

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  // Another tenant's list has nothing of this one's: selection, place or views.
  return <Workbench key={tenant} tenant={tenant} />
}
