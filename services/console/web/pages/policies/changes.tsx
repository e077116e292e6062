/** What differs between two versions: a list by path, and the text with its changed lines. */
import type { Change } from '#shared/core/policies/policy-changes.ts'
import { CodeEditor } from '../../components/editor/code-editor.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'

const none = <span className="text-muted">none</span>

const columns: Column<Change>[] = [
  {
    id: 'path',
    head: 'Where',
    cell: ({ path }) => (
      <code className="font-mono text-sm" title={path}>
        {path}
      </code>
    ),
  },
  {
    id: 'before',
    head: 'Before',
    width: '30%',
    cell: ({ before }) => (before === null ? none : <span title={before}>{before}</span>),
  },
  {
    id: 'after',
    head: 'After',
    width: '30%',
    cell: ({ after }) => (after === null ? none : <span title={after}>{after}</span>),
  },
]

export function ChangeTable({ changes }: { changes: Change[] }) {
  return (
    <Table
      columns={columns}
      heightClass="max-h-80"
      label="Changes"
      minWidth="30rem"
      rowKey={({ path }) => path}
      rows={changes}
    />
  )
}

export function ChangeList({
  changes,
  before,
  after,
}: {
  changes: Change[]
  before: string
  after: string
}) {
  if (changes.length === 0) {
    return <Empty title="There is no difference">Change a weight or a threshold first.</Empty>
  }
  return (
    <div className="grid gap-4">
      <ChangeTable changes={changes} />
      <CodeEditor
        before={before}
        className="h-96 rounded-md border border-line"
        label="The changed lines"
        language="json"
        readOnly
        value={after}
      />
    </div>
  )
}
