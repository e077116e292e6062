/**
 * One tenant at full speed beside four others: the short form of `npm run faults -- starvation`.
 * Latencies are judged by the drill alone: here other tests run beside it.
 */
import { expect, it } from 'vitest'
import { judgeStarvation, runStarvation } from '../../faults/starvation/starvation.ts'

it('a tenant at full speed is refused itself, and others are not', async () => {
  // A machine that runs other tests as well does not reach the default.
  const bytesPerSecond = 256 * 1024
  const options = { aloneSeconds: 2, seconds: 15, connections: 32, bytesPerSecond }
  const result = await runStarvation(options)
  expect(judgeStarvation(result)).toEqual([])
})
