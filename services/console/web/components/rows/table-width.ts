/** A column without a width of its own has at least this one. */
const leastRem = 8

/**
 * The width of a table, in rem, at which a column that takes what is left is not squeezed away:
 * narrower, the table scrolls.
 */
export function toLeastRem(columns: readonly { width?: string }[]): number {
  let fixedRem = 0
  let share = 0
  for (const { width } of columns) {
    const value = Number.parseFloat(width ?? '')
    if (width?.endsWith('rem')) fixedRem += value
    else if (width?.endsWith('%')) share += value / 100
    else fixedRem += leastRem
  }
  return Math.ceil(fixedRem / (1 - share))
}
