/** CSV as RFC 4180 has it, safe to open in a spreadsheet. */

/** A cell that begins with one of these is a formula to a spreadsheet. */
const formulaStart = /^[=+\-@\t\r]/

/**
 * A row with its line end. A text that begins like a formula gets an apostrophe before it, which a
 * spreadsheet does not show.
 */
export function toCsvRow(cells: readonly (string | number)[]): string {
  return `${cells.map(toCell).join(',')}\r\n`
}

function toCell(cell: string | number): string {
  if (typeof cell === 'number') return String(cell)
  const safe = formulaStart.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
