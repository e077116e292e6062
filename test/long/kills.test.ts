/**
 * Each process of a whole stack is killed once under load, the short form of the drill `kills`:
 * every accepted event is stored once in every store, and every device's history equals the
 * client's.
 */
import { expect, it } from 'vitest'
import { judgeBreaches } from '../faults/support/stack-under-load/find-breaches.ts'
import { killUnderLoad } from '../faults/support/stack-under-load/stack-under-load.ts'
import { seed } from '../support/process/seed.ts'

it('kill -9 of any process loses no accepted event and duplicates nothing', async () => {
  const { kills, findings, evidence } = await killUnderLoad({
    seed,
    each: 1,
    seconds: 8,
    ratePerSecond: 150,
    tenants: 2,
    eventsPerDevice: 12,
    hurryClaims: true,
  })
  expect(judgeBreaches(findings), `seed ${seed}`).toEqual([])
  // The kills must have had an effect. A scorer killed between two batches leaves nothing to
  // redeliver; the whole drill, which kills it forty times, requires that too.
  expect(kills).toHaveLength(8)
  expect(evidence.lostAnswers + evidence.resolved, `seed ${seed}`).toBeGreaterThan(0)
  expect(findings.accepted).toBeGreaterThan(500)
  expect(findings.webhooks).toBeGreaterThan(20)
})
