/** Tables of labels, with who labelled and when. */
import { Link } from '@tanstack/react-router'
import { toAmountText } from '#shared/core/outcomes/figure-text.ts'
import { Badge } from '../../components/badge.tsx'
import { IdText } from '../../components/id.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { type Label, type LabelSubject, toLabelName, toSubject } from './labels.ts'

const tones = { fraud: 'bad', legitimate: 'good' } as const

export function LabelTable({
  tenant,
  rows,
  withSubject,
  onEnd,
}: {
  tenant: string
  rows: Label[]
  /** Whether to show what the labels are about. */
  withSubject: boolean
  onEnd?: () => void
}) {
  const columns: Column<Label>[] = [
    {
      id: 'label',
      head: 'Label',
      cell: ({ label, outcome, is_latest: isLatest }) => (
        <span className="flex flex-wrap items-center gap-1.5">
          <Badge tone={isLatest && outcome !== null ? tones[outcome] : 'neutral'}>
            {toLabelName(label)}
          </Badge>
          {!isLatest && <span className="text-muted">superseded</span>}
        </span>
      ),
      width: withSubject ? '9.5rem' : '14rem',
    },
    ...(withSubject ? [subjectColumn(tenant)] : []),
    {
      id: 'occurred',
      head: 'Happened',
      cell: ({ occurred_at: at }) => <Time at={at} />,
      width: '7rem',
    },
    {
      id: 'amount',
      head: 'Amount',
      numeric: true,
      cell: ({ amount, currency }) =>
        amount === null ? '' : `${toAmountText(amount)} ${currency}`,
      width: '7.5rem',
    },
    {
      id: 'case',
      head: 'Case',
      cell: ({ external_id: id }) => id && <IdText value={id} />,
      width: '7.5rem',
    },
    {
      id: 'note',
      head: 'Note',
      cell: ({ note }) => <span title={note ?? undefined}>{note}</span>,
      ...(withSubject ? { width: '4.5rem' } : {}),
    },
    {
      id: 'by',
      head: 'By',
      cell: ({ actor }) => <span title={actor}>{actor}</span>,
      width: withSubject ? '5.5rem' : '9rem',
    },
    {
      id: 'received',
      head: 'Labelled',
      cell: ({ created_at: at }) => <Time at={at} />,
      width: '7rem',
    },
  ]
  return (
    <Table
      columns={columns}
      label="Labels"
      minWidth={withSubject ? '62rem' : '60rem'}
      {...(onEnd === undefined ? {} : { onEnd })}
      rowKey={({ label_id: id }) => id}
      rows={rows}
    />
  )
}

const subjectColumn = (tenant: string): Column<Label> => ({
  id: 'subject',
  head: 'Of',
  cell: (label) => {
    const { kind, id } = toSubject(label)
    return (
      <span className="flex min-w-0 items-center gap-1.5">
        <span className="text-muted">{kind}</span>
        <SubjectLink id={id} kind={kind} tenant={tenant} />
      </span>
    )
  },
})

function SubjectLink({ tenant, kind, id }: LabelSubject & { tenant: string }) {
  const text = <IdText value={id} />
  if (kind === 'device') {
    return (
      <Link params={{ tenant, deviceId: id }} to="/t/$tenant/devices/$deviceId">
        {text}
      </Link>
    )
  }
  if (kind === 'user') {
    return (
      <Link params={{ tenant, userId: id }} to="/t/$tenant/users/$userId">
        {text}
      </Link>
    )
  }
  if (kind === 'event') {
    return (
      <Link params={{ tenant, eventId: id }} to="/t/$tenant/events/$eventId">
        {text}
      </Link>
    )
  }
  return (
    <Link params={{ tenant }} search={{ session_id: id }} to="/t/$tenant/alerts">
      {text}
    </Link>
  )
}
