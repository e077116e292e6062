/**
 * One tenant at full speed beside four others: the short form of `npm run faults -- starvation`.
 * Only the drill checks latencies, because other tests run beside this one.
 */
import { expect, it } from 'vitest'
import { judgeStarvation, runStarvation } from '../../faults/starvation/starvation.ts'

it('a tenant at full speed is limited, and others are not', async () => {
  // A machine that runs other tests as well does not reach the default.
  const bytesPerSecond = 256 * 1024
  const options = { aloneSeconds: 2, seconds: 6, connections: 32, bytesPerSecond }
  const result = await runStarvation(options)
  expect(judgeStarvation(result)).toEqual([])
})
