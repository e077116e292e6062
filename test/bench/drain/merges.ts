/** Waits for ClickHouse's merges, so that a measurement includes all of them or none. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

/** A merge may start some time after its parts exist. */
const quietMs = 3_000
const pollMs = 200

/** @returns true once no merge has run for three seconds, false at the time limit */
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

/** @throws when merges still run at the time limit */
export async function untilMergesEnd(clickhouse: Clickhouse, limitMs: number): Promise<void> {
  if (!(await haveMergesEnded(clickhouse, limitMs))) throw new Error('merges go on')
}
