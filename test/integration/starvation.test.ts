/**
 * One tenant at full speed beside four others: the short form of `npm run faults -- starvation`.
 * Latencies are judged by the drill alone: here other tests run beside it.
 */
import { expect, it } from 'vitest'
import { judgeStarvation, runStarvation } from '../faults/starvation.ts'

it('a tenant at full speed is refused itself, and others are not', async () => {
  const result = await runStarvation({ aloneSeconds: 2, seconds: 15, connections: 32 })
  expect(judgeStarvation(result)).toEqual([])
})
