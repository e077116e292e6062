/**
 * Runs a query over ClickHouse's HTTP interface as an analyst's user, whose rights and limits apply
 * to it. The answer is read as it arrives: rows up to a bound, or the bytes of a CSV.
 */

import { sqlCsvRowBytesMax } from '#shared/core/base/limits/analytics.ts'
import { type CsvCell, type CsvForm, toCsvRow, toCsvStart } from '#shared/core/http/csv.ts'

export type AnalystLogin = { url: string; user: string; password: string; database: string }

export type AnalystStatement = {
  sql: string
  /** Values of `{name:Type}`. */
  parameters: Record<string, string>
  /**
   * Only a SELECT is run: no EXPLAIN, whose estimates count rows of other tenants. The engine lets
   * an analyst explain nothing within a SELECT.
   */
  isSelect?: boolean
}

export type SqlColumn = { name: string; type: string }

export type SqlRows = {
  columns: SqlColumn[]
  rows: unknown[][]
  /** There are more rows than the bounds let through. */
  truncated: boolean
  /** What the engine read; null when it does not say. */
  read: { rows: number; bytes: number } | null
}

/** The engine's error: its code and its text without version and stack. */
export class AnalystQueryError extends Error {
  readonly engineCode: number
  readonly status: number

  constructor(engineCode: number, status: number, message: string) {
    super(message)
    this.name = 'AnalystQueryError'
    this.engineCode = engineCode
    this.status = status
  }
}

/** The code of an engine that does not know the user or the password. */
export const authenticationFailed = 516

/** The code of an engine that runs as many queries of the user as it may. */
export const tooManyQueries = 202

/** The query has a FORMAT of its own, so its answer cannot be read. */
export class FormatClauseError extends Error {}

/** A row has more bytes than the bounds let through; the message is for a person. */
export class RowTooLargeError extends Error {}

const rowsFormat = 'JSONCompactEachRowWithNamesAndTypes'
/** Rows of a CSV that are written at once. */
const csvCharacters = 64 * 1024
const errorCharactersMax = 2_000

/**
 * @param bounds of what is kept; reading ends with the first byte beyond them
 * @throws AnalystQueryError, FormatClauseError, RowTooLargeError, and what `fetch` throws
 */
export async function queryRows(
  login: AnalystLogin,
  statement: AnalystStatement,
  bounds: { rowsMax: number; bytesMax: number; signal: AbortSignal },
): Promise<SqlRows> {
  const response = await send(login, statement, rowsFormat, bounds.signal)
  const found: SqlRows = { columns: [], rows: [], truncated: false, read: readSummary(response) }
  let names: string[] | null = null
  for await (const line of linesOf(response, bounds.bytesMax)) {
    if (line === null || found.rows.length >= bounds.rowsMax) {
      found.truncated = true
      break
    }
    const row = JSON.parse(line) as unknown[]
    if (names === null) names = row as string[]
    else if (found.columns.length < names.length) {
      found.columns = names.map((name, at) => ({ name, type: String(row[at]) }))
    } else found.rows.push(row)
  }
  if (found.truncated && found.rows.length === 0) {
    const most = `the ${bounds.bytesMax} bytes of a page`
    throw new RowTooLargeError(`A row has more than ${most}: take it as CSV.`)
  }
  return found
}

/**
 * The whole answer as CSV with a head, safe to open in a spreadsheet, in pieces.
 * @throws AnalystQueryError, FormatClauseError; the pieces throw what `fetch` throws
 */
export async function queryCsv(
  login: AnalystLogin,
  statement: AnalystStatement,
  { form, signal }: { form: CsvForm; signal: AbortSignal },
): Promise<AsyncGenerator<string, void>> {
  return toCsv(await send(login, statement, rowsFormat, signal), form)
}

async function* toCsv(response: Response, form: CsvForm): AsyncGenerator<string, void> {
  let names: string[] | null = null
  let numeric: boolean[] | null = null
  let piece = toCsvStart(form)
  for await (const line of linesOf(response, Number.POSITIVE_INFINITY, sqlCsvRowBytesMax)) {
    const values = JSON.parse(line!) as unknown[]
    if (names === null) {
      names = values as string[]
      piece += toCsvRow(names, form)
    } else if (numeric === null) numeric = values.map((type) => isNumeric(String(type)))
    else {
      const cells = values.map((value, at) => toCsvCell(value, numeric![at]!))
      piece += toCsvRow(cells, form)
    }
    if (piece.length < csvCharacters) continue
    yield piece
    piece = ''
  }
  if (piece !== '') yield piece
}

const isNumeric = (type: string): boolean =>
  /^(?:Nullable\(|LowCardinality\()*(?:U?Int|Float|Decimal)/.test(type)

function toCsvCell(value: unknown, isNumber: boolean): CsvCell {
  if (value === null) return null
  if (typeof value === 'string') return isNumber ? { digits: value } : value
  return typeof value === 'number' ? value : JSON.stringify(value)
}

async function send(
  login: AnalystLogin,
  { sql, parameters, isSelect = false }: AnalystStatement,
  format: string,
  signal: AbortSignal,
): Promise<Response> {
  const url = new URL(login.url)
  const settings = new URLSearchParams({
    database: login.database,
    default_format: format,
    session_timezone: 'UTC',
    date_time_output_format: 'iso',
    // Beyond 2^53 a number of JavaScript is another one.
    output_format_json_quote_64bit_integers: '1',
    output_format_json_quote_decimals: '1',
    // Else NaN and infinities are null.
    output_format_json_quote_denormals: '1',
  })
  url.search = `${settings}&${encodeParameters(parameters)}`
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'x-clickhouse-user': login.user,
      'x-clickhouse-key': login.password,
    },
    body: isSelect ? toSelect(sql) : sql,
    redirect: 'error',
    signal,
  })
  if (!response.ok) {
    const error = toQueryError(response.status, await response.text())
    throw isSelect ? withoutOpening(error) : error
  }
  const given = response.headers.get('x-clickhouse-format')
  if (given !== null && given !== format) {
    await response.body?.cancel()
    throw new FormatClauseError(given)
  }
  return response
}

const selectOpening = 'select * from (\n'

/** The statement as a subquery, without the semicolons at its end. */
function toSelect(sql: string): string {
  let statement = sql.trimEnd()
  while (statement.endsWith(';')) statement = statement.slice(0, -1).trimEnd()
  return `${selectOpening}${statement}\n)`
}

/** The error with the places of the text that a person wrote. */
function withoutOpening({ engineCode, status, message }: AnalystQueryError): AnalystQueryError {
  const own = message
    .replace(/(?<=failed at position )\d+/, (at) => `${Math.max(1, +at - selectOpening.length)}`)
    .replace(/(?<=\(line )\d+(?=, col )/, (line) => `${Math.max(1, +line - 1)}`)
  return new AnalystQueryError(engineCode, status, own)
}

/** Parameters as a query has them in its URL, in ASCII. */
export function encodeParameters(parameters: AnalystStatement['parameters']): string {
  const named = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    named.append(`param_${name}`, escapeValue(value))
  }
  return named.toString()
}

/** A value as the engine reads parameters: tab-separated text. */
const escapeValue = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n')

/**
 * The lines within the first `bytesMax` bytes, and null when there is more than those.
 * @throws RowTooLargeError for a line of more than `lineBytesMax`
 */
async function* linesOf(
  response: Response,
  bytesMax: number,
  lineBytesMax = bytesMax,
): AsyncGenerator<string | null, void> {
  if (response.body === null) return
  let left = bytesMax
  let pieces: Uint8Array[] = []
  let kept = 0
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const within = chunk.subarray(0, left)
    left -= within.length
    let from = 0
    for (let end = within.indexOf(lineEnd); end !== -1; end = within.indexOf(lineEnd, from)) {
      yield Buffer.concat([...pieces, within.subarray(from, end)]).toString()
      pieces = []
      kept = 0
      from = end + 1
    }
    if (within.length < chunk.length) return yield null
    pieces.push(within.subarray(from))
    kept += within.length - from
    if (kept > lineBytesMax) {
      throw new RowTooLargeError(`A row has more than ${lineBytesMax} bytes: select less of it.`)
    }
  }
  const rest = Buffer.concat(pieces).toString()
  if (rest !== '') yield rest
}

const lineEnd = 0x0a

function readSummary(response: Response): SqlRows['read'] {
  try {
    const summary = JSON.parse(response.headers.get('x-clickhouse-summary') ?? '') as {
      read_rows: string
      read_bytes: string
    }
    return { rows: Number(summary.read_rows), bytes: Number(summary.read_bytes) }
  } catch {
    return null
  }
}

/** `Code: 62. DB::Exception: Syntax error: ... (SYNTAX_ERROR) (version 26.7.1)` */
function toQueryError(status: number, text: string): AnalystQueryError {
  const [head = '', code = '0'] = /^Code: (\d+)\. DB::Exception: /.exec(text) ?? []
  const version = text.lastIndexOf(' (version ')
  const message = text.slice(head.length, version === -1 ? undefined : version).trimEnd()
  return new AnalystQueryError(Number(code), status, message.slice(0, errorCharactersMax))
}
