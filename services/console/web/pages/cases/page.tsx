/** Cases: the queue at the left, the case that is open at the right, worked by keyboard. */
import { useParams } from '@tanstack/react-router'
import { Workbench } from './workbench.tsx'

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  // Another tenant's queue has nothing of this one's: place, views or what was judged last.
  return <Workbench key={tenant} tenant={tenant} />
}
