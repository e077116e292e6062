/**
 * `npm run faults -- reconciliation [--rate 300] [--seconds 60] [--seed S]`: a fleet reports to the
 * local stack while each process, servers included, is killed once. Prints the reconciliation of
 * the fleet's tenant. Exits with 1 when its counts do not agree or are not complete, or the fleet
 * finds a fault.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { ReconciliationView } from '#shared/core/reconciliation/reconciliation-api.ts'
import { toSummaryText } from '../../../deploy/fleet/check/summary.ts'
import { toReconciliationText } from '../../../services/console/cli/reconcile.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'
import { readDifference, readSettled, startFleet } from '../support/fleet-load.ts'

const children = [
  ...(['scorer', 'ingest', 'delivery', 'console', 'api'] as const),
  ...(['clickhouse', 'postgres', 'nats'] as const),
]

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { rate: 300, seconds: 60, seed: randomSeed() })
  const running = await startStack()
  try {
    const fleet = startFleet(running.dataDir, options)
    await pause((1_000 * options.seconds) / 10)
    await killEach(running, (800 * options.seconds) / children.length)
    const summary = await fleet
    print(toSummaryText(summary))
    const reconciliation = await readSettled(running, summary.tenant_id)
    print(`\n${toReconciliationText(reconciliation)}\n`)
    const difference = await readDifference(running)
    print(`di_reconciliation_difference ${difference}`)
    const sum = (of: (hour: ReconciliationView['data'][number]) => number) =>
      reconciliation.data.reduce((total, hour) => total + of(hour), 0)
    const unannounced = sum((hour) => hour.stored - hour.accepted)
    print(`stored but counted by no edge, because one was killed: ${unannounced}`)
    reportBroken([
      ...(summary.ok ? [] : ['the fleet found a fault']),
      ...(reconciliation.agrees && difference === 0 ? [] : ['the counts do not agree']),
      // Every event with a 200 is stored, whatever the edges counted.
      ...(sum((hour) => hour.stored) >= summary.accepted ? [] : ['accepted events are missing']),
    ])
  } finally {
    await running.discard()
  }
}

/** Kills each process with kill -9 in sequence; the next kill waits until a new process runs. */
async function killEach(running: TestStack, everyMs: number): Promise<void> {
  for (const child of children) {
    const startedMs = performance.now()
    const pid = running.stack.pids[child]
    process.kill(pid, 'SIGKILL')
    const next = await until(`another ${child}`, () => {
      const now = running.stack.pids[child]
      return now === pid ? null : now
    })
    print(
      `${child}: killed ${pid}, now ${next}, after ${Math.round(performance.now() - startedMs)} ms`,
    )
    await pause(Math.max(0, everyMs - (performance.now() - startedMs)))
  }
}
