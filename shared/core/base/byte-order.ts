/**
 * ClickHouse's order of texts: by their bytes. JavaScript compares units of UTF-16, which differs
 * beyond the first plane.
 */
export function compareBytes(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b))
}
