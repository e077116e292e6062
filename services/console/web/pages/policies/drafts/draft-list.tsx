/** The drafts of a tenant: whose they are, what for, and whether their base is still in force. */
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { AnswerOf } from '../../../api/client.ts'
import { Badge } from '../../../components/badge.tsx'
import { Panel } from '../../../components/page.tsx'
import { Empty, Loaded } from '../../../components/states.tsx'
import { type Column, Table } from '../../../components/table.tsx'
import { Time } from '../../../components/time/time.tsx'
import { draftsQuery } from './use-draft.ts'

type Listed = AnswerOf<'/admin/v1/tenants/{tenant_id}/drafts', 'get'>['data'][number]

const toColumns = (onOpen: (draftId: string) => void): Column<Listed>[] => [
  {
    id: 'what',
    head: 'Draft',
    cell: ({ draft_id: id, comment, name }) => (
      <button
        className="max-w-full truncate text-accent-text underline"
        onClick={() => onOpen(id)}
        type="button"
      >
        {comment || name || 'Draft without a name'}
      </button>
    ),
  },
  {
    id: 'base',
    head: 'From version',
    width: '11rem',
    cell: ({ base_version: base, in_force_version: inForce }) => (
      <span className="flex items-center gap-2">
        {base}
        {base !== inForce && <Badge tone="warn">{inForce} is in force</Badge>}
      </span>
    ),
  },
  { id: 'who', head: 'By', width: '12rem', cell: ({ created_by: by }) => by },
  { id: 'when', head: 'Changed', width: '7rem', cell: ({ updated_at: at }) => <Time at={at} /> },
]

export function DraftList({
  tenant,
  action,
  onOpen,
}: {
  tenant: string
  action: ReactNode
  onOpen: (draftId: string) => void
}) {
  const drafts = useQuery(draftsQuery(tenant))
  return (
    <Panel title="Drafts">
      <Loaded query={drafts}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="There is no draft">{action}</Empty>
          ) : (
            <Table
              columns={toColumns(onOpen)}
              label="Drafts of the policy"
              minWidth="40rem"
              rowKey={({ draft_id: id }) => id}
              rows={data}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}
