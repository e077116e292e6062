/** Asks what many alerts should become, and says exactly how many they are. */

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Disposition, dispositions } from '#shared/core/alerts/dispositions.ts'
import { ApiProblem } from '../../../api/client.ts'
import { Button } from '../../../components/button.tsx'
import { Dialog } from '../../../components/dialog.tsx'
import { Select, Textarea } from '../../../components/field.tsx'
import { Refused, Skeleton } from '../../../components/states.tsx'
import { useSignedIn } from '../../../shell/operator.ts'
import { AssigneeSelect } from '../../alert/assignee-select.tsx'
import { dispositionText } from '../../alert/disposition.tsx'
import { Propose } from '../../proposals/propose.tsx'
import {
  type BulkChange,
  type BulkTarget,
  countQuery,
  toBulkBody,
  useStartBulk,
} from './bulk-jobs.ts'

export type BulkSets = BulkChange['sets']

export function BulkDialog({
  tenant,
  sets,
  target,
  onStarted,
  onClose,
}: {
  tenant: string
  sets: BulkSets
  target: BulkTarget
  onStarted: (jobId: string) => void
  onClose: () => void
}) {
  const { operator } = useSignedIn()
  const [change, setChange] = useState<BulkChange>(
    sets === 'disposition'
      ? { sets, disposition: 'REVIEWED', note: null }
      : { sets, assignee: operator.email },
  )
  const count = useQuery(countQuery(tenant, target))
  const start = useStartBulk(tenant)
  const submit = () => {
    if (count.data === undefined) return
    start.mutate(
      { target, change: tidy(change), count: count.data },
      {
        onSuccess: ({ job_id: jobId }) => onStarted(jobId),
        // Other alerts match now: the new number is shown before anything is done.
        onError: () => void count.refetch(),
      },
    )
  }
  const isSelection = 'alert_ids' in target
  const problem = start.error instanceof ApiProblem ? start.error : null
  const beside = problem?.of('assignee')
  const which = isSelection ? 'selected' : 'matching'
  return (
    <Dialog
      description={
        isSelection
          ? 'The server does it: this page can be left meanwhile.'
          : 'All alerts that the filters match are changed, also those that the list has not loaded. The server does it: this page can be left meanwhile.'
      }
      onClose={onClose}
      open
      title={sets === 'disposition' ? `Change all ${which} alerts` : `Assign all ${which} alerts`}
    >
      <form
        className="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          submit()
        }}
      >
        {change.sets === 'disposition' ? (
          <DispositionFields change={change} onChange={setChange} />
        ) : (
          <AssigneeSelect
            error={beside}
            onChange={(assignee) => setChange({ sets: 'assignee', assignee })}
            tenant={tenant}
            value={change.assignee}
            withNone
          />
        )}
        <div role="status">
          {count.data === undefined && !count.error ? (
            <Skeleton className="w-40" />
          ) : (
            count.data !== undefined && (
              <strong>
                {count.data.toLocaleString('en')} {count.data === 1 ? 'alert' : 'alerts'}{' '}
                {isSelection ? 'selected.' : `${count.data === 1 ? 'matches' : 'match'} now.`}
              </strong>
            )
          )}
        </div>
        <Refused error={count.error} />
        <Propose
          body={{ kind: 'bulk', change: toBulkBody(target, tidy(change), count.data ?? 0) }}
          disabled={!count.data}
          error={beside === undefined ? start.error : null}
          onCancel={onClose}
          pending={start.isPending}
          tenant={tenant}
        >
          <Button
            busy={start.isPending || count.isFetching}
            disabled={!count.data}
            look="primary"
            type="submit"
          >
            {toAction(change, count.data)}
          </Button>
        </Propose>
      </form>
    </Dialog>
  )
}

const tidy = (change: BulkChange): BulkChange =>
  change.sets === 'disposition' ? { ...change, note: change.note?.trim() || null } : change

function toAction(change: BulkChange, count: number | undefined): string {
  const alerts = `${count?.toLocaleString('en') ?? ''} ${count === 1 ? 'alert' : 'alerts'}`
  if (change.sets === 'disposition') {
    return `Set ${alerts} to ${dispositionText(change.disposition)}`
  }
  return change.assignee === null ? `Unassign ${alerts}` : `Assign ${alerts}`
}

function DispositionFields({
  change,
  onChange,
}: {
  change: Extract<BulkChange, { sets: 'disposition' }>
  onChange: (change: BulkChange) => void
}) {
  return (
    <>
      <Select
        label="New disposition"
        onChange={({ target }) => onChange({ ...change, disposition: target.value as Disposition })}
        value={change.disposition}
      >
        {dispositions.map((one) => (
          <option key={one} value={one}>
            {dispositionText(one)}
          </option>
        ))}
      </Select>
      <Textarea
        hint="Kept in the history of each alert."
        label="Note"
        onChange={({ target }) => onChange({ ...change, note: target.value || null })}
        rows={2}
        value={change.note ?? ''}
      />
    </>
  )
}
