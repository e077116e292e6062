/** The timeline, loaded beside the page that has it: the page itself is shown first. */
import { lazy, Suspense } from 'react'
import { Skeleton } from '../../../components/states.tsx'
import type { TimelineSubject } from './timeline.tsx'

const Timeline = lazy(() => import('./timeline.tsx').then((file) => ({ default: file.Timeline })))

export function TimelinePanel(props: { tenant: string; subject: TimelineSubject }) {
  return (
    <Suspense fallback={<Skeleton className="h-96" />}>
      <Timeline {...props} />
    </Suspense>
  )
}
