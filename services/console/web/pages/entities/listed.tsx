/** The entries of a device or a user on the allow and deny lists, and a button that adds one. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Panel } from '../../components/page.tsx'
import { useMay } from '../../shell/operator.ts'
import { AddEntry } from '../lists/add-entry.tsx'
import { EntryTable } from '../lists/entry-table.tsx'
import { listsKey, loadEntries, type Listed as Subject } from '../lists/lists.ts'

/** The button; nothing for those who may not change the lists. */
export function PutOnList({ tenant, listed }: { tenant: string; listed: Subject }) {
  const [open, setOpen] = useState(false)
  if (!useMay('analyst')) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>Allow or deny</Button>
      {open && <AddEntry listed={listed} onClose={() => setOpen(false)} tenant={tenant} />}
    </>
  )
}

/** The panel; nothing while there is no entry. */
export function Listed({ tenant, listed: { kind, id } }: { tenant: string; listed: Subject }) {
  const entries = useQuery({
    queryKey: [...listsKey(tenant), { kind, id }],
    queryFn: () => loadEntries(tenant, { kind, id }),
  })
  const rows = entries.data?.data ?? []
  if (rows.length === 0) return null
  return (
    <Panel title="On the lists">
      <EntryTable rows={rows} tenant={tenant} withId={false} />
    </Panel>
  )
}
