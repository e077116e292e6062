/** What happened to an alert since it was raised, in the order of time, and a form for a note. */
import type { FormEvent } from 'react'
import { Button } from '../../components/button.tsx'
import { Textarea } from '../../components/field.tsx'
import { Icon } from '../../components/icons.tsx'
import { Refused } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { useMay } from '../../shell/operator.ts'
import type { AlertRecord } from './alert.ts'
import { DispositionBadge } from './disposition.tsx'
import { useAddNote, useNoteDraft } from './notes.ts'

export function History({ record }: { record: AlertRecord }) {
  const { alert } = record
  const changes = record.history.map((change) => ({ kind: 'change' as const, ...change }))
  const notes = record.notes.map((note) => ({ kind: 'note' as const, ...note }))
  const assignments = record.assignments.map((one) => ({ kind: 'assignment' as const, ...one }))
  const all = [...changes, ...notes, ...assignments].sort((a, b) => (a.at < b.at ? -1 : 1))
  return (
    <>
      <ol className="grid gap-3 px-4 py-3">
        <li className="text-muted">
          Raised <Time at={alert.created_at} />
        </li>
        {all.map((one) => (
          <li className="grid gap-1" key={`${one.kind} ${one.at}`}>
            {one.kind === 'change' ? (
              <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
                <DispositionBadge disposition={one.from} />
                <Icon name="right" size={12} />
                <span className="sr-only">became</span>
                <DispositionBadge disposition={one.to} />
                <By at={one.at} undo={one.undo} who={one.actor} />
              </div>
            ) : one.kind === 'assignment' ? (
              <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
                <span className="min-w-0 break-words">{toAssignmentText(one)}</span>
                <By at={one.at} undo={one.undo} who={one.actor} />
              </div>
            ) : (
              <By at={one.at} who={one.author} />
            )}
            {one.kind !== 'assignment' && one.note && (
              <p className="break-words whitespace-pre-wrap">{one.note}</p>
            )}
          </li>
        ))}
      </ol>
      <NoteForm alertId={alert.alert_id} />
    </>
  )
}

const toAssignmentText = ({ from, to }: { from: string | null; to: string | null }): string =>
  to === null ? `Taken from ${from}` : `Assigned to ${to}`

function By({ who, at, undo = false }: { who: string; at: string; undo?: boolean }) {
  return (
    <span className="text-muted text-sm">
      {undo && 'undone by '}
      {who}, <Time at={at} />
    </span>
  )
}

function NoteForm({ alertId }: { alertId: string }) {
  const [text, setText] = useNoteDraft(alertId)
  const add = useAddNote(alertId)
  if (!useMay('analyst')) return null
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    if (text.trim() !== '' && !add.isPending) add.mutate(text.trim())
  }
  return (
    <form className="grid gap-2 border-line border-t px-4 py-3" onSubmit={submit}>
      <Textarea
        data-note
        label="Note"
        onChange={({ target }) => setText(target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit()
          if (event.key === 'Escape') event.currentTarget.blur()
        }}
        rows={2}
        value={text}
      />
      <Refused error={add.error} />
      <div>
        <Button busy={add.isPending} disabled={text.trim() === ''} type="submit">
          Add the note
        </Button>
      </div>
    </form>
  )
}
