/** Many rows as parameters of one statement: an array for each column. */

/** A column of such rows: its name and type in SQL, and its value. */
export type RowColumn<Row> = { column: string; type: string; of: (row: Row) => unknown }

/** SQL: the rows as `rows`, with their arrays from the parameter `$first` on. */
export function toUnnest<Row>(columns: readonly RowColumn<Row>[], first: number): string {
  const arrays = columns.map(({ type }, at) => `$${first + at}::${type}[]`)
  const names = columns.map(({ column }) => column)
  return `unnest(${arrays.join(', ')}) as rows (${names.join(', ')})`
}

/** The arrays, in the order of their parameters. */
export const toArrays = <Row>(
  columns: readonly RowColumn<Row>[],
  rows: readonly Row[],
): unknown[][] => columns.map(({ of }) => rows.map(of))
