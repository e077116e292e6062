/** One entry of a timeline in one line: what it says, with a link to its place. */
import { Link } from '@tanstack/react-router'
import type { TimelineKind } from '#shared/core/devices/timeline.ts'
import type { components } from '../../../api/schema.ts'
import { ActionBadge, SeverityBadge } from '../../../components/badge.tsx'
import { IdText } from '../../../components/id.tsx'
import { DispositionBadge } from '../../alert/disposition.tsx'
import { toEndText } from '../../webhooks/delivery-words.ts'

export type Entry = components['schemas']['TimelineEntry']
type Of<Kind extends TimelineKind> = Extract<Entry, { kind: Kind }>

export const kindTexts: Record<TimelineKind, string> = {
  event: 'Event',
  signal: 'Signal',
  alert: 'Alert',
  delivery: 'Delivery',
  assignment: 'Assignment',
  note: 'Note',
  case_note: 'Case note',
  disposition: 'Disposition',
  label: 'Label',
  list_entry: 'List entry',
  correction: 'Correction',
}

const line = 'inline-flex max-w-full items-center gap-2 align-middle'

export function EntryText({
  entry,
  tenant,
  withDevice,
}: {
  entry: Entry
  tenant: string
  /** Of a user or a phone, which has several. */
  withDevice: boolean
}) {
  const device = withDevice && 'device_id' in entry && (
    <Link
      className="truncate"
      params={{ tenant, deviceId: entry.device_id }}
      to="/t/$tenant/devices/$deviceId"
    >
      <IdText value={entry.device_id} />
    </Link>
  )
  return (
    <span className={line}>
      <Text entry={entry} tenant={tenant} />
      {device && <span className="truncate text-muted">on {device}</span>}
    </span>
  )
}

function Text({ entry, tenant }: { entry: Entry; tenant: string }) {
  switch (entry.kind) {
    case 'event':
      return (
        <>
          <ActionBadge action={entry.action} />
          <Link
            className="truncate"
            params={{ tenant, eventId: entry.id }}
            to="/t/$tenant/events/$eventId"
          >
            {`Risk ${entry.risk_score}${toList(entry.flags)}`}
          </Link>
        </>
      )
    case 'signal':
      return (
        <Link
          className="truncate"
          params={{ tenant, eventId: entry.event_id }}
          to="/t/$tenant/events/$eventId"
        >
          <IdText value={entry.signal} /> {changeTexts[entry.change]}
        </Link>
      )
    case 'alert':
      return (
        <>
          <SeverityBadge severity={entry.severity} />
          <AlertLink alertId={entry.id} tenant={tenant}>
            {`${entry.action}, risk ${entry.risk_score}${toList(entry.flags)}`}
          </AlertLink>
          <DispositionBadge disposition={entry.disposition} />
        </>
      )
    case 'delivery':
      return (
        <Link
          className="truncate"
          params={{ tenant }}
          search={{ delivery: entry.id }}
          to="/t/$tenant/webhooks"
        >
          {`${entry.event} ${toDeliveryText(entry)}`}
        </Link>
      )
    case 'assignment':
      return (
        <AlertLink alertId={entry.alert_id} tenant={tenant}>
          {entry.to === null ? `Taken from ${entry.from}` : `Assigned to ${entry.to}`}
        </AlertLink>
      )
    case 'note':
      return (
        <AlertLink alertId={entry.alert_id} tenant={tenant}>
          <IdText value={entry.note} />
        </AlertLink>
      )
    case 'case_note':
      return (
        <Link
          className="truncate"
          params={{ tenant, caseId: entry.case_id }}
          to="/t/$tenant/cases/$caseId"
        >
          <IdText value={entry.note} />
        </Link>
      )
    case 'disposition':
      return (
        <>
          <AlertLink alertId={entry.alert_id} tenant={tenant}>
            Judged
          </AlertLink>
          <DispositionBadge disposition={entry.from} />
          <span className="text-muted">to</span>
          <DispositionBadge disposition={entry.to} />
          {entry.note !== null && (
            <span className="truncate">
              <IdText value={entry.note} />
            </span>
          )}
        </>
      )
    case 'label':
      return (
        <span className="truncate">
          <span>Labelled {entry.label}</span>
          {entry.note !== null && (
            <span className="text-muted">
              , <IdText value={entry.note} />
            </span>
          )}
        </span>
      )
    case 'list_entry':
      return (
        <span className="truncate">
          {`${entry.list === 'deny' ? 'Denied' : 'Allowed'}: ${entry.reason}`}
        </span>
      )
    case 'correction':
      return (
        <span className="truncate">
          <span>{entry.undone ? 'Correction undone: ' : 'Put on phone '}</span>
          <Link params={{ tenant, phoneId: entry.phone_id }} to="/t/$tenant/phones/$phoneId">
            <IdText value={entry.phone_id} />
          </Link>
          <span className="text-muted">
            , <IdText value={entry.reason} />
          </span>
        </span>
      )
  }
}

function AlertLink({
  tenant,
  alertId,
  children,
}: {
  tenant: string
  alertId: string
  children: React.ReactNode
}) {
  return (
    <Link className="truncate" params={{ tenant, alertId }} to="/t/$tenant/alerts/$alertId">
      {children}
    </Link>
  )
}

const changeTexts: Record<Of<'signal'>['change'], string> = {
  appeared: 'appeared',
  went: 'went',
  returned: 'came back',
}

const toList = (flags: readonly string[]): string =>
  flags.length === 0 ? '' : `: ${flags.join(', ')}`

/** How a delivery stands, in words. */
function toDeliveryText({ state, reason }: Of<'delivery'>): string {
  if (state === 'pending') return 'waits'
  if (state === 'sending') return 'is being sent'
  return reason === null ? state : `${state}: ${toEndText(reason)}`
}
