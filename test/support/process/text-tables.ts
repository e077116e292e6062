/** Tables of text in tests, for rows that are easier to read so than as objects. */

/** Rows with their cells between ` | `; a line that is indented goes on with its row. */
export const readRows = (table: string): string[][] =>
  table
    .trim()
    .split(/\n(?! )/)
    .map((row) => row.replaceAll(/\s+/g, ' ').split(' | '))
