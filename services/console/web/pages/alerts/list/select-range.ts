/** What a click with the Shift key selects. Pure. */

/**
 * All between the last one that was clicked and this one, with both; this one alone when the last
 * is not in the list any more.
 */
export function toRange(order: readonly string[], from: string | null, to: string): string[] {
  const [a, b] = [order.indexOf(from ?? ''), order.indexOf(to)]
  if (a < 0 || b < 0) return [to]
  return order.slice(Math.min(a, b), Math.max(a, b) + 1)
}
