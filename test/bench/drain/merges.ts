/** Waits for ClickHouse's merges, so that what is measured has all of them or none beside it. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

/** One may begin some time after what it merges is there. */
const quietMs = 3_000
const pollMs = 200

/** @returns true once there has been none for three seconds, false when that was not so in time */
export async function haveMergesEnded(clickhouse: Clickhouse, limitMs: number): Promise<boolean> {
  const begunMs = performance.now()
  for (let quietSinceMs = begunMs; performance.now() - quietSinceMs < quietMs; ) {
    if (performance.now() - begunMs > limitMs) return false
    const query = 'select count() from system.merges'
    const result = await clickhouse.query({ query, format: 'TabSeparated' })
    if (Number(await result.text()) > 0) quietSinceMs = performance.now()
    await pause(pollMs)
  }
  return true
}

/** @throws when merges have not been over for three seconds in time */
export async function untilMergesEnd(clickhouse: Clickhouse, limitMs: number): Promise<void> {
  if (!(await haveMergesEnded(clickhouse, limitMs))) throw new Error('merges go on')
}
