/**
 * Reads a CSV file of labels: a row each, with the members of a label as columns. Every row is
 * checked as the API checks it, and a row with a fault is named by its line.
 */
import { CsvError, parse } from 'csv-parse/sync'
import { fromCsvCell } from '#shared/core/http/csv.ts'
import { describeFault } from '#shared/core/http/fault-messages.ts'
import { type DeclaredCodes, findLabelFault } from '#shared/core/outcomes/label-codes.ts'
import { aheadFault, labelBody } from '#shared/core/outcomes/label-schemas.ts'
import { isAhead, subjectKinds } from '#shared/core/outcomes/labels.ts'

/** A fault of a file. @param line of the row's begin, from 1; the header is line 1 */
export type LabelFault = { line: number; column: string; message: string }

export type LabelFile = {
  /** Bodies of labels, as they are sent; of a file with faults those without. */
  labels: Record<string, unknown>[]
  faults: LabelFault[]
}

const subjectColumns: readonly string[] = subjectKinds.map((kind) => `${kind}_id`)
const valueColumns = ['label', 'occurred_at', 'covered_days', 'amount', 'currency']
const textColumns = ['external_id', 'note']
const idColumns = [...subjectColumns, 'external_id']
/** The columns that a file may have, in any order. */
export const labelColumns = [...subjectColumns, ...valueColumns, ...textColumns]

/** What a row is checked against: the wall clock, and the codes that the tenant declared. */
type LabelCheck = { nowMs: number; codes: DeclaredCodes }

/** Reads a file of labels, each row with its fault where it has one. */
export function readLabelFile(text: string, check: LabelCheck): LabelFile {
  const [header, ...rows] = readRows(text)
  if ('fault' in header!) return { labels: [], faults: [header.fault] }
  const names = header!.cells.slice(0, header!.cells.findLastIndex((name) => name !== '') + 1)
  const faults = checkHeader(names)
  if (faults.length > 0) return { labels: [], faults }
  const labels: Record<string, unknown>[] = []
  for (const row of rows) {
    if ('fault' in row) {
      faults.push(row.fault)
      continue
    }
    const found = checkRow(names, row.cells, check)
    if (Array.isArray(found)) faults.push(...found.map((one) => ({ line: row.line, ...one })))
    else labels.push(found)
  }
  return { labels, faults }
}

type Row = { line: number; cells: string[] } | { fault: LabelFault }
type First = { cells: string[] } | { fault: LabelFault }

/** The rows with their lines; what comes after a quote that does not end cannot be read. */
function readRows(text: string): [First, ...Row[]] {
  const end = text.search(/[\r\n]|$/)
  // Excel writes semicolons where the comma is the decimal sign.
  const delimiter = text.slice(0, end).includes(';') ? ';' : ','
  const rows: Row[] = []
  let line = 1
  try {
    parse(text, {
      bom: true,
      delimiter,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
      onRecord: (cells: string[], { lines }) => {
        if (cells.some((cell) => cell !== '')) rows.push({ line, cells })
        line = lines + 1
        return null
      },
    })
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    rows.push({
      fault: { line, column: '', message: 'is not CSV: a quote does not end or is bare' },
    })
  }
  const first = rows[0] ?? { fault: { line: 1, column: '', message: 'is empty' } }
  return [first, ...rows.slice(1)]
}

function checkHeader(names: readonly string[]): LabelFault[] {
  const fault = (column: string, message: string) => ({ line: 1, column, message })
  return [
    ...names.flatMap((name, at) => {
      if (!labelColumns.includes(name)) {
        return [fault(name, `is no column of labels; these are: ${labelColumns.join(', ')}`)]
      }
      return names.indexOf(name) < at ? [fault(name, 'is there twice')] : []
    }),
    ...(names.includes('label') ? [] : [fault('label', 'is missing')]),
    ...(names.some((name) => subjectColumns.includes(name))
      ? []
      : [fault('subject', `is missing: one of ${subjectColumns.join(', ')}`)]),
  ]
}

type Faults = Omit<LabelFault, 'line'>[]

/** What a spreadsheet makes of an id: the one that was meant is not in the file. */
function findSpreadsheetFault(id: string): string | null {
  if (/^=.*"/.test(id)) return 'is a formula of a spreadsheet: write the id itself, as text'
  return /^\d(?:[.,]\d+)?E\+\d+$/i.test(id)
    ? 'is a number that a spreadsheet has rounded: format the column as text'
    : null
}

function checkRow(
  names: readonly string[],
  cells: readonly string[],
  { nowMs, codes }: LabelCheck,
): Record<string, unknown> | Faults {
  const beyond = cells.slice(names.length).some((cell) => cell !== '')
  if (cells.length < names.length || beyond) {
    return [{ column: '', message: `has ${cells.length} cells; the header has ${names.length}` }]
  }
  // An empty cell is no value.
  const given = names.flatMap((name, at) =>
    cells[at] === '' ? [] : [[name, fromCsvCell(cells[at]!)] as const],
  )
  const damaged = given.flatMap(([name, text]) => {
    const message = idColumns.includes(name) ? findSpreadsheetFault(text) : null
    return message === null ? [] : [{ column: name, message }]
  })
  if (damaged.length > 0) return damaged
  const isOfSubject = ([name]: readonly [string, string]) => subjectColumns.includes(name)
  const body: Record<string, unknown> = {
    subject: Object.fromEntries(given.filter(isOfSubject)),
    ...Object.fromEntries(given.filter((one) => !isOfSubject(one))),
  }
  const days = body.covered_days
  if (typeof days === 'string') body.covered_days = /^\d{1,9}$/.test(days) ? Number(days) : days
  const parsed = labelBody.safeParse(body, { error: describeFault })
  if (!parsed.success) {
    return parsed.error.issues.map(({ path, message }) => ({
      column: String(path.at(-1) ?? ''),
      message,
    }))
  }
  const { occurred_at: atMs, label } = parsed.data
  const unknown = findLabelFault(label, codes)
  if (unknown !== null) return [{ column: 'label', message: unknown }]
  if (atMs !== undefined && isAhead(atMs, nowMs)) {
    return [{ column: 'occurred_at', message: aheadFault }]
  }
  return body
}
