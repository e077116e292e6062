/** The keys of a process as an operator sets them: its own, derived from the master key. */
import { type KeyVariable, processKeys } from '#shared/core/permissions/process-keys.ts'
import type { ProcessName } from '#shared/core/permissions/process-permissions.ts'
import { toDerivedKeys } from '#shared/io/keys/process-keys.ts'

/** @returns the environment with the process's own keys in place of MASTER_KEY */
export function withOwnKeys(
  process: ProcessName,
  env: Record<string, string>,
): Record<string, string> {
  const { MASTER_KEY: masterKey, ...others } = env
  if (masterKey === undefined) return env
  const all: Record<string, string> = { MASTER_KEY: masterKey, ...toDerivedKeys(masterKey) }
  const own = Object.keys(processKeys[process]) as KeyVariable[]
  return { ...others, ...Object.fromEntries(own.map((name) => [name, all[name]!])) }
}
