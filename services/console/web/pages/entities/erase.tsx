/** The button that erases a device or a user from every store. */
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { useMay } from '../../shell/operator.ts'
import { EraseDialog } from '../erasure/erase-dialog.tsx'
import type { Subject } from '../erasure/erasures.ts'

/** The button; nothing for those who may not erase. */
export function Erase({ tenant, subject }: { tenant: string; subject: Subject }) {
  const [open, setOpen] = useState(false)
  if (!useMay('admin')) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>Erase this {subject.kind}</Button>
      {open && <EraseDialog onClose={() => setOpen(false)} subject={subject} tenant={tenant} />}
    </>
  )
}
