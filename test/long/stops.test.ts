/**
 * Orderly stops under load, the short form of the drill `stops`: a request that lacks its last byte
 * at the SIGTERM is answered, the process stops in order, and nothing is lost or duplicated.
 */
import { expect, it } from 'vitest'
import { judgeFindings, judgeStop, stopUnderLoad } from '../faults/stops/run-stops.ts'
import { seed } from '../support/process/seed.ts'

it('a stopping process finishes its requests, and every accepted event arrives once', async () => {
  const { stops, findings, load, webhooks } = await stopUnderLoad({
    each: 1,
    ratePerSecond: 20,
    receiverMs: 500,
    silentShare: 0.25,
    seed,
  })
  expect(stops.flatMap(judgeStop), `seed ${seed}`).toEqual([])
  expect(judgeFindings(findings), `seed ${seed}`).toEqual([])
  // The stops must have had an effect.
  expect(stops).toHaveLength(5)
  expect(load.accepted.size).toBeGreaterThan(100)
  expect(webhooks).toBeGreaterThan(10)
})
