/**
 * `npm run faults -- machines [--runs 10000] [--seed S] [--only NAME]`: the state machines of the
 * service against models of them, through random histories of commands with races and faults in
 * every order. Those that need PostgreSQL or NATS make fewer histories of the same number. Prints
 * what happened in them; a broken promise ends it with status 1, the shortest history that breaks
 * it and what repeats it.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createConsoleRig } from '../../support/http/console-rig.ts'
import { migratePostgres } from '../../support/servers/databases.ts'
import { startNats } from '../../support/servers/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { runDelivery } from './delivery.ts'
import { runDeliveryRules } from './delivery-rules.ts'
import { runDisposition } from './disposition.ts'
import { runGroupCommit } from './group-commit.ts'
import { runEdge } from './lease.ts'
import { runRotation } from './rotation.ts'
import type { MachineOptions, MachineReport } from './run-machine.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

type Machine = {
  name: string
  /**
   * Histories for each that was asked for: one on a real database takes a thousand times longer.
   */
  share: number
  run: (options: MachineOptions, servers: Servers) => Promise<MachineReport>
}

type Servers = { database: TestPostgres; postgres: Postgres }

const machines: Machine[] = [
  { name: 'group commit', share: 1, run: (options) => runGroupCommit(options) },
  { name: 'lease', share: 0.5, run: (options) => runEdge(options) },
  { name: 'delivery rules', share: 1, run: (options) => runDeliveryRules(options) },
  { name: 'delivery', share: 0.1, run: (options, { postgres }) => runDelivery(options, postgres) },
  {
    name: 'disposition',
    share: 0.03,
    run: (options, { postgres }) => runDisposition(options, postgres),
  },
  { name: 'rotation', share: 0.003, run: (options, servers) => rotateOnServers(options, servers) },
]

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      runs: { type: 'string', default: '10000' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      only: { type: 'string' },
    },
  })
  const [runs, seed] = [Number(values.runs), Number(values.seed)]
  say(`--runs ${runs} --seed ${seed}`)
  const database = await startPostgres()
  const url = await database.createDatabase()
  await migratePostgres(url)
  const log = createLog('test', 'silent')
  const postgres = createPostgres(url, { role: 'test', log, connectionsMax: 12 })
  try {
    for (const machine of machines) {
      if (values.only !== undefined && values.only !== machine.name) continue
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
    say(`${machine.name}: ${runs} histories, 0 counterexamples, ${took()}`)
    for (const [what, count] of Object.entries(seen).sort()) say(`  ${what}: ${count}`)
  } catch (error) {
    say(`${machine.name}: BROKEN after ${took()}\n${(error as Error).message}`)
    const { cause } = error as Error
    if (cause instanceof Error) say(cause.message)
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
