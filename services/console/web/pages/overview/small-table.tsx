/** A table of a few rows, all in the document: the first page does without what long tables need. */
import { classes } from '../../components/classes.ts'
import type { Column } from '../../components/table.tsx'

export function SmallTable<Row>({
  label,
  columns,
  rows,
  rowKey,
  minWidth,
}: {
  label: string
  columns: Column<Row>[]
  rows: Row[]
  rowKey: (row: Row) => string
  minWidth: string
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a region that scrolls must take the focus
    <div
      aria-label={label}
      className="relative overflow-auto"
      role="region"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll it
      tabIndex={0}
    >
      <table
        aria-label={label}
        className="w-full table-fixed border-separate border-spacing-0"
        style={{ minWidth }}
      >
        <thead>
          <tr>
            {columns.map(({ id, head, numeric, width }) => (
              <th
                className={classes(
                  'h-8 truncate border-line border-b bg-panel px-3 font-medium text-muted text-sm',
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
          {rows.map((row) => (
            <tr key={rowKey(row)}>
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
          ))}
        </tbody>
      </table>
    </div>
  )
}
