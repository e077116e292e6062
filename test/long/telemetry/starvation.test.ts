/**
 * One tenant at full speed beside four others: the short form of `npm run faults -- starvation`.
 * Only the drill checks latencies, because other tests run beside this one.
 */
import { expect, it } from 'vitest'
import { judgeStarvation, runStarvation } from '../../faults/starvation/starvation.ts'

it('a tenant at full speed is limited while others send, and others are not', async () => {
  // How busy a machine is that runs other tests as well is not known, so the tenant has a rate.
  const bytesPerSecond = 64 * 1024
  const options = { aloneSeconds: 2, seconds: 4, loneSeconds: 3, connections: 32, bytesPerSecond }
  const result = await runStarvation(options)
  expect(judgeStarvation(result)).toEqual([])
})
