/** Reads the policy document of a command. */
import { type CliContext, readJsonFile } from '../context.ts'

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
export async function readPolicyFile(context: CliContext, file: string): Promise<unknown> {
  const value = await readJsonFile(context, file)
  if (typeof value !== 'object' || value === null || !('policy_hash' in value)) return value
  const added = new Set([...facts, ...setFacts])
  return Object.fromEntries(Object.entries(value).filter(([key]) => !added.has(key)))
}
