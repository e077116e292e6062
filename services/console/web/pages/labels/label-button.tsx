/** The button that labels something. Its dialog is loaded when it is opened. */
import { lazy, Suspense, useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { Button } from '../../components/button.tsx'
import { useMay } from '../../shell/operator.ts'
import type { LabelSubject } from './labels.ts'

const AddLabel = lazy(() => import('./add-label.tsx').then((file) => ({ default: file.AddLabel })))

/** Nothing for those who may not label. */
export function LabelButton({
  tenant,
  subject,
  small = false,
}: {
  tenant: string
  subject: LabelSubject
  /** In a row of a table, where the subject is named for readers of the screen. */
  small?: boolean
}) {
  const [open, setOpen] = useState(false)
  if (!useMay('analyst')) return null
  return (
    <>
      <Button
        aria-label={small ? `Label ${subject.kind} ${toVisible(subject.id)}` : undefined}
        onClick={() => setOpen(true)}
        small={small}
      >
        Label
      </Button>
      {open && (
        <Suspense>
          <AddLabel onClose={() => setOpen(false)} subject={subject} tenant={tenant} />
        </Suspense>
      )}
    </>
  )
}
