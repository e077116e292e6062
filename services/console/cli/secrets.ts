/**
 * `di secrets rewrap` seals every stored secret again under the current MASTER_KEY. `di secrets keys`
 * prints the keys that the other processes need, which have no MASTER_KEY.
 */
import { type DerivedKey, processKeys, toPrevious } from '#shared/core/permissions/process-keys.ts'
import { toDerivedKey, toDerivedKeys } from '#shared/io/keys/process-keys.ts'
import { ConfigError, readConfig, variables } from '#shared/io/process/config.ts'
import { type Answer, command, group } from './commands.ts'
import { type CliContext, CliError } from './context.ts'

export const secrets = group('secrets', 'secrets at rest', [
  command(
    'telemetry-key',
    'print the TELEMETRY_KEY of scorers, derived from MASTER_KEY of the environment',
    [],
    (context) => {
      const { MASTER_KEY: masterKey } = readMasterKeys(context)
      const answer = { telemetry_key: toDerivedKey(masterKey, 'TELEMETRY_KEY') }
      context.out(answer, ({ telemetry_key: key }) => key)
    },
  ),
  command(
    'keys',
    "print every process's own keys, derived from MASTER_KEY of the environment; with " +
      'MASTER_KEY_PREVIOUS those of both',
    [],
    (context) => context.out(listProcessKeys(context), toKeysText),
  ),
  command(
    'rewrap',
    'seal every stored secret again under MASTER_KEY and in the present form, so that ' +
      'MASTER_KEY_PREVIOUS can go',
    [],
    async (context) => {
      const answer = await rewrapAll(context)
      context.out(answer, toText)
      if (answer.remaining === 0) return
      throw new CliError(
        `${answer.remaining} tenants or operators could not be done; the console's log says why. Keep ` +
          'MASTER_KEY_PREVIOUS and repeat the command.',
      )
    },
  ),
])

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

type RewrapResult = Answer<'/secrets/rewrap', 'post'>
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
