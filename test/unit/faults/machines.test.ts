/**
 * The pure state machines against their models, through random histories with every race. `npm run
 * faults -- machines [--runs 10000]` runs more of them. A failure prints its seed and the shortest
 * history.
 */
import { expect, it } from 'vitest'
import { drillLimitMs, drillOptions, tellCounts } from '../../faults/drill-options.ts'
import { runGroupCommit } from '../../faults/machines/group-commit.ts'
import { runLease } from '../../faults/machines/lease.ts'
import type { MachineReport } from '../../faults/machines/run-machine.ts'
import { seed } from '../../support/process/seed.ts'

const { runs } = drillOptions({ runs: 300 }, { runs: 10_000 })

/** A run proves nothing about cases that it never reached. */
function expectSeen(machine: string, { seen }: MachineReport, ...whats: string[]): void {
  tellCounts(machine, seen)
  for (const what of whats) expect(seen[what] ?? 0, what).toBeGreaterThan(10)
}

it(
  'group commit settles an event as stored only when it is, once, under one id',
  async () => {
    expectSeen(
      'group commit',
      await runGroupCommit({ runs, seed }),
      ...['retry', 'duplicate', 'late', 'refused', 'stored but settled as unknown'],
    )
  },
  drillLimitMs,
)

it(
  'no edge accepts an old secret once a rotation has returned, and never two',
  async () => {
    expectSeen(
      'lease',
      await runLease({ runs: Math.ceil(runs * 1.3), seed }),
      ...['accepted', 'refused: lease', 'announcement without an acknowledgement'],
      ...['rotation confirmed by every edge', 'rotation that outlasted a lease'],
      'announced again as the mark came',
    )
  },
  drillLimitMs,
)
