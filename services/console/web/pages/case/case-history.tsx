/** What happened to a case: who judged, snoozed, assigned, merged and split it, and its notes. */

import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { api, ok } from '../../api/client.ts'
import { Id } from '../../components/id.tsx'
import { Time } from '../../components/time/time.tsx'
import { counted } from '../../components/words.ts'
import { dispositionText } from '../alert/disposition.tsx'
import { By } from '../alert/history.tsx'
import { NoteForm } from '../alert/note-form.tsx'
import type { Noted } from '../alert/notes.ts'
import { toLabelName } from '../labels/labels.ts'
import type { CaseRecord } from './case.ts'

type Event = CaseRecord['history'][number]

export function CaseHistory({ record }: { record: CaseRecord }) {
  const { case: shown, notes, history } = record
  const all = [
    ...history.map((event, index) => ({
      key: `event ${index}`,
      at: event.at,
      who: event.actor,
      text: <EventText event={event} tenant={shown.tenant_id} />,
      note: textOf(event.details.note),
    })),
    ...notes.map((note) => ({
      key: `note ${note.note_id}`,
      at: note.at,
      who: note.author,
      text: null,
      note: note.note,
    })),
  ].sort((a, b) => (a.at < b.at ? -1 : 1))
  return (
    <>
      <ol className="grid gap-3 px-4 py-3">
        <li className="text-muted">
          Case <Id value={shown.case_id} />, first alert <Time at={shown.first_alert_at} />
        </li>
        {all.map(({ key, at, who, text, note }) => (
          <li className="grid gap-1" key={key}>
            <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
              {text}
              <By at={at} who={who} />
            </div>
            {note !== null && <p className="break-words whitespace-pre-wrap">{note}</p>}
          </li>
        ))}
      </ol>
      <NoteForm of={toNoted(shown.case_id)} />
    </>
  )
}

const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null
const countOf = (value: unknown): string => counted(Number(value ?? 0), 'alert')

/** Fixed words for each kind; what they name comes from the server. */
function EventText({ event: { kind, details }, tenant }: { event: Event; tenant: string }) {
  const texts: Record<Event['kind'], () => ReactNode> = {
    reopened: () => 'Opened again by a new alert',
    judged: () => <Judged details={details} />,
    snoozed: () => (
      <>
        Snoozed until <Time at={textOf(details.until)} exact />
      </>
    ),
    woken: () => 'Back in the queue',
    assigned: () => {
      const to = textOf(details.to)
      return to === null ? 'Unassigned' : `Assigned to ${to}`
    },
    merged: () => <Moved details={details} how="merged" tenant={tenant} />,
    split: () => <Moved details={details} how="split off" tenant={tenant} />,
    regrouped: () => <Regrouped details={details} tenant={tenant} />,
  }
  return <span>{texts[kind]()}</span>
}

/** A correction moved an install to another phone: the case went along, or its alerts did. */
function Regrouped({ details, tenant }: { details: Event['details']; tenant: string }) {
  const phone = textOf(details.phone_id) ?? 'another phone'
  if (details.from === details.into) {
    return (
      <>
        An install was corrected: now about phone <Id value={phone} />
      </>
    )
  }
  return (
    <>
      An install was corrected to phone <Id value={phone} />:{' '}
      <Moved details={details} how="moved" tenant={tenant} />
    </>
  )
}

/** Alerts that went from one case into another. */
function Moved({
  details: { alerts, from, into },
  how,
  tenant,
}: {
  details: Event['details']
  how: string
  tenant: string
}) {
  return (
    <>
      {countOf(alerts)} {how} from <CaseLink id={from} tenant={tenant} /> into{' '}
      <CaseLink id={into} tenant={tenant} />
    </>
  )
}

function Judged({ details }: { details: Event['details'] }) {
  const disposition = dispositions.find((one) => one === details.disposition)
  const parts = [
    ...(Number(details.alerts ?? 0) > 0 || disposition === undefined
      ? [
          `${countOf(details.alerts)} ${disposition ? dispositionText(disposition).toLowerCase() : 'judged'}`,
        ]
      : []),
    ...toLabelText(details.label),
    ...toListText(details.list),
  ]
  return <span>{parts.join(', ') || 'Judged'}</span>
}

const toLabelText = (label: unknown): string[] => {
  const code = textOf(label) ?? textOf((label as { label?: unknown } | null)?.label)
  return code === null ? [] : [`labelled ${toLabelName(code).toLowerCase()}`]
}

const toListText = (list: unknown): string[] => {
  const name = textOf(list) ?? textOf((list as { list?: unknown } | null)?.list)
  return name === null ? [] : [`put on the ${name} list`]
}

function CaseLink({ id, tenant }: { id: unknown; tenant: string }) {
  const caseId = textOf(id)
  if (caseId === null) return <span>another case</span>
  return (
    <Link className="font-mono text-sm" params={{ tenant, caseId }} to="/t/$tenant/cases/$caseId">
      {caseId}
    </Link>
  )
}

const toNoted = (caseId: string): Noted => ({
  id: caseId,
  queryKey: ['case', caseId],
  send: (note) =>
    ok(
      api.POST('/admin/v1/cases/{case_id}/notes', {
        params: { path: { case_id: caseId } },
        body: { note },
      }),
    ),
})
