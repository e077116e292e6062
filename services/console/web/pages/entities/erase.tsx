/** Erases a device or a user from every store, after its id was typed, and shows the receipt. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input } from '../../components/field.tsx'
import { Refused } from '../../components/states.tsx'
import { useMay } from '../../shell/operator.ts'

type Subject = { kind: 'device' | 'user'; id: string }
type Receipt = AnswerOf<'/admin/v1/tenants/{tenant_id}/erasures', 'post'>

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

function EraseDialog({
  tenant,
  subject: { kind, id },
  onClose,
}: {
  tenant: string
  subject: Subject
  onClose: () => void
}) {
  const [typed, setTyped] = useState('')
  const client = useQueryClient()
  const erase = useMutation({
    mutationFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/erasures', {
          params: { path: { tenant_id: tenant } },
          body: kind === 'device' ? { device_id: id } : { user_id: id },
        }),
      ),
    onSuccess: () => client.invalidateQueries(),
  })
  if (erase.data !== undefined) {
    return (
      <Dialog onClose={onClose} open title={`The ${kind} is erased`}>
        <Counts receipt={erase.data} />
        <DialogActions>
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </DialogActions>
      </Dialog>
    )
  }
  return (
    <Dialog
      description={`Everything that was accepted of this ${kind} before now is removed from every store: events, sessions, alerts and deliveries. This cannot be undone.`}
      locked={erase.isPending}
      onClose={onClose}
      open
      title={`Erase this ${kind}`}
    >
      <form
        className="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          if (typed === id) erase.mutate()
        }}
      >
        <Input
          autoComplete="off"
          autoFocus
          label={`Type ${id} to confirm`}
          mono
          onChange={({ target }) => setTyped(target.value)}
          spellCheck={false}
          value={typed}
        />
        <Refused error={erase.error} />
        <DialogActions>
          <Button disabled={erase.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button busy={erase.isPending} disabled={typed !== id} look="danger" type="submit">
            Erase
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

/** What was in each store before and after. */
function Counts({ receipt: { counts, kept_mentions: kept, notes } }: { receipt: Receipt }) {
  const stores = Object.entries(counts).filter(([, { before }]) => before > 0)
  return (
    <>
      <table>
        <thead className="text-left text-muted">
          <tr>
            <th className="font-medium" scope="col">
              Store
            </th>
            <th className="text-right font-medium" scope="col">
              Before
            </th>
            <th className="text-right font-medium" scope="col">
              After
            </th>
          </tr>
        </thead>
        <tbody>
          {stores.map(([store, { before, after }]) => (
            <tr key={store}>
              <td className="py-0.5">{store}</td>
              <td className="text-right">{before}</td>
              <td className="text-right">{after}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {kept.events !== null && kept.events > 0 && (
        <p>{kept.events} events of others mention the id in a free field and stay.</p>
      )}
      {notes.map((note) => (
        <p className="text-muted" key={note}>
          {note}
        </p>
      ))}
    </>
  )
}
