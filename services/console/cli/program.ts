/**
 * The command line, `npm run -s di -- <command>`: the admin API for people and scripts. With
 * `--json` stdout is one JSON document and nothing else; a failure is a message on stderr and exit
 * status 1.
 */
import { Command, CommanderError } from 'commander'
import { registerAlerts } from './alerts/alerts.ts'
import { registerAnalysts } from './analytics/analysts.ts'
import { registerCookbook } from './analytics/cookbook.ts'
import { type CliEnv, CliError, createCliContext } from './context.ts'
import { registerDeliveries } from './deliveries.ts'
import { registerEntities } from './entities.ts'
import { registerErase } from './erase.ts'
import { registerExplain } from './explain.ts'
import { registerFleet } from './fleet.ts'
import { registerKeys } from './keys.ts'
import { registerLists } from './lists.ts'
import { registerBackup } from './operation/backup.ts'
import { registerServerBackup } from './operation/backup-servers.ts'
import { registerRecovery } from './operation/recovery.ts'
import { registerReplay } from './operation/replay.ts'
import { registerOperators } from './operators.ts'
import { registerOverview } from './overview.ts'
import { registerPolicies } from './policies/policies.ts'
import { registerRates } from './rates.ts'
import { registerReconcile } from './reconcile.ts'
import { registerRetention } from './retention.ts'
import { registerRulePerformance } from './rule-performance.ts'
import { registerSecrets } from './secrets.ts'
import { registerSignals } from './signals.ts'
import { registerSubmissions } from './submissions.ts'
import { registerTenants } from './tenants.ts'

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
  registerTenants(program, context)
  registerRates(program, context)
  registerRetention(program, context)
  registerSecrets(program, context)
  registerAlerts(program, context)
  registerKeys(program, context)
  registerLists(program, context)
  registerDeliveries(program, context)
  registerOperators(program, context)
  registerOverview(program, context)
  registerReconcile(program, context)
  registerPolicies(program, context)
  registerExplain(program, context)
  registerSignals(program, context)
  registerSubmissions(program, context)
  registerRulePerformance(program, context)
  registerEntities(program, context)
  registerErase(program, context)
  registerAnalysts(program, context)
  registerCookbook(program, context)
  registerRecovery(program, context)
  registerReplay(program, context)
  registerBackup(program, context)
  registerServerBackup(program, context)
  registerFleet(program, context)
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
