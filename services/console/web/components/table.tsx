/**
 * A table of 36 px rows with a sticky head. Only the rows in view are in the document, so a table
 * may hold any number.
 */
import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useRef } from 'react'
import { classes } from './classes.ts'
import { toLeastRem } from './table-width.ts'

export const rowPx = 36
/** Rows beyond each edge of the view; with a screen of 2,160 px that is 80 rows at most. */
const overscan = 9
const headPx = 32

export type Column<Row> = {
  id: string
  head: ReactNode
  cell: (row: Row) => ReactNode
  /** Numbers stand at the right. */
  numeric?: boolean
  /** A CSS width, in `rem` or `%`. */
  width?: string
}

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
    // biome-ignore lint/a11y/useSemanticElements: a region that scrolls must take the focus
    <div
      aria-label={label}
      className={classes('relative overflow-auto', heightClass)}
      ref={scroller}
      role="region"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll it
      tabIndex={0}
    >
      <table
        aria-label={label}
        aria-rowcount={rows.length + 1}
        className="w-full table-fixed border-separate border-spacing-0"
        style={{ minWidth: `max(${minWidth}, ${toLeastRem(columns)}rem)` }}
      >
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ id, head, numeric, width }) => (
              <th
                className={classes(
                  'sticky top-0 z-10 h-8 truncate border-line border-b bg-panel px-3 font-medium',
                  'text-muted text-sm',
                  numeric ? 'text-right' : 'text-left',
                )}
                key={id}
                scope="col"
                style={width === undefined ? undefined : { width }}
              >
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
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
                {columns.map(({ id, cell, numeric }) => (
                  <td
                    className={classes(
                      'h-9 truncate border-line border-b px-3',
                      numeric && 'text-right',
                    )}
                    key={id}
                  >
                    {cell(row)}
                  </td>
                ))}
              </tr>
            )
          })}
          <Spacer height={below} />
        </tbody>
      </table>
    </div>
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
