/** A restart of every edge under load, the short form of the drill `rolling`. */
import { expect, it } from 'vitest'
import { judgeRoll, rollEdges } from '../../faults/rolling/roll-edges.ts'

it('edges restarted one by one behind a balancer refuse nothing and lose nothing', async () => {
  const result = await rollEdges({ rounds: 1, ratePerSecond: 100 })
  expect(judgeRoll(result)).toEqual([])
  // The restarts must have had an effect.
  expect(result.restarts).toHaveLength(2)
  expect(result.accepted).toBeGreaterThan(300)
  for (const connections of result.connections) expect(connections).toBeGreaterThan(50)
})
