/**
 * Orderly stops under load, the short form of the drill `stops`: a request that lacks its last byte
 * at the SIGTERM is answered, the process ends in order, and nothing is lost or there twice.
 */
import { expect, it } from 'vitest'
import { judgeFindings, judgeStop, stopUnderLoad } from '../faults/stops/run-stops.ts'
import { seed } from '../support/process/seed.ts'

it('a process told to end finishes what was begun, and everything accepted arrives once', async () => {
  const { stops, findings, load, webhooks } = await stopUnderLoad({
    each: 1,
    ratePerSecond: 20,
    receiverMs: 500,
    silentShare: 0.25,
    seed,
  })
  expect(stops.flatMap(judgeStop), `seed ${seed}`).toEqual([])
  expect(judgeFindings(findings), `seed ${seed}`).toEqual([])
  // It must have been about something.
  expect(stops).toHaveLength(5)
  expect(load.accepted.size).toBeGreaterThan(100)
  expect(webhooks).toBeGreaterThan(10)
})
