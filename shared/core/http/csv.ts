/** CSV as RFC 4180 has it, safe to open in a spreadsheet. */

/** A cell that begins with one of these is a formula to a spreadsheet. */
const formulaStarts = ['=', '+', '-', '@', '\t', '\r']

/** `excel`: as Excel opens it without an import. `plain`: as programs read it. */
export type CsvForm = 'plain' | 'excel'

/** A text, a number, or a number in digits of its own, which a double may not hold. */
export type CsvCell = string | number | { digits: string }

/** What a file begins with: Excel takes one without it for another encoding than UTF-8. */
export const toCsvStart = (form: CsvForm): string => (form === 'excel' ? '\ufeff' : '')

/** Excel keeps 15 digits of a number and drops zeros before it: such a text is an id. */
const idOfDigits = /^(?:0\d+|\d{16,})$/

/**
 * A row with its line end. A text that begins like a formula gets an apostrophe before it, which a
 * spreadsheet does not show.
 * @param form in `excel` an id of digits is the formula of its text, so that it keeps all digits
 */
export function toCsvRow(cells: readonly CsvCell[], form: CsvForm = 'plain'): string {
  return `${cells.map((cell) => toCell(cell, form)).join(',')}\r\n`
}

function toCell(cell: CsvCell, form: CsvForm): string {
  if (typeof cell === 'number') return String(cell)
  const text = typeof cell === 'string' ? cell : cell.digits
  if (form === 'excel' && idOfDigits.test(text)) return `"=""${text}"""`
  if (typeof cell !== 'string') return text
  const safe = formulaStarts.includes(cell[0]!) ? `'${cell}` : cell
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
