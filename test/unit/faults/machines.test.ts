/**
 * The pure state machines against their models, through random histories with every race. `npm run
 * faults -- machines` runs longer histories. A failure prints its seed and the shortest history.
 */
import { expect, it } from 'vitest'
import { runDeliveryRules } from '../../faults/machines/delivery-rules.ts'
import { runGroupCommit } from '../../faults/machines/group-commit.ts'
import { runLease } from '../../faults/machines/lease.ts'
import { seed } from '../../support/process/seed.ts'

/** A run proves nothing about cases that it never reached. */
function expectSeen(seen: Record<string, number>, ...whats: string[]): void {
  for (const what of whats) expect(seen[what] ?? 0, what).toBeGreaterThan(10)
}

it('group commit settles an event as stored only when it is, once, under one id', async () => {
  const { seen } = await runGroupCommit({ runs: 300, seed })
  expectSeen(seen, 'retry', 'duplicate', 'late', 'refused', 'stored but settled as unknown')
})

it('no edge accepts an old secret once a rotation has returned, and never two', async () => {
  const { seen } = await runLease({ runs: 400, seed })
  expectSeen(seen, 'accepted', 'refused: lease', 'announcement without an acknowledgement')
  expectSeen(seen, 'rotation confirmed by every edge', 'rotation that outlasted a lease')
  expectSeen(seen, 'announced again as the mark came')
})

it('a delivery is never early, has eleven attempts at most, and its circuit opens', async () => {
  const { seen } = await runDeliveryRules({ runs: 200, seed })
  expectSeen(
    seen,
    'delivered',
    'failed',
    'pending',
    'replayed',
    'delayed by Retry-After',
    'circuit opens',
  )
})
