/** One erasure: progress by store, and at its end the receipt. */
import { useQuery } from '@tanstack/react-query'
import { Badge, type Tone } from '../../components/badge.tsx'
import { Spinner } from '../../components/button.tsx'
import { Id } from '../../components/id.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { counted } from '../../components/words.ts'
import { type Erasure, erasureQuery, isOpen, type Receipt } from './erasures.ts'

const tones: Record<Erasure['state'], Tone> = {
  waiting: 'neutral',
  running: 'accent',
  done: 'good',
  failed: 'bad',
}

export function StateBadge({ erasure: { state, problem } }: { erasure: Erasure }) {
  const retried = state === 'waiting' && problem !== null
  return <Badge tone={retried ? 'warn' : tones[state]}>{retried ? 'retrying' : state}</Badge>
}

export function NoErasure() {
  return (
    <Panel title="Receipt">
      <Empty title="No erasure is chosen">
        <p>The receipt counts what each store held before and after.</p>
      </Empty>
    </Panel>
  )
}

export function ErasurePanel({ tenant, erasureId }: { tenant: string; erasureId: string }) {
  const query = useQuery(erasureQuery(tenant, erasureId))
  const badge = query.data && <StateBadge erasure={query.data} />
  return (
    <Panel action={badge} title={query.data && isOpen(query.data) ? 'Progress' : 'Receipt'}>
      <Loaded query={query}>
        {(erasure) =>
          erasure.receipt === null ? (
            <Progress erasure={erasure} />
          ) : (
            <ReceiptView erasure={erasure} receipt={erasure.receipt} />
          )
        }
      </Loaded>
    </Panel>
  )
}

const names = {
  postgres: 'Postgres',
  streams: 'Streams and dead letters',
  clickhouse: 'ClickHouse',
}

function toStep({ state, progress, problem }: Erasure): string {
  if (state === 'waiting') {
    return problem === null ? 'Waiting for its turn.' : 'Waiting for the next attempt.'
  }
  const current = progress.find((one) => one.state === 'erasing')
  if (current !== undefined) return `Erasing from ${names[current.store]}.`
  return progress.every((one) => one.state === 'erased')
    ? 'Counting once more that nothing is left.'
    : 'Waiting until accepted events are stored and decided.'
}

function Progress({ erasure }: { erasure: Erasure }) {
  const { problem, progress, state } = erasure
  return (
    <div>
      <div className="grid gap-2 px-4 py-3">
        {state !== 'failed' && (
          <div className="flex items-center gap-3" role="status">
            <Spinner />
            <span>{toStep(erasure)}</span>
          </div>
        )}
        {problem !== null && (
          <p className="rounded-md bg-warn-soft px-3 py-2 text-warn">
            {problem}
            {state !== 'failed' && ' It is tried again by itself, within five minutes.'}
          </p>
        )}
        {state !== 'failed' && (
          <p className="text-muted">
            It goes on in the server: leave this page and come back at any time.
          </p>
        )}
      </div>
      <ul className="grid grid-cols-[minmax(0,1fr)] border-line border-t">
        {progress.map(({ store, state: reached, rows }) => (
          <li
            className="flex h-9 items-center gap-3 border-line border-b px-4 last:border-b-0"
            key={store}
          >
            <span className="min-w-0 truncate">{names[store]}</span>
            <span className="ml-auto whitespace-nowrap text-muted">
              {rows !== null && counted(rows, 'row')}
            </span>
            <Badge
              tone={reached === 'erased' ? 'good' : reached === 'erasing' ? 'accent' : 'neutral'}
            >
              {reached}
            </Badge>
          </li>
        ))}
      </ul>
      <Requested erasure={erasure} />
    </div>
  )
}

function Requested({ erasure: { subject, tenant_id, ...erasure } }: { erasure: Erasure }) {
  return (
    <Facts
      facts={[
        ['Subject', `${subject.kind} of ${tenant_id}`],
        ['SHA-256 of the id', <Id key="hash" most={26} value={subject.sha256} />],
        ['Requested by', erasure.requested_by],
        ['Requested', <Time at={erasure.created_at} exact key="requested" />],
      ]}
    />
  )
}

type CountRow = { store: string; before: number; after: number }

const columns: Column<CountRow>[] = [
  { id: 'store', head: 'Store', cell: ({ store }) => store },
  {
    id: 'before',
    head: 'Before',
    cell: ({ before }) => before.toLocaleString('en'),
    numeric: true,
    width: '6rem',
  },
  {
    id: 'after',
    head: 'After',
    cell: ({ after }) => after.toLocaleString('en'),
    numeric: true,
    width: '6rem',
  },
]

function ReceiptView({ erasure, receipt }: { erasure: Erasure; receipt: Receipt }) {
  const { subject, counts, kept_mentions: kept, notes } = receipt
  const rows = Object.entries(counts).map(([store, count]) => ({ store, ...count }))
  const mentions =
    kept.events === null
      ? 'Events of others that mention the id were not counted: there are too many bodies.'
      : `${kept.events.toLocaleString('en')} events of others mention the id in a free field and stay.`
  return (
    <div>
      <Facts
        facts={[
          ['Erased', `${subject.kind} of ${receipt.tenant_id}`],
          ['SHA-256 of the id', <Id key="hash" most={26} value={subject.sha256} />],
          ['Requested by', erasure.requested_by],
          ['Began', <Time at={receipt.started_at} exact key="began" />],
          ['Ended', <Time at={receipt.finished_at} exact key="ended" />],
        ]}
      />
      <Table
        columns={columns}
        heightClass="max-h-96"
        label="What each store held"
        minWidth="22rem"
        rowKey={({ store }) => store}
        rows={rows}
      />
      <ul className="grid list-disc gap-1 py-3 pr-4 pl-8 text-muted">
        <li>{mentions}</li>
        {kept.others.map(({ place, rows: count }) => (
          <li key={place}>
            {count === null
              ? `${place} has too many rows to search for the id.`
              : `${place} has the id in ${count.toLocaleString('en')} ${count === 1 ? 'row' : 'rows'} about others, which stay.`}
          </li>
        ))}
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </div>
  )
}
