/**
 * `npm run faults -- hangs [--only nats,clickhouse,postgres,console] [--nats 45] [--clickhouse 60]
 * [--postgres 60] [--console 30] [--rate 200] [--seed S]`: under a fleet, all processes of one
 * server after the other are stopped with SIGSTOP for so many seconds and go on with SIGCONT, as in
 * a machine that hangs; then one of two consoles is stopped in the middle of each of its jobs,
 * until the other one goes on with it, which must be within so many seconds. Prints what the fleet
 * and the reconciliation found. Exits with 1 when anything accepted is lost, twice or wrong, the
 * stages differ, or a process wrote a line that is not of its log.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Summary, toSummaryText } from '../../../deploy/fleet/check/summary.ts'
import {
  SERVER_NAMES,
  SERVICE_NAMES,
  type ServerName,
} from '../../../deploy/local/stack/settings.ts'
import { toReconciliationText } from '../../../services/console/cli/reconcile.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'
import { awaitFlow, readDifference, readSettled, startFleet } from '../support/fleet-load.ts'
import { signalTree } from '../support/process-tree.ts'
import { awaitAllReady } from '../support/stack-under-load/stack-children.ts'
import { hangConsoles } from './hang-console.ts'

type Hang = { server: ServerName | 'console'; seconds: number }

/** Load before, between and after the hangs: a backlog must drain under load. */
const calmSeconds = 12

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, {
    only: 'nats,clickhouse,postgres,console',
    nats: 45,
    clickhouse: 60,
    postgres: 60,
    console: 30,
    rate: 200,
    seed: randomSeed(),
  })
  const { rate, seed } = options
  const hangs = options.only.split(',').map((name) => {
    const server = toServer(name)
    return { server, seconds: options[server] }
  })
  const texts = hangs.map(({ server, seconds }) => `${server} ${seconds} s`)
  print(`${texts.join(', ')} at ${rate} events/s, --seed ${seed}`)
  reportBroken(await hangUnderLoad(hangs, { rate, seed }))
}

function toServer(name: string): Hang['server'] {
  const found = ([...SERVER_NAMES, 'console'] as const).find((server) => server === name)
  if (found === undefined) throw new Error(`there is no server "${name}"`)
  return found
}

/** @returns the broken guarantees */
async function hangUnderLoad(
  hangs: readonly Hang[],
  { rate, seed }: { rate: number; seed: number },
): Promise<string[]> {
  const running = await startStack()
  try {
    const hanging = hangs.reduce((sum, hang) => sum + toSeconds(hang), 0)
    const seconds = hanging + (hangs.length + 1) * calmSeconds
    const fleet = startFleet(running.dataDir, { rate, seconds, seed, settleSeconds: 120 + seconds })
    await awaitFlow(running)
    const late: string[] = []
    for (const { server, seconds: hangSeconds } of hangs) {
      await pause(1_000 * calmSeconds)
      if (server !== 'console') await hangOnce(running, { server, seconds: hangSeconds })
      else late.push(...(await hangConsoles(running, { secondsMax: hangSeconds })))
    }
    const summary = await fleet
    print(toSummaryText(summary))
    await awaitAllReady(running)
    const reconciliation = await readSettled(running, summary.tenant_id)
    const difference = await readDifference(running)
    print(`\n${toReconciliationText(reconciliation)}\n`)
    const stored = reconciliation.data.reduce((sum, hour) => sum + hour.stored, 0)
    return [
      ...late,
      ...judgeSummary(
        summary,
        hangs.some(({ server }) => server === 'nats'),
      ),
      ...(reconciliation.agrees && difference === 0 ? [] : ['the counts of the stages differ']),
      ...(stored >= summary.accepted ? [] : ['accepted events are missing']),
      ...findForeignLines(running),
    ]
  } finally {
    await running.discard()
  }
}

/** How long the fleet sends for it: a console is stopped in eight jobs, some of which run seldom. */
const toSeconds = ({ server, seconds }: Hang): number =>
  server === 'console' ? 8 * seconds : seconds

async function hangOnce(
  running: TestStack,
  { server, seconds }: { server: ServerName; seconds: number },
): Promise<void> {
  const stopped = signalTree(running.stack.pids[server], 'SIGSTOP')
  if (stopped.length === 0) throw new Error(`${server} does not run`)
  print(`${server}: ${stopped.length} processes stopped for ${seconds} s`)
  try {
    await pause(1_000 * seconds)
  } finally {
    for (const pid of stopped) resume(pid)
  }
}

function resume(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT')
  } catch {
    // It has ended, as a connection of Postgres may.
  }
}

/**
 * While nats-server hangs every submission is refused with 503, and a phone of the fleet gives up
 * after half a minute.
 */
const refusals = ['telemetry_unanswered', 'telemetry_refused']

function judgeSummary({ mismatches_by_kind: kinds }: Summary, mayRefuse: boolean): string[] {
  return Object.entries(kinds)
    .filter(([kind]) => !(mayRefuse && refusals.includes(kind)))
    .map(([kind, count]) => `the fleet found ${count} of ${kind}`)
}

/** Lines of the services' logs that are no JSON: the log is the only writer of a process. */
function findForeignLines({ dataDir }: TestStack): string[] {
  return SERVICE_NAMES.flatMap((name) => {
    const lines = readFileSync(join(dataDir, 'logs', `${name}.log`), 'utf8').split('\n')
    const foreign = lines.filter((line) => line !== '' && !line.startsWith('{'))
    return foreign.length === 0 ? [] : [`${name} wrote ${foreign.length} lines beside its log`]
  })
}
