/**
 * `di secrets rewrap` seals every stored secret again under the current MASTER_KEY. `di secrets keys`
 * prints the keys that the other processes need, which have no MASTER_KEY.
 */
import type { Command } from 'commander'
import { type DerivedKey, processKeys, toPrevious } from '#shared/core/permissions/process-keys.ts'
import { toDerivedKey, toDerivedKeys } from '#shared/io/keys/process-keys.ts'
import { ConfigError, readConfig, variables } from '#shared/io/process/config.ts'
import type { RewrapResult } from '../keys/rewrap.ts'
import { type CliContext, CliError } from './context.ts'

/** Adds the group `secrets`. */
export function registerSecrets(program: Command, context: CliContext): void {
  const secrets = program.command('secrets').description('secrets at rest')
  secrets
    .command('telemetry-key')
    .description('print the TELEMETRY_KEY of scorers, derived from MASTER_KEY of the environment')
    .option('--json', 'print one JSON document')
    .action(() => {
      const { MASTER_KEY: masterKey } = readMasterKeys(context)
      const answer = { telemetry_key: toDerivedKey(masterKey, 'TELEMETRY_KEY') }
      context.out(answer, ({ telemetry_key: key }) => key)
    })
  secrets
    .command('keys')
    .description(
      "print every process's own keys, derived from MASTER_KEY of the environment; with " +
        'MASTER_KEY_PREVIOUS those of both',
    )
    .option('--json', 'print one JSON document')
    .action(() => context.out(listProcessKeys(context), toKeysText))
  secrets
    .command('rewrap')
    .description(
      'seal every stored secret again under MASTER_KEY and in the present form, so that ' +
        'MASTER_KEY_PREVIOUS can go',
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

/** @throws CliError when MASTER_KEY is missing or none */
function readMasterKeys({ env }: CliContext) {
  const { MASTER_KEY, MASTER_KEY_PREVIOUS } = variables
  try {
    return readConfig({ MASTER_KEY, MASTER_KEY_PREVIOUS }, env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new CliError(error.message)
  }
}

type ProcessKeys = Record<string, Record<string, string>>

/** By process, the variables that it needs. */
function listProcessKeys(context: CliContext): ProcessKeys {
  const config = readMasterKeys(context)
  const all = toDerivedKeys(config.MASTER_KEY, config.MASTER_KEY_PREVIOUS)
  const named = (Object.keys(processKeys) as (keyof typeof processKeys)[]).map((process) => {
    const own = Object.keys(processKeys[process]) as DerivedKey[]
    const wanted = own.flatMap((variable) => [variable, toPrevious(variable)])
    const values = wanted.flatMap((name) => (name in all ? [[name, all[name]!] as const] : []))
    return [process, Object.fromEntries(values)] as const
  })
  return Object.fromEntries(named.filter(([, values]) => Object.keys(values).length > 0))
}

const toKeysText = (keys: ProcessKeys) =>
  Object.entries(keys)
    .map(([process, values]) =>
      [`# ${process}`, ...Object.entries(values).map(([name, value]) => `${name}=${value}`)].join(
        '\n',
      ),
    )
    .join('\n\n')

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
