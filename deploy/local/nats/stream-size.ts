// The size of the telemetry stream in a new data folder, by its disk.

import { globSync, statfsSync } from 'node:fs'

import { telemetryStreamBytes, telemetryStreamBytesMin } from '#shared/core/base/limits/stream.ts'

/** A quarter of the free space: ClickHouse and Postgres keep the same events on the same disk. */
const SHARE_OF_FREE = 0.25

/**
 * The initial size of each telemetry stream of a data folder, in bytes. Undefined when there is
 * one: existing streams keep their size.
 */
export function chooseStreamBytes(dataDir: string, streams: number): number | undefined {
  const made = globSync('nats/jetstream/*/streams/TELEMETRY', { cwd: dataDir })
  if (made.length > 0) return undefined
  const { bavail, bsize } = statfsSync(dataDir)
  const bytes = Math.floor((SHARE_OF_FREE * bavail * bsize) / streams)
  return Math.max(telemetryStreamBytesMin, Math.min(telemetryStreamBytes, bytes))
}
