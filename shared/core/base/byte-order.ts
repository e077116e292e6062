/**
 * Compares texts by their UTF-8 bytes, as ClickHouse does. JavaScript compares UTF-16 code units,
 * which differs outside the Basic Multilingual Plane.
 * @returns negative, 0 or positive
 */
export function compareBytes(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b))
}
