/**
 * The keys of the processes besides the console, from their settings. A process that still gets
 * MASTER_KEY derives its own keys from it, and warns: only the console needs it.
 */
import {
  type DerivedKey,
  derivedKeys,
  type KeyVariable,
  toPrevious,
} from '#shared/core/permissions/process-keys.ts'
import { ConfigError } from '#shared/io/process/config.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { EdgeKeyTexts } from './edge-keys.ts'
import { deriveKey } from './proofs.ts'
import { createOpener, type Opener } from './sealed-secrets.ts'
import { toDirectoryPublicKey } from './signatures.ts'

type Settings = {
  readonly [Name in KeyVariable | `${KeyVariable}_PREVIOUS`]?: string | undefined
}

/** The value of a variable for a master key. @returns 32 bytes in base64 */
export function toDerivedKey(masterKey: string, variable: DerivedKey): string {
  return variable === 'DIRECTORY_PUBLIC_KEY'
    ? toDirectoryPublicKey(masterKey)
    : deriveKey(masterKey, derivedKeys[variable])
}

/**
 * Every derived key by its variable, those of the previous master key as `*_PREVIOUS`. A process
 * gets those that the table in `process-keys.ts` of the core names.
 */
export function toDerivedKeys(masterKey: string, previous?: string): Record<string, string> {
  const variables = Object.keys(derivedKeys) as DerivedKey[]
  return Object.fromEntries(
    variables.flatMap((name) => [
      [name, toDerivedKey(masterKey, name)] as const,
      ...(previous === undefined
        ? []
        : [[toPrevious(name), toDerivedKey(previous, name)] as const]),
    ]),
  )
}

/**
 * @returns the keys of a variable, the present one first
 * @throws ConfigError when neither the variable nor MASTER_KEY is set
 */
export function readKeys(config: Settings, variable: DerivedKey): [string, ...string[]] {
  const derive = (key: string | undefined) =>
    key === undefined ? undefined : toDerivedKey(key, variable)
  const [first, ...others] = [
    config[variable] ?? derive(config.MASTER_KEY),
    config[toPrevious(variable)] ?? derive(config.MASTER_KEY_PREVIOUS),
  ].filter((key) => key !== undefined)
  if (first !== undefined) return [first, ...others]
  throw new ConfigError([`${variable} is required: \`di secrets keys\` prints it`])
}

/** @throws ConfigError as a process does at its start, with every missing key */
export function requireKeys(config: Settings, variables: readonly DerivedKey[]): void {
  if (config.MASTER_KEY !== undefined) return
  const missing = variables.filter((variable) => config[variable] === undefined)
  if (missing.length === 0) return
  throw new ConfigError(
    missing.map((variable) => `${variable} is required: \`di secrets keys\` prints it`),
  )
}

/** The keys of an edge. @throws ConfigError when one is missing */
export function readEdgeKeys(config: Settings): EdgeKeyTexts {
  return {
    directory: readKeys(config, 'DIRECTORY_PUBLIC_KEY'),
    edge: readKeys(config, 'EDGE_KEY'),
    telemetry: readKeys(config, 'TELEMETRY_KEY'),
    master: listMasterKeys(config),
    speaksOld: config.EDGE_KEY === undefined,
  }
}

/** What delivery opens: webhook secrets and nothing else. @throws ConfigError when it has no key */
export function createWebhookOpener(config: Settings): Opener {
  const own = readKeys(config, 'WEBHOOK_KEY')
  return createOpener((kind) => (kind === 'webhook' ? { v1: listMasterKeys(config), v2: own } : {}))
}

const listMasterKeys = (config: Settings): string[] =>
  [config.MASTER_KEY, config.MASTER_KEY_PREVIOUS].filter((key) => key !== undefined)

/** Says once, at a start, that a process has MASTER_KEY, which only the console needs. */
export function warnOfMasterKey(
  log: Log,
  config: Settings,
  variables: readonly DerivedKey[],
): void {
  if (config.MASTER_KEY === undefined) return
  const missing = variables.filter((variable) => config[variable] === undefined)
  if (missing.length === 0) {
    log.warn('MASTER_KEY is set but only the console needs it: remove it after `di secrets rewrap`')
  } else {
    log.warn(
      { missing },
      'MASTER_KEY is deprecated here: set the keys that `di secrets keys` prints for this process',
    )
  }
}
