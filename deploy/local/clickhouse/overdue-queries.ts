// The engine ends a query at its time limit only between blocks, and one call of a function can take
// minutes for a block: `countMatches(repeat('a', 300000), 'a.*b|a')`. Neither the time limit, a
// `KILL QUERY` nor the end of the client's connection ends it, so the engine has to end with it.
import { setTimeout as sleep } from 'node:timers/promises'
import { readerUser } from '#shared/core/analytics/analyst-access.ts'
import { type EngineAddress, queryEngine } from './query-engine.ts'
import { analystUser } from './server-config.ts'

const everyMs = 10_000
const answerLimitMs = 5_000
/** A block of usual rows takes 7 s at most; a busy machine needs several times as long. */
const graceSeconds = 30

/** Queries of analysts and of the console's SQL page. The service's own are written by us. */
const overdue = `
  SELECT query_id FROM system.processes
  WHERE user IN ('${analystUser}', '${readerUser}')
    AND elapsed > toFloat64(Settings['max_execution_time']) + ${graceSeconds}
  LIMIT 1`

/** Looks repeatedly. @returns the id of the first query that outlived its time limit */
export async function findOverdueQuery(server: EngineAddress): Promise<string> {
  while (true) {
    await sleep(everyMs)
    const found = await queryEngine(server, overdue, answerLimitMs)
    if (found !== null && found !== '') return found.trim()
  }
}
