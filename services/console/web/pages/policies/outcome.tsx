/** What a policy would change: the confusion matrix, sessions by change, those that moved most. */
import { useId } from 'react'
import { actions } from '#shared/core/scoring/score.ts'
import { ActionBadge } from '../../components/badge.tsx'
import { classes } from '../../components/classes.ts'
import { Id } from '../../components/id.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'

const toCount = (value: number) => value.toLocaleString('en')

/** Events by the old action, in rows, and the new one, in columns. */
export function ConfusionMatrix({
  matrix,
  before,
  after,
}: {
  matrix: Record<string, Record<string, number>>
  before: string
  after: string
}) {
  const total = (row: string) => actions.reduce((sum, to) => sum + (matrix[row]?.[to] ?? 0), 0)
  const title = useId()
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-1">
      <h3 className="font-medium" id={title}>
        Events: {before} in rows, {after} in columns
      </h3>
      <div className="overflow-x-auto">
        <table aria-labelledby={title} className="border-separate border-spacing-1">
          <thead>
            <tr>
              <td />
              {actions.map((to) => (
                <th className="px-2 text-right" key={to} scope="col">
                  <ActionBadge action={to} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {actions.map((from, row) => (
              <tr key={from}>
                <th className="pr-3 text-left" scope="row">
                  <ActionBadge action={from} />
                </th>
                {actions.map((to, column) => {
                  const count = matrix[from]?.[to] ?? 0
                  const share = total(from) === 0 ? 0 : count / total(from)
                  return (
                    <td
                      className={classes(
                        'min-w-20 rounded px-2 py-1.5 text-right',
                        count === 0 || row === column
                          ? 'bg-panel'
                          : column > row
                            ? 'bg-warn-soft'
                            : 'bg-good-soft',
                        count === 0 && 'text-muted',
                        count > 0 && row !== column && 'font-semibold',
                      )}
                      key={to}
                      title={`${(share * 100).toFixed(1)} % of ${from}`}
                    >
                      {toCount(count)}
                    </td>
                  )
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}

export function Tile({ name, value, note }: { name: string; value: string; note?: string }) {
  return (
    <div className="min-w-28 rounded-md border border-line px-3 py-2">
      <div className="text-muted text-sm">{name}</div>
      <div className="font-semibold text-lg">{value}</div>
      {note && <div className="text-muted text-xs">{note}</div>}
    </div>
  )
}

/** Sessions by what a policy changes for them. */
export type Changes = {
  new: number
  gone: number
  stricter: number
  milder: number
  unchanged: number
}
type Named = Changes & { name: string }

const changeNames = [
  ['new', 'New', 'an alert where there was none'],
  ['gone', 'Gone', 'no alert any more'],
  ['stricter', 'Stricter', 'REVIEW becomes BLOCK'],
  ['milder', 'Milder', 'BLOCK becomes REVIEW'],
] as const

/** One tile for each change, then those that stay. */
export function ChangeTiles({ changes }: { changes: Changes }) {
  return (
    <>
      {changeNames.map(([id, name, note]) => (
        <Tile key={id} name={name} note={note} value={toCount(changes[id])} />
      ))}
      <Tile name="Unchanged" note="the same action" value={toCount(changes.unchanged)} />
    </>
  )
}

/** Sessions by change under names, such as flags or SDK versions. */
export function NamedChanges({ title, rows }: { title: string; rows: Named[] }) {
  const changed = rows.filter((one) => changeNames.some(([id]) => one[id] > 0))
  if (changed.length === 0) return null
  const columns: Column<Named>[] = [
    { id: 'name', head: title, cell: ({ name }) => <span title={name}>{name || 'none'}</span> },
    ...changeNames.map(([id, head, note]) => ({
      id,
      head: <span title={note}>{head}</span>,
      numeric: true,
      width: '4.75rem',
      cell: (one: Named) => toCount(one[id]),
    })),
  ]
  return (
    <Table
      columns={columns}
      heightClass="max-h-64"
      label={`Sessions that change by ${title.toLowerCase()}`}
      minWidth="33rem"
      rowKey={({ name }) => name}
      rows={changed}
    />
  )
}

export type Moved = { device_id: string; session_id: string; before: number; after: number }

export function MovedMost({ rows }: { rows: Moved[] }) {
  if (rows.length === 0) return <Empty title="No session changes its score" />
  const columns: Column<Moved>[] = [
    { id: 'device', head: 'Device', cell: ({ device_id }) => <Id value={device_id} /> },
    { id: 'session', head: 'Session', cell: ({ session_id }) => <Id value={session_id} /> },
    { id: 'before', head: 'Before', numeric: true, width: '5rem', cell: ({ before }) => before },
    { id: 'after', head: 'After', numeric: true, width: '5rem', cell: ({ after }) => after },
    {
      id: 'moved',
      head: 'Moved',
      numeric: true,
      width: '5rem',
      cell: ({ before, after }) => `${after > before ? '+' : '−'}${Math.abs(after - before)}`,
    },
  ]
  return (
    <Table
      columns={columns}
      heightClass="max-h-80"
      label="Sessions that moved most"
      minWidth="34rem"
      rowKey={({ device_id, session_id }) => `${device_id} ${session_id}`}
      rows={rows}
    />
  )
}
