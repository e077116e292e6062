/** How results look to a person: aligned columns without lines, and fields one below the other. */

/** A table with a header; numbers are the caller's to format. */
export function toTable(header: string[], rows: string[][]): string {
  const lines = [header, ...rows]
  const widths = header.map((_, column) =>
    Math.max(...lines.map((line) => (line[column] ?? '').length)),
  )
  return lines
    .map((line) => line.map((text, column) => text.padEnd(widths[column]!)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n')
}

/** Names and values, the values aligned. Those that are undefined are left out. */
export function toFields(fields: Record<string, string | number | null | undefined>): string {
  const shown = Object.entries(fields).filter(([, value]) => value !== undefined)
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${value ?? '-'}`).join('\n')
}

/** An ISO time in short form: `2026-01-02 03:04:05Z`. */
export function toTime(iso: string | null): string {
  return iso === null ? '-' : `${iso.slice(0, 19).replace('T', ' ')}Z`
}

/** Escapes control and invisible characters: clients choose this text, and it goes to a terminal. */
export function toVisible(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`)
}
