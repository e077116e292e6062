/** Reads the policy document of a command. */
import { readFile } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { type CliContext, CliError } from '../context.ts'

/** Fields that `--json` adds to a policy document; the name is in both. */
const facts = [
  ...['tenant_id', 'version', 'policy_hash', 'created_at', 'created_by'],
  ...['reason', 'approved_by', 'in_force'],
]
const setFacts = ['previous_version', 'duration_ms', 'confirmed_edges', 'lease_expired_edges']

/**
 * Reads a policy document from a file, or from stdin for `-`. The output of `--json` is accepted as
 * well: the fields that it adds to the document are left out.
 * @throws CliError when the file cannot be read or is not JSON
 */
export async function readPolicyFile({ env }: CliContext, file: string): Promise<unknown> {
  const name = file === '-' ? 'stdin' : file
  // npm changes to the project's folder; INIT_CWD is the caller's.
  const path = isAbsolute(file) ? file : join(env.INIT_CWD ?? '', file)
  const text = await (file === '-' ? readAll(process.stdin) : readFile(path, 'utf8')).catch(
    (error: unknown) => {
      throw new CliError(`${name} cannot be read`, { cause: error })
    },
  )
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new CliError(`${name} is not JSON: ${(error as Error).message}`)
  }
  if (typeof value !== 'object' || value === null || !('policy_hash' in value)) return value
  const added = new Set([...facts, ...setFacts])
  return Object.fromEntries(Object.entries(value).filter(([key]) => !added.has(key)))
}
