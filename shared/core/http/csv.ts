/** CSV as RFC 4180 has it, safe to open in a spreadsheet. */

/** A cell that begins with one of these is a formula to a spreadsheet. */
const formulaStarts = ['=', '+', '-', '@', '\t', '\r']

/**
 * A row with its line end. A text that begins like a formula gets an apostrophe before it, which a
 * spreadsheet does not show.
 */
export function toCsvRow(cells: readonly (string | number)[]): string {
  return `${cells.map(toCell).join(',')}\r\n`
}

function toCell(cell: string | number): string {
  if (typeof cell === 'number') return String(cell)
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
