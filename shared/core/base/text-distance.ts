/** How far two texts are from each other, to name what was meant. */

/**
 * Insertions, removals and replacements of letters between two texts.
 * @returns a number above `most` as soon as there must be more; the work is `most` times the length
 */
export function countChanges(one: string, other: string, most: number): number {
  if (Math.abs(one.length - other.length) > most) return most + 1
  let before = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let row = 1; row <= one.length; row++) {
    const from = Math.max(1, row - most)
    const to = Math.min(other.length, row + most)
    const now: number[] = new Array(other.length + 1).fill(most + 1)
    if (from === 1) now[0] = row
    let least = now[0]!
    for (let column = from; column <= to; column++) {
      const replaced = before[column - 1]! + (one[row - 1] === other[column - 1] ? 0 : 1)
      const changed = Math.min(replaced, before[column]! + 1, now[column - 1]! + 1)
      now[column] = changed
      if (changed < least) least = changed
    }
    if (least > most) return most + 1
    before = now
  }
  return before[other.length]!
}
