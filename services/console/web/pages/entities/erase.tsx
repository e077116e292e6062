/** The button that erases a device or a user from every store. */
import { lazy, Suspense, useState } from 'react'
import { Button } from '../../components/button.tsx'
import { useMay } from '../../shell/operator.ts'
import type { Subject } from '../erasure/erasures.ts'

const EraseDialog = lazy(() =>
  import('../erasure/erase-dialog.tsx').then((file) => ({ default: file.EraseDialog })),
)

/** The button; nothing for those who may not erase. */
export function Erase({ tenant, subject }: { tenant: string; subject: Subject }) {
  const [open, setOpen] = useState(false)
  if (!useMay('admin')) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>Erase this {subject.kind}</Button>
      {open && (
        <Suspense>
          <EraseDialog onClose={() => setOpen(false)} subject={subject} tenant={tenant} />
        </Suspense>
      )}
    </>
  )
}
