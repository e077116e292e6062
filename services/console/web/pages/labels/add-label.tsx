/** Says what a device, a user, a session or an event turned out to be. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { ApiProblem } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input, Select, Textarea } from '../../components/field.tsx'
import { Refused } from '../../components/states.tsx'
import { MomentInput } from '../../components/time/moment-input.tsx'
import { toast } from '../../components/toast.tsx'
import { timelineKey } from '../entities/timeline/key.ts'
import {
  addLabel,
  codesQuery,
  type LabelSubject,
  labelsKey,
  toLabelName,
  toLabelOptions,
} from './labels.ts'

const covers: Record<LabelSubject['kind'], string> = {
  event: 'The label is of the session of this event.',
  session: 'The label is of this session.',
  device: 'The label is of its sessions in the 30 days before it happened.',
  user: 'The label is of their sessions in the 30 days before it happened.',
}

const empty = { label: 'fraud', occurred: '', amount: '', currency: '', external: '', note: '' }

export function AddLabel({
  tenant,
  subject,
  onClose,
}: {
  tenant: string
  subject: LabelSubject
  onClose: () => void
}) {
  const client = useQueryClient()
  const options = toLabelOptions(useQuery(codesQuery(tenant)).data?.data)
  const [draft, setDraft] = useState(empty)
  const set = (name: keyof typeof empty) => (value: string) =>
    setDraft((before) => ({ ...before, [name]: value }))
  const add = useMutation({
    mutationFn: () => {
      const { label, occurred, amount, currency, external, note } = draft
      const given = (name: string, text: string) => (text === '' ? {} : { [name]: text })
      return addLabel(tenant, subject, {
        label,
        // The field is in the person's own time.
        ...given('occurred_at', occurred === '' ? '' : new Date(occurred).toISOString()),
        ...given('amount', amount.trim()),
        ...given('currency', currency.trim().toUpperCase()),
        ...given('external_id', external.trim()),
        ...given('note', note.trim()),
      })
    },
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: labelsKey(tenant) })
      void client.invalidateQueries({ queryKey: timelineKey(tenant) })
      toast(`The ${subject.kind} is labelled: ${toLabelName(draft.label)}.`)
      onClose()
    },
  })
  const problem = add.error instanceof ApiProblem ? add.error : null
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  return (
    <Dialog
      description={covers[subject.kind]}
      locked={add.isPending}
      onClose={onClose}
      open
      title={`Label this ${subject.kind}`}
    >
      <form className="grid gap-4" onSubmit={submit}>
        <p className="break-all font-mono text-sm">{toVisible(subject.id)}</p>
        <Select
          error={problem?.of('label')}
          label="Turned out to be"
          onChange={({ target }) => set('label')(target.value)}
          value={draft.label}
        >
          {options.map((code) => (
            <option key={code} value={code}>
              {toLabelName(code)}
            </option>
          ))}
        </Select>
        <MomentInput
          error={problem?.of('occurred_at')}
          hint="Leave it empty for now."
          label="Happened"
          onChange={set('occurred')}
          value={draft.occurred}
        />
        <div className="grid grid-cols-2 gap-3">
          <Input
            autoComplete="off"
            error={problem?.of('amount')}
            hint="What was lost, such as 129.90."
            inputMode="decimal"
            label="Amount"
            onChange={({ target }) => set('amount')(target.value)}
            value={draft.amount}
          />
          <Input
            autoComplete="off"
            error={problem?.of('currency')}
            hint="Such as EUR."
            label="Currency"
            maxLength={3}
            onChange={({ target }) => set('currency')(target.value)}
            value={draft.currency}
          />
        </div>
        <Input
          autoComplete="off"
          error={problem?.of('external_id')}
          hint="A later label with the same id replaces this one."
          label="Case"
          mono
          onChange={({ target }) => set('external')(target.value)}
          spellCheck={false}
          value={draft.external}
        />
        <Textarea
          error={problem?.of('note')}
          label="Note"
          maxLength={500}
          onChange={({ target }) => set('note')(target.value)}
          rows={2}
          value={draft.note}
        />
        {(problem === null || problem.errors.length === 0) && <Refused error={add.error} />}
        <DialogActions>
          <Button disabled={add.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button busy={add.isPending} look="primary" type="submit">
            Label
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
