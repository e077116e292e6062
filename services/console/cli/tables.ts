/**
 * Text for the terminal: tables with aligned columns, and lists of fields. Texts that people and
 * clients typed are escaped here, so none steers the terminal or adds a row.
 */
import { toVisible } from '#shared/core/base/visible-text.ts'

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

/** Names and aligned values. Undefined values are omitted. */
export function toFields(fields: Record<string, string | number | null | undefined>): string {
  const shown = Object.entries(fields).filter(([, value]) => value !== undefined)
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown
    .map(([name, value]) => `${name.padEnd(width)}  ${toVisible(String(value ?? '-'))}`)
    .join('\n')
}

/** An ISO time in short form: `2026-01-02 03:04:05Z`. */
export function toTime(iso: string | null): string {
  return iso === null ? '-' : `${iso.slice(0, 19).replace('T', ' ')}Z`
}
