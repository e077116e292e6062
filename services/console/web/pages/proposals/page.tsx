/** Proposals: what waits for another administrator, what it changes in words, and what became of it. */
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { Badge, type Tone } from '../../components/badge.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { FourEyesPanel } from './four-eyes-panel.tsx'
import { ProposalDetail } from './proposal-detail.tsx'
import { type Listed, proposalsQuery } from './proposals.ts'

const tones: Record<Listed['state'], Tone> = {
  open: 'accent',
  approved: 'good',
  rejected: 'bad',
  withdrawn: 'neutral',
  void: 'warn',
  failed: 'bad',
  expired: 'neutral',
}

const toColumns = (onOpen: (id: string) => void): Column<Listed>[] => [
  {
    id: 'state',
    head: 'State',
    width: '7rem',
    cell: ({ state }) => <Badge tone={tones[state]}>{state}</Badge>,
  },
  {
    id: 'what',
    head: 'What',
    cell: ({ proposal_id: id, summary }) => (
      <button
        className="max-w-full truncate text-accent-text underline"
        onClick={() => onOpen(id)}
        title={summary}
        type="button"
      >
        {summary}
      </button>
    ),
  },
  { id: 'who', head: 'By', width: '13rem', cell: ({ author }) => author },
  { id: 'when', head: 'Proposed', width: '7rem', cell: ({ created_at: at }) => <Time at={at} /> },
]

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  const [chosen, choose] = useUrlState('proposal')
  const proposals = useQuery(proposalsQuery(tenant, 'all'))
  return (
    <Frame
      about="Where a tenant wants four eyes, what one administrator proposes is done once another one approves it."
      title="Proposals"
    >
      {chosen !== '' && (
        <ProposalDetail id={chosen} key={chosen} onClose={() => choose('')} tenant={tenant} />
      )}
      <Panel title="All proposals">
        <Loaded query={proposals}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="There are no proposals" />
            ) : (
              <Table
                columns={toColumns(choose)}
                label="Proposals"
                minWidth="48rem"
                rowKey={({ proposal_id: id }) => id}
                rows={data}
                selected={chosen}
              />
            )
          }
        </Loaded>
      </Panel>
      {/* Below a list of unknown length, so it comes after it: nothing moves. */}
      {!proposals.isPending && <FourEyesPanel tenant={tenant} />}
    </Frame>
  )
}
