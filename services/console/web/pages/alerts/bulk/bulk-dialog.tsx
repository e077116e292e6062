/** Asks for the disposition of all alerts that the filter matches, and says exactly how many. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { Dialog, DialogActions } from '../../../components/dialog.tsx'
import { Select, Textarea } from '../../../components/field.tsx'
import { Refused, Skeleton } from '../../../components/states.tsx'
import { type Disposition, dispositions } from '../../alert/alert.ts'
import { dispositionText } from '../../alert/disposition.tsx'
import { toQuery } from '../filters/filter-values.ts'
import { countQuery, useStartBulk } from './bulk-jobs.ts'

export function BulkDialog({
  tenant,
  filters,
  onStarted,
  onClose,
}: {
  tenant: string
  filters: Record<string, string>
  onStarted: (jobId: string) => void
  onClose: () => void
}) {
  // A span begins at the moment when the dialog was opened, for the count and for the change.
  const [filter] = useState(() => toQuery(filters, Date.now()))
  const [to, setTo] = useState<Disposition>('REVIEWED')
  const [note, setNote] = useState('')
  const count = useQuery(countQuery(tenant, filter))
  const start = useStartBulk(tenant)
  const submit = () => {
    if (count.data === undefined) return
    start.mutate(
      { filter, disposition: to, note: note.trim() || null, expected_count: count.data },
      {
        onSuccess: ({ job_id: jobId }) => onStarted(jobId),
        // Other alerts match now: the new number is shown before anything is done.
        onError: () => void count.refetch(),
      },
    )
  }
  return (
    <Dialog
      description="All alerts that the filters match are changed, also those that the list has not loaded. The server does it: this page can be left meanwhile."
      onClose={onClose}
      open
      title="Change all matching alerts"
    >
      <form
        className="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          submit()
        }}
      >
        <Select
          label="New disposition"
          onChange={({ target }) => setTo(target.value as Disposition)}
          value={to}
        >
          {dispositions.map((one) => (
            <option key={one} value={one}>
              {dispositionText(one)}
            </option>
          ))}
        </Select>
        <Textarea
          label="Note"
          hint="Kept in the history of each alert."
          onChange={({ target }) => setNote(target.value)}
          rows={2}
          value={note}
        />
        <div role="status">
          {count.data === undefined && !count.error ? (
            <Skeleton className="w-40" />
          ) : (
            count.data !== undefined && (
              <strong>{count.data.toLocaleString('en')} alerts match now.</strong>
            )
          )}
        </div>
        <Refused error={start.error ?? count.error} />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            busy={start.isPending || count.isFetching}
            disabled={!count.data}
            look="primary"
            type="submit"
          >
            Set {count.data?.toLocaleString('en')} alerts to {dispositionText(to)}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
