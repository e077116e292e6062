/** Counts of events by two actions: `matrix.ALLOW.REVIEW` changed from ALLOW to REVIEW. */
import { actions } from '#shared/core/scoring/score.ts'

export type ActionMatrix = Record<string, Record<string, number>>

/** A matrix of zeros. */
export function emptyMatrix(): ActionMatrix {
  const zeros = () => Object.fromEntries(actions.map((action) => [action, 0]))
  return Object.fromEntries(actions.map((action) => [action, zeros()]))
}

/**
 * Adds events to a matrix.
 * @param events counts by the index of the first action, then of the second
 * @returns how many events were added
 */
export function addToMatrix(matrix: ActionMatrix, events: readonly number[][]): number {
  let sum = 0
  actions.forEach((from, first) => {
    actions.forEach((to, second) => {
      const count = events[first]![second]!
      matrix[from]![to]! += count
      sum += count
    })
  })
  return sum
}
