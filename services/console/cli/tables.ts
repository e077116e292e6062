/**
 * Text for the terminal: tables with aligned columns, and lists of fields. Texts that people and
 * clients typed are escaped here, so none steers the terminal or adds a row.
 */

import { toVisible } from '#shared/core/base/visible-text.ts'
import type { Connection } from '#shared/core/network/connection-answer.ts'

/** A table with a header and aligned columns. */
export function toTable(header: string[], rows: string[][]): string {
  const lines = [header, ...rows].map((line) => line.map(toVisible))
  const widths = header.map((_, column) =>
    Math.max(...lines.map((line) => (line[column] ?? '').length)),
  )
  return lines
    .map((line) => line.map((text, column) => text.padEnd(widths[column]!)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n')
}

/** A header, and the field of a row or what is made of a row. Fields `..._at` are times. */
export type Column<Row> = readonly [
  header: string,
  value: (keyof Row & string) | ((row: Row) => string | number | null | undefined),
]

/** A table of rows by its columns; `-` where there is no value. */
export function toColumns<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const show = (row: Row, value: Column<Row>[1]): string => {
    if (typeof value === 'function') return String(value(row) ?? '-')
    const field = row[value]
    if (value.endsWith('_at')) return toTime(field as string | null)
    return String(field ?? '-')
  }
  return toTable(
    columns.map(([header]) => header),
    rows.map((row) => columns.map(([, value]) => show(row, value))),
  )
}

/** Names and aligned values. Undefined values are omitted. */
export function toFields(
  fields: Record<string, string | number | boolean | null | undefined>,
): string {
  const shown = Object.entries(fields).filter(([, value]) => value !== undefined)
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown
    .map(([name, value]) => `${name.padEnd(width)}  ${toVisible(String(value ?? '-'))}`)
    .join('\n')
}

/** In one line: country, operator, network and what the network is. */
export function toConnectionText(connection: Connection | null): string {
  if (connection === null) return 'not measured'
  const { country, asn, organization, network, kinds } = connection
  const operator = [asn === null ? null : `AS${asn}`, organization]
  return [country, operator.filter((one) => one !== null).join(' '), network, ...kinds]
    .filter((one) => one !== null && one !== '')
    .join(', ')
}

/** An ISO time in short form: `2026-01-02 03:04:05Z`. */
export function toTime(iso: string | null): string {
  return iso === null ? '-' : `${iso.slice(0, 19).replace('T', ' ')}Z`
}
