/** The dialog of bulk changes, whose code is loaded when it is asked for. */
import { type ComponentProps, lazy, Suspense } from 'react'
import type { BulkDialog as Loaded } from './bulk-dialog.tsx'

const Dialog = lazy(() =>
  import('./bulk-dialog.tsx').then((file) => ({ default: file.BulkDialog })),
)

export const BulkDialog = (props: ComponentProps<typeof Loaded>) => (
  <Suspense>
    <Dialog {...props} />
  </Suspense>
)
