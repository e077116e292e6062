/** What every table has in common: the region that scrolls, the head, and the cells of a row. */
import type { ReactNode, RefObject } from 'react'
import { classes } from '../classes.ts'
import { toLeastRem } from './table-width.ts'

export type Column<Row> = {
  id: string
  head: ReactNode
  cell: (row: Row) => ReactNode
  /** Numbers stand at the right. */
  numeric?: boolean
  /** A CSS width, in `rem` or `%`. */
  width?: string
}

export function TableFrame<Row>({
  label,
  columns,
  minWidth,
  heightClass,
  scroller,
  rowCount,
  children,
}: {
  /** What the table is of, for screen readers. */
  label: string
  columns: Column<Row>[]
  minWidth: string
  heightClass?: string
  scroller?: RefObject<HTMLDivElement | null>
  /** Of a table with some rows in the document alone: how many there are. */
  rowCount?: number
  children: ReactNode
}) {
  const isCounted = rowCount !== undefined
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
        aria-rowcount={isCounted ? rowCount + 1 : undefined}
        className="w-full table-fixed border-separate border-spacing-0"
        style={{ minWidth: `max(${minWidth}, ${toLeastRem(columns)}rem)` }}
      >
        <thead>
          <tr aria-rowindex={isCounted ? 1 : undefined}>
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
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

/** The cells of a row of 36 px. */
export const Cells = <Row,>({ columns, row }: { columns: Column<Row>[]; row: Row }) =>
  columns.map(({ id, cell, numeric }) => (
    <td
      className={classes('h-9 truncate border-line border-b px-3', numeric && 'text-right')}
      key={id}
    >
      {cell(row)}
    </td>
  ))
