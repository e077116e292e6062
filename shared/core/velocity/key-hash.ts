/** Hashes of the ids of devices, users and sessions: the keys of activity, and of shards. */
import { hash } from 'node:crypto'
import type { ActivityKind } from './activity-counts.ts'

// A buffer for each digest costs more than the digest.
const digest = new DataView(new ArrayBuffer(8))

/** As ClickHouse computes `reinterpretAsUInt64(SHA256(text))`, in decimal. */
export function toHash(text: string): string {
  const bytes = hash('sha256', text, 'binary')
  for (let at = 0; at < 8; at++) digest.setUint8(at, bytes.charCodeAt(at))
  return digest.getBigUint64(0, true).toString()
}

export function toKeyHash(kind: ActivityKind, id: string): string {
  return toHash(`${kind} ${id}`)
}
