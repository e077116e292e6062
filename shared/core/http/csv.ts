/** CSV as RFC 4180 has it, safe to open in a spreadsheet. */

/**
 * A cell that begins so is a formula to a spreadsheet, also in full width, and behind white space
 * that one leaves out.
 */
const formulaStart = /^(?:[\t\r]|\s*[=+\-@＝＋－＠])/

/** `excel`: as Excel opens it without an import. `plain`: as programs read it. */
export type CsvForm = 'plain' | 'excel'

/** A text, a number, or a number in digits of its own, which a double may not hold; null is none. */
export type CsvCell = string | number | { digits: string } | null

/** What a file begins with: Excel takes one without it for another encoding than UTF-8. */
export const toCsvStart = (form: CsvForm): string => (form === 'excel' ? '\ufeff' : '')

/** Excel keeps 15 digits of a number and drops zeros before it: such a text is an id. */
const idOfDigits = /^(?:0\d+|\d{16,})$/

/**
 * A row with its line end. Every text is quoted: which character separates cells depends on the
 * reader's country. One that begins like a formula gets an apostrophe before it, which a
 * spreadsheet does not show.
 * @param form in `excel` an id of digits is the formula of its text, so that it keeps all digits
 */
export function toCsvRow(cells: readonly CsvCell[], form: CsvForm = 'plain'): string {
  return `${cells.map((cell) => toCell(cell, form)).join(',')}\r\n`
}

function toCell(cell: CsvCell, form: CsvForm): string {
  // As ClickHouse writes it; a spreadsheet knows no null.
  if (cell === null) return form === 'excel' ? '' : '\\N'
  if (typeof cell === 'number') return String(cell)
  const text = typeof cell === 'string' ? cell : cell.digits
  if (form === 'excel' && idOfDigits.test(text)) return `"=""${text}"""`
  if (typeof cell !== 'string') return text
  const safe = formulaStart.test(cell) ? `'${cell}` : cell
  return `"${safe.replaceAll('"', '""')}"`
}

/** The text that `toCsvRow` made a cell of, in either form; any other cell is itself. */
export function fromCsvCell(cell: string): string {
  const id = /^="(\d+)"$/.exec(cell)?.[1]
  if (id !== undefined) return id
  return cell.startsWith("'") && formulaStart.test(cell.slice(1)) ? cell.slice(1) : cell
}
