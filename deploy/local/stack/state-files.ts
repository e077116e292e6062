// The small files of the data folder: secrets made once, the ports used last, and stack.json, which
// tells other programs where everything is. Each is replaced by one rename and readable for its
// owner alone, so nobody ever sees half a file or somebody else's secret.

import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

import { type ServerName, type ServiceName, StartError } from './settings.ts'

export type DemoTenant = {
  tenant_id: string
  public_api_key: string
  hmac_secret: string
  webhook_secret: string
}

export type Secrets = {
  master_key: string
  admin_token: string
  postgres_password: string
  clickhouse_password: string
  demo?: DemoTenant
}

export type PartName = ServiceName | ServerName

/** The facts of a running stack. An external server has no process id here. */
export type StackFile = Record<PartName, string> & {
  /** Where readiness and metrics of each service are. */
  internal: Record<ServiceName, string>
  admin_token: string
  pids: Partial<Record<PartName, number>>
  /** Where analysts ask the embedded ClickHouse. */
  analysts?: string
  demo?: DemoTenant
}

/** Writes JSON so that a reader finds the old file or the new one, never a part. Mode 0600. */
export function writeJson(file: string, value: unknown): void {
  const fresh = `${file}.${process.pid}.tmp`
  writeFileSync(fresh, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
  renameSync(fresh, file)
}

/** The content of a JSON file, or null when there is none. */
export function readJson<T>(file: string): T | null {
  if (!existsSync(file)) return null
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T
  } catch (error) {
    throw new StartError(`${file} cannot be read: ${(error as Error).message}`)
  }
}

/**
 * The secrets of this data folder, made on the first start. Refuses to make new ones for old data:
 * without its master key nothing sealed in it could ever be read again.
 */
export function openSecrets(dataDir: string): Secrets {
  const file = join(dataDir, 'secrets.json')
  const known = readJson<Secrets>(file)
  if (known) return known
  if (existsSync(join(dataDir, 'postgres'))) {
    throw new StartError(
      `${file} is missing, and the data in ${dataDir} cannot be opened without it. ` +
        `Bring it back, or remove the folder to start empty.`,
    )
  }
  // Letters and digits only: these stand in URLs.
  const password = () => `p${randomBytes(18).toString('hex')}`
  const secrets: Secrets = {
    master_key: randomBytes(32).toString('base64'),
    admin_token: randomBytes(32).toString('base64url'),
    postgres_password: password(),
    clickhouse_password: password(),
  }
  writeJson(file, secrets)
  return secrets
}

/** Records the demo tenant's credentials beside the other secrets. */
export function keepDemoTenant(dataDir: string, demo: DemoTenant): void {
  const file = join(dataDir, 'secrets.json')
  writeJson(file, { ...readJson<Secrets>(file), demo })
}

/** Makes the data folder and the private folders in it. */
export function openDataDir(dataDir: string): void {
  try {
    const isNew = mkdirSync(dataDir, { recursive: true }) !== undefined
    // Servers that run as other users must get to their own folders in it; the rest is private.
    if (isNew) chmodSync(dataDir, 0o711)
    for (const name of ['logs', 'nats', 'clickhouse']) {
      mkdirSync(join(dataDir, name), { recursive: true, mode: 0o700 })
    }
  } catch (error) {
    throw new StartError(`DATA_DIR ${dataDir} cannot be used: ${(error as Error).message}`)
  }
}

export function stackFilePath(dataDir: string): string {
  return join(dataDir, 'stack.json')
}

/** Forgets an earlier run's facts, so that whoever waits for the file waits for this run. */
export function removeStackFile(dataDir: string): void {
  rmSync(stackFilePath(dataDir), { force: true })
}
