/** A link to the open case of what a page is about. It is loaded after the page. */
import { lazy, Suspense } from 'react'
import type { OpenCaseLink as Link } from '../case/open-case-link.tsx'

const Shown = lazy(() =>
  import('../case/open-case-link.tsx').then((file) => ({ default: file.OpenCaseLink })),
)

export const OpenCaseLink: typeof Link = (props) => (
  <Suspense>
    <Shown {...props} />
  </Suspense>
)
