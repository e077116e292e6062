/** CSV as RFC 4180 has it, safe to open in a spreadsheet. */

/** A cell that begins with one of these is a formula to a spreadsheet. */
const formulaStarts = ['=', '+', '-', '@', '\t', '\r']

/** `excel`: as Excel opens it without an import. `plain`: as programs read it. */
export type CsvForm = 'plain' | 'excel'

/** What a file begins with: Excel takes one without it for another encoding than UTF-8. */
export const toCsvStart = (form: CsvForm): string => (form === 'excel' ? '\ufeff' : '')

/** Excel keeps 15 digits of a number and drops zeros before it: such a text is an id. */
const idOfDigits = /^(?:0\d+|\d{16,})$/

/**
 * A row with its line end. A text that begins like a formula gets an apostrophe before it, which a
 * spreadsheet does not show.
 * @param form in `excel` an id of digits is the formula of its text, so that it keeps all digits
 */
export function toCsvRow(cells: readonly (string | number)[], form: CsvForm = 'plain'): string {
  return `${cells.map((cell) => toCell(cell, form)).join(',')}\r\n`
}

function toCell(cell: string | number, form: CsvForm): string {
  if (typeof cell === 'number') return String(cell)
  if (form === 'excel' && idOfDigits.test(cell)) return `"=""${cell}"""`
  const safe = formulaStarts.includes(cell[0]!) ? `'${cell}` : cell
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const quote = 0x22
const apostrophe = new Uint8Array([0x27])
const formulaBytes = new Set(formulaStarts.map((start) => start.charCodeAt(0)))

/**
 * The same for a CSV that comes in chunks and has each text in quotes, as ClickHouse writes it:
 * numbers stay as they are.
 * @returns a function that takes the chunks in order and returns the pieces to send instead
 */
export function createFormulaGuard(): (chunk: Uint8Array) => Uint8Array[] {
  let inText = false
  let previousIsQuote = false
  let atStart = false
  return (chunk) => {
    const pieces: Uint8Array[] = []
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (atStart && formulaBytes.has(byte)) {
        pieces.push(chunk.subarray(from, at), apostrophe)
        from = at
      }
      const isQuote = byte === quote
      // A quote right after the one that seems to end the text is a quote of the text.
      atStart = isQuote && !inText && !previousIsQuote
      if (isQuote) inText = !inText
      previousIsQuote = isQuote
    }
    pieces.push(chunk.subarray(from))
    return pieces
  }
}
