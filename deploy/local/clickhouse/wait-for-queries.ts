// Runs before the engine may stop: as an ordinary client it waits until no query runs. This engine
// has no queue of asynchronous inserts (`async_insert` is accepted and every insert is written
// before its answer), so idle connections then have no data to lose. Only a Buffer table, which the
// service does not use, keeps acknowledged rows in memory until the tables shut down.
import { setTimeout as sleep } from 'node:timers/promises'
import { type EngineAddress, queryEngine } from './query-engine.ts'

const othersRunning = 'SELECT count() FROM system.processes WHERE query_id != currentQueryID()'
const pauseMs = 50

/** Resolves when the server runs no query but this one, does not answer, or `maxMs` have passed. */
export async function waitForQueries(server: EngineAddress, maxMs: number): Promise<void> {
  const deadline = performance.now() + maxMs
  const leftMs = () => deadline - performance.now()
  while (leftMs() > pauseMs) {
    const running = await queryEngine(server, othersRunning, leftMs())
    if (running === null || Number.parseInt(running, 10) === 0) return
    await sleep(pauseMs)
  }
}
