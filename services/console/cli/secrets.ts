/**
 * `di secrets rewrap` seals every stored secret again under the current MASTER_KEY. `di secrets
 * telemetry-key` prints the key that scorers need instead of MASTER_KEY.
 */
import type { Command } from 'commander'
import { readConfig, variables } from '#shared/io/process/config.ts'
import { deriveKey } from '#shared/io/tenants/directory/proofs.ts'
import type { RewrapResult } from '../tenants/rewrap.ts'
import { type CliContext, CliError } from './context.ts'

/** Adds the group `secrets`. */
export function registerSecrets(program: Command, context: CliContext): void {
  const secrets = program.command('secrets').description('secrets at rest')
  secrets
    .command('telemetry-key')
    .description('print the TELEMETRY_KEY of scorers, derived from MASTER_KEY of the environment')
    .option('--json', 'print one JSON document')
    .action(() => {
      const { MASTER_KEY: masterKey } = readConfig(
        { MASTER_KEY: variables.MASTER_KEY },
        context.env,
      )
      const answer = { telemetry_key: deriveKey(masterKey, 'telemetry batch') }
      context.out(answer, ({ telemetry_key: key }) => key)
    })
  secrets
    .command('rewrap')
    .description(
      'seal every stored secret again under MASTER_KEY, so that MASTER_KEY_PREVIOUS can go',
    )
    .option('--json', 'print one JSON document')
    .action(async () => {
      const answer = await rewrapAll(context)
      context.out(answer, toText)
      if (answer.remaining === 0) return
      throw new CliError(
        `${answer.remaining} tenants or operators could not be done; the console's log says why. Keep ` +
          'MASTER_KEY_PREVIOUS and repeat the command.',
      )
    })
}

/** One request works for about twenty seconds, so it is repeated while it makes progress. */
async function rewrapAll(context: CliContext): Promise<RewrapResult> {
  const rewrap = async () => (await context.adminFetch('POST', '/secrets/rewrap')) as RewrapResult
  const sum = await rewrap()
  for (let left = sum.remaining; left > 0; ) {
    const next = await rewrap()
    sum.rewrapped += next.rewrapped
    sum.duration_ms += next.duration_ms
    sum.remaining = next.remaining
    if (next.remaining >= left) break
    left = next.remaining
  }
  return sum
}

function toText(answer: RewrapResult): string {
  const { rewrapped, already, tenants, duration_ms: ms } = answer
  const done =
    answer.remaining > 0 ? '' : ' All are sealed under MASTER_KEY: MASTER_KEY_PREVIOUS can go.'
  return `${rewrapped} secrets sealed again, ${already} were already, ${tenants} tenants, ${ms} ms.${done}`
}
