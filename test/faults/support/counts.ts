/** Counters by name, as drills print them. */

/** Adds to a counter, which begins at 0. */
export function count<Key>(counts: Map<Key, number>, key: Key, by = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + by)
}

/** `200: 5, 503: 1` */
export function describeCounts(
  counts: ReadonlyMap<string | number, number> | Partial<Record<string, number>>,
): string {
  const entries = counts instanceof Map ? [...counts] : Object.entries(counts)
  return entries.map(([name, times]) => `${name}: ${times}`).join(', ')
}
