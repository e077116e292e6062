/** Tables of generated pages. */

/** @returns a table with aligned columns */
export function toMarkdown(names: string[], rows: string[][]): string {
  const escaped = rows.map((row) => row.map((text) => text.replaceAll('|', '\\|')))
  const widths = names.map((name, at) =>
    Math.max(name.length, ...escaped.map((row) => row[at]!.length)),
  )
  const line = (cells: string[]) =>
    `| ${cells.map((text, at) => text.padEnd(widths[at]!)).join(' | ')} |`
  return [line(names), line(widths.map((width) => '-'.repeat(width))), ...escaped.map(line)].join(
    '\n',
  )
}
