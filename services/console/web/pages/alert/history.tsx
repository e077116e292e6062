/** What happened to an alert since it was raised, in the order of time, and a form for a note. */
import { api, ok } from '../../api/client.ts'
import { Icon } from '../../components/icons.tsx'
import { Time } from '../../components/time/time.tsx'
import type { AlertRecord } from './alert.ts'
import { DispositionBadge } from './disposition.tsx'
import { NoteForm } from './note-form.tsx'
import type { Noted } from './notes.ts'

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
      <NoteForm of={toNoted(alert.alert_id)} />
    </>
  )
}

const toAssignmentText = ({ from, to }: { from: string | null; to: string | null }): string =>
  to === null ? `Taken from ${from}` : `Assigned to ${to}`

/** Who did something, and when. */
export function By({ who, at, undo = false }: { who: string; at: string; undo?: boolean }) {
  return (
    <span className="text-muted text-sm">
      {undo && 'undone by '}
      {who}, <Time at={at} />
    </span>
  )
}

const toNoted = (alertId: string): Noted => ({
  id: alertId,
  queryKey: ['alert', alertId],
  send: (note) =>
    ok(
      api.POST('/admin/v1/alerts/{alert_id}/notes', {
        params: { path: { alert_id: alertId } },
        body: { note },
      }),
    ),
})
