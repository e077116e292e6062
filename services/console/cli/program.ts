/**
 * The command line, `npm run -s di -- <command>`: the admin API for people and scripts. With
 * `--json` stdout is one JSON document and nothing else; a failure is a message on stderr and exit
 * status 1.
 */
import { Command, CommanderError } from 'commander'
import { alerts } from './alerts/alerts.ts'
import { cases } from './alerts/cases.ts'
import { analysts } from './analytics/analysts.ts'
import { cookbook } from './analytics/cookbook.ts'
import { attestation } from './attestation/attestation.ts'
import type { Entry } from './commands.ts'
import { type CliContext, type CliEnv, CliError, createCliContext } from './context.ts'
import { deliveries } from './deliveries.ts'
import { devices, users } from './entities.ts'
import { erase, erasures } from './erase.ts'
import { explain } from './explain.ts'
import { registerFleet } from './fleet.ts'
import { keys } from './keys.ts'
import { lists } from './lists.ts'
import { addBackup, addRestore } from './operation/backup.ts'
import { backupServers } from './operation/backup-servers.ts'
import { moveNats } from './operation/move-nats/move-nats.ts'
import { network } from './operation/network.ts'
import { recovery } from './operation/recovery.ts'
import { addReplay } from './operation/replay.ts'
import { verdictKeys } from './operation/verdict-keys.ts'
import { operators } from './operators.ts'
import { labels } from './outcomes/labels.ts'
import { audit, edges } from './overview.ts'
import { phones } from './phones/phones.ts'
import { policy } from './policies/policies.ts'
import { proposals } from './policies/proposals.ts'
import { reconcile } from './reconcile.ts'
import { rulePerformance } from './rule-performance.ts'
import { secrets } from './secrets.ts'
import { signals } from './signals.ts'
import { requests, signature, telemetry } from './submissions.ts'
import { tenants } from './tenants/tenants.ts'

/** All commands, in the order of the help. */
const entries: readonly Entry[] = [
  tenants,
  secrets,
  verdictKeys,
  alerts,
  cases,
  keys,
  lists,
  labels,
  deliveries,
  operators,
  audit,
  edges,
  network,
  reconcile,
  policy,
  proposals,
  explain,
  signals,
  requests,
  signature,
  telemetry,
  attestation,
  rulePerformance,
  devices,
  users,
  phones,
  erase,
  erasures,
  analysts,
  cookbook,
  recovery,
  addReplay,
  addBackup,
  addRestore,
  backupServers,
  moveNats,
  registerFleet,
]

/** Adds all commands. */
export function addCommands(program: Command, context: CliContext): void {
  for (const add of entries) add(program, context)
}

/** What a command is run with. */
export type CliRun = {
  env: CliEnv
  args: readonly string[]
  /** Writes to stdout, and resolves when stdout has taken it. */
  write: (text: string) => Promise<void> | void
  writeError: (text: string) => void
}

async function parse({ env, args, write, writeError }: CliRun): Promise<void> {
  let json = false
  // Its subcommands take over where it writes, and that it throws instead of ending the process.
  const program = new Command('di')
    .exitOverride()
    .configureOutput({ writeOut: (text) => void write(text), writeErr: writeError })
    .description('Operate the device-intelligence service.')
    .option('--json', 'print one JSON document')
    .showHelpAfterError('(`--help` shows what there is)')
    .addHelpText(
      'after',
      '\nTalks to the running local stack (.data/stack.json, or DATA_DIR), or to CONSOLE_URL with ' +
        'ADMIN_TOKEN.',
    )
    .hook('preAction', (_, action) => {
      json = action.optsWithGlobals().json === true
    })
  const context = createCliContext({ env, json: () => json, write })
  addCommands(program, context)
  await program.parseAsync(args, { from: 'user' })
}

/** Runs one command. @returns its exit status */
export async function runCommand(run: CliRun): Promise<number> {
  try {
    await parse(run)
    return 0
  } catch (error) {
    // It has printed its message or its help.
    if (error instanceof CommanderError) return error.exitCode
    const expected = error instanceof CliError
    const text =
      expected || !(error instanceof Error) ? String(error) : (error.stack ?? error.message)
    run.writeError(`${expected ? error.message : text}\n`)
    return 1
  }
}

/** Runs the command that the process was started with, and sets its exit status. */
export async function runProgram(env: CliEnv): Promise<void> {
  // The reader of a pipe, such as `head`, may close it early.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(0)
  })
  const status = await runCommand({
    env,
    args: process.argv.slice(2),
    write: (text) =>
      new Promise((resolve) => {
        process.stdout.write(text, () => resolve())
      }),
    writeError: (text) => {
      process.stderr.write(text)
    },
  })
  // `fleet` sets a status of its own.
  if (status !== 0) process.exitCode = status
}
