/** The erasures of a tenant, newest first, each with its receipt. */
import { useQuery } from '@tanstack/react-query'
import { cutMiddle } from '../../components/id.tsx'
import { Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { StateBadge } from './erasure-panel.tsx'
import { type Erasure, erasuresQuery } from './erasures.ts'

const columns: Column<Erasure>[] = [
  {
    id: 'state',
    head: 'State',
    cell: (erasure) => <StateBadge erasure={erasure} />,
    width: '6rem',
  },
  {
    id: 'subject',
    head: 'SHA-256 of the id',
    // The click reaches the row; the button takes the focus.
    cell: ({ subject }) => (
      <button className="font-mono text-sm" title={subject.sha256} type="button">
        {cutMiddle(subject.sha256)}
      </button>
    ),
  },
  { id: 'kind', head: 'Kind', cell: ({ subject }) => subject.kind, width: '5rem' },
  { id: 'by', head: 'Requested by', cell: ({ requested_by }) => requested_by },
  {
    id: 'requested',
    head: 'Requested',
    cell: ({ created_at }) => <Time at={created_at} />,
    width: '7rem',
  },
]

export function ErasureList({
  tenant,
  chosen,
  onChoose,
}: {
  tenant: string
  chosen: string
  onChoose: (erasureId: string) => void
}) {
  const query = useQuery(erasuresQuery(tenant))
  return (
    <Panel title="Erasures of this tenant">
      <Loaded query={query}>
        {(erasures) =>
          erasures.length === 0 ? (
            <Empty title="Nothing was erased yet">
              <p>Erasures stay here with their receipts for 400 days.</p>
            </Empty>
          ) : (
            <Table
              columns={columns}
              heightClass="max-h-96"
              label="Erasures of this tenant"
              minWidth="40rem"
              onSelect={({ erasure_id }) => onChoose(erasure_id)}
              rowKey={({ erasure_id }) => erasure_id}
              rows={erasures}
              selected={chosen}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}
