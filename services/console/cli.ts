/**
 * The command line, `npm run -s di -- <command>`: the admin API for people and scripts. With
 * `--json` stdout is one JSON document and nothing else; a failure is a message on stderr and exit
 * status 1.
 */
import { Command } from 'commander'
import { registerAlerts } from './cli/alerts.ts'
import { registerAnalysts } from './cli/analysts.ts'
import { CliError, createCliContext } from './cli/context.ts'
import { registerDeliveries } from './cli/deliveries.ts'
import { registerErase } from './cli/erase.ts'
import { registerExplain } from './cli/explain.ts'
import { registerFleet } from './cli/fleet.ts'
import { registerLearning } from './cli/learning.ts'
import { registerLedger } from './cli/ledger.ts'
import { registerOverview } from './cli/overview.ts'
import { registerPolicies } from './cli/policies.ts'
import { registerRetention } from './cli/retention.ts'
import { registerSecrets } from './cli/secrets.ts'
import { registerSignals } from './cli/signals.ts'
import { registerTenants } from './cli/tenants.ts'

async function main(): Promise<void> {
  let json = false
  const program = new Command('di')
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
  const context = createCliContext({
    env: process.env,
    json: () => json,
    write: (text) => process.stdout.write(text),
  })
  registerTenants(program, context)
  registerRetention(program, context)
  registerSecrets(program, context)
  registerAlerts(program, context)
  registerDeliveries(program, context)
  registerOverview(program, context)
  registerLedger(program, context)
  registerPolicies(program, context)
  registerExplain(program, context)
  registerSignals(program, context)
  registerLearning(program, context)
  registerErase(program, context)
  registerAnalysts(program, context)
  registerFleet(program, context)
  await program.parseAsync()
}

// Whoever reads us may have read enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

main().catch((error: unknown) => {
  const expected = error instanceof CliError
  const text =
    expected || !(error instanceof Error) ? String(error) : (error.stack ?? error.message)
  process.stderr.write(`${expected ? error.message : text}\n`)
  process.exitCode = 1
})
