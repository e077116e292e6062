/** A table of a few rows, all in the document: the first page does without what long tables need. */
import { Cells, type Column, TableFrame } from './table-frame.tsx'

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
    <TableFrame columns={columns} label={label} minWidth={minWidth}>
      {rows.map((row) => (
        <tr key={rowKey(row)}>
          <Cells columns={columns} row={row} />
        </tr>
      ))}
    </TableFrame>
  )
}
