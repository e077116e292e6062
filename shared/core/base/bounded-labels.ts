/**
 * Metric labels from what clients send: each new value is a series that stays for the life of the
 * process, so their number is bounded.
 */

/** The label of every value beyond the bound. */
const otherLabel = 'other'

/**
 * Makes a function from a client's value to the label to count it under: the value itself for the
 * first `max` different ones, `other` for all that come later. A value keeps its label for good.
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
