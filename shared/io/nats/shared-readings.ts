/** Lets the gauges of one scrape share one request to the broker: they are collected together. */

const maxAgeMs = 500

/**
 * @param read reads one key; a failure counts as no reading
 * @returns the reading of a key, at most 500 ms old; null when the broker does not answer, because
 *   an old number would look like a healthy one
 */
export function shareReadings<Key, Reading>(
  read: (key: Key) => Promise<Reading | null>,
): (key: Key) => Promise<Reading | null> {
  const readings = new Map<Key, { atMs: number; reading: Promise<Reading | null> }>()
  return (key) => {
    let last = readings.get(key)
    if (last === undefined || performance.now() - last.atMs > maxAgeMs) {
      last = { atMs: performance.now(), reading: read(key).catch(() => null) }
      readings.set(key, last)
    }
    return last.reading
  }
}
