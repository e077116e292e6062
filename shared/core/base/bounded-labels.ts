/**
 * Metric labels from client values. Each new value is a series for the life of the process, so
 * their number is bounded.
 */

/** The label of every value beyond the bound. */
const otherLabel = 'other'

/**
 * Makes a function from a client's value to its label: the value itself for the first `max`
 * different values, `other` for later ones. A value never changes its label.
 */
export function createBoundedLabel(max = 100): (value: string) => string {
  const labels = new Set<string>()
  return (value) => {
    if (labels.has(value)) return value
    if (labels.size >= max) return otherLabel
    labels.add(value)
    return value
  }
}
