/**
 * `npm run faults -- machines [--runs 10000] [--seed S] [--only NAME]`: random histories of
 * commands, with races and faults in every order, run by the code and by a model. Machines on
 * PostgreSQL or NATS make fewer histories. A broken guarantee prints the shortest history that
 * breaks it and exits with 1.
 */
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createConsoleRig } from '../../support/http/console-rig.ts'
import { migratePostgres } from '../../support/servers/databases.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'
import { print, randomSeed, readOptions } from '../support/drill.ts'
import { runDelivery } from './delivery.ts'
import { runDeliveryRules } from './delivery-rules.ts'
import { runDisposition } from './disposition.ts'
import { runGroupCommit } from './group-commit.ts'
import { runLease } from './lease.ts'
import { runRotation } from './rotation.ts'
import type { MachineOptions, MachineReport } from './run-machine.ts'

type Machine = {
  name: string
  /** Share of `--runs`: a history on a real database takes up to a thousand times longer. */
  share: number
  run: (options: MachineOptions, servers: Servers) => Promise<MachineReport>
}

type Servers = { database: TestPostgres; postgres: Postgres }

const machines: Machine[] = [
  { name: 'group commit', share: 1, run: (options) => runGroupCommit(options) },
  { name: 'lease', share: 0.5, run: (options) => runLease(options) },
  { name: 'delivery rules', share: 1, run: (options) => runDeliveryRules(options) },
  { name: 'delivery', share: 0.1, run: (options, { postgres }) => runDelivery(options, postgres) },
  {
    name: 'disposition',
    share: 0.03,
    run: (options, { postgres }) => runDisposition(options, postgres),
  },
  { name: 'rotation', share: 0.003, run: (options, servers) => rotateOnServers(options, servers) },
]

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { runs, seed, only } = readOptions(args, { runs: 10_000, seed: randomSeed(), only: '' })
  print(`--runs ${runs} --seed ${seed}`)
  const database = await startPostgres()
  const url = await database.createDatabase()
  await migratePostgres(url)
  const postgres = createPostgres(url, { role: 'test', log: quietLog, connectionsMax: 12 })
  try {
    for (const machine of machines) {
      if (only !== '' && only !== machine.name) continue
      const own = Math.max(1, Math.round(runs * machine.share))
      await runOne(machine, { runs: own, seed }, { database, postgres })
    }
  } finally {
    await postgres.close()
    await database.stop()
  }
}

async function runOne(machine: Machine, options: MachineOptions, servers: Servers): Promise<void> {
  const startedMs = performance.now()
  const took = () => `${((performance.now() - startedMs) / 1_000).toFixed(1)} s`
  try {
    const { runs, seen } = await machine.run(options, servers)
    print(`${machine.name}: ${runs} histories, 0 counterexamples, ${took()}`)
    for (const [what, count] of Object.entries(seen).sort()) print(`  ${what}: ${count}`)
  } catch (error) {
    print(`${machine.name}: BROKEN after ${took()}\n${(error as Error).message}`)
    const { cause } = error as Error
    if (cause instanceof Error) print(cause.message)
    process.exitCode = 1
  }
}

async function rotateOnServers(
  options: MachineOptions,
  { database }: Servers,
): Promise<MachineReport> {
  const nats = await startNats()
  try {
    const rig = await createConsoleRig({ postgres: database, nats })
    try {
      return await runRotation(options, rig)
    } finally {
      await rig.close()
    }
  } finally {
    await nats.stop()
  }
}
