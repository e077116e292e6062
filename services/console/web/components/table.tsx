/**
 * A table of 36 px rows with a sticky head. Only the rows in view are in the document, so a table
 * may hold any number.
 */
import { useVirtualizer } from '@tanstack/react-virtual'
import { useRef } from 'react'
import { classes } from './classes.ts'
import { Cells, type Column, TableFrame } from './rows/table-frame.tsx'

export type { Column } from './rows/table-frame.tsx'

const rowPx = 36
/** Rows beyond each edge of the view; with a screen of 2,160 px that is 80 rows at most. */
const overscan = 9
const headPx = 32

export function Table<Row>({
  label,
  columns,
  rows,
  rowKey,
  selected,
  onSelect,
  heightClass = 'max-h-[calc(100dvh-13rem)]',
  minWidth = '40rem',
  onEnd,
}: {
  /** What the table is of, for screen readers. */
  label: string
  columns: Column<Row>[]
  rows: Row[]
  rowKey: (row: Row) => string
  selected?: string | undefined
  onSelect?: (row: Row) => void
  heightClass?: string
  minWidth?: string
  /** Called when the last row comes into view, to load more. */
  onEnd?: () => void
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan,
    scrollPaddingStart: headPx,
    onChange: ({ range }) => {
      if (range !== null && range.endIndex >= rows.length - 1) onEnd?.()
    },
  })
  const items = virtual.getVirtualItems()
  const above = items[0]?.start ?? 0
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0)
  return (
    <TableFrame
      columns={columns}
      heightClass={heightClass}
      label={label}
      minWidth={minWidth}
      rowCount={rows.length}
      scroller={scroller}
    >
      <Spacer height={above} />
      {items.map(({ index }) => {
        const row = rows[index]!
        const key = rowKey(row)
        return (
          <tr
            aria-rowindex={index + 2}
            aria-selected={selected === undefined ? undefined : selected === key}
            className={classes(
              'group',
              onSelect && 'cursor-pointer hover:bg-hover',
              selected === key && 'bg-accent-soft',
            )}
            key={key}
            onClick={onSelect && (() => onSelect(row))}
          >
            <Cells columns={columns} row={row} />
          </tr>
        )
      })}
      <Spacer height={below} />
    </TableFrame>
  )
}

function Spacer({ height }: { height: number }) {
  if (height <= 0) return null
  return (
    <tr>
      <td style={{ height }} />
    </tr>
  )
}
