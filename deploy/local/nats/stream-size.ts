// The room of the telemetry stream in a new data folder, by its disk.

import { globSync, statfsSync } from 'node:fs'

import { telemetryStreamBytes, telemetryStreamBytesMin } from '#shared/core/base/limits/stream.ts'

/** A quarter of what is free: ClickHouse and Postgres keep the same events on the same disk. */
const SHARE_OF_FREE = 0.25

/**
 * What the telemetry stream of a data folder gets when it is made, in bytes. Undefined where the
 * stream is there already: it keeps its size.
 */
export function chooseStreamBytes(dataDir: string): number | undefined {
  const made = globSync('nats/jetstream/*/streams/TELEMETRY', { cwd: dataDir })
  if (made.length > 0) return undefined
  const { bavail, bsize } = statfsSync(dataDir)
  const bytes = Math.floor(SHARE_OF_FREE * bavail * bsize)
  return Math.max(telemetryStreamBytesMin, Math.min(telemetryStreamBytes, bytes))
}
