// The state files of the data folder: the secrets, the ports of the last start, and stack.json
// with the addresses of everything. Each is replaced by one rename and readable only by its
// owner.

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

/** The ClickHouse engines after the first, where there are several. */
export type ShardName = `clickhouse-${number}`

export type ChildName = ServiceName | ServerName | ShardName

/** The content of stack.json. An external server has no process id. */
export type StackFile = Record<ServiceName | ServerName, string> & {
  /** The URLs of the ClickHouse engines, where there are several. */
  clickhouse_shards?: string[]
  /** The URLs of readiness and metrics. */
  internal: Record<ServiceName, string> & { analysts?: string }
  admin_token: string
  pids: Partial<Record<ChildName, number>>
  /** The analysts' URL of the embedded ClickHouse. */
  analysts?: string
  /** The private keys of the roots that its edges take for sandbox tenants. */
  attestation_keys_file?: string
  /** The folder of the demo's network data; without it the user named another one. */
  network_data?: string
  demo?: DemoTenant
}

/** Replaces a JSON file atomically. Mode 0600. */
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
 * The secrets of this data folder, created on the first start. Throws when the folder has data but
 * no secrets: without its master key the sealed data cannot be read.
 */
export function openSecrets(dataDir: string): Secrets {
  const file = join(dataDir, 'secrets.json')
  const existing = readJson<Secrets>(file)
  if (existing) return existing
  if (existsSync(join(dataDir, 'postgres'))) {
    throw new StartError(
      `${file} is missing, and the data in ${dataDir} cannot be opened without it. ` +
        `Restore it, or remove the folder to start empty.`,
    )
  }
  // Letters and digits only, because passwords are part of URLs.
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

/** Saves the demo tenant's credentials with the other secrets. */
export function saveDemoTenant(dataDir: string, demo: DemoTenant): void {
  const file = join(dataDir, 'secrets.json')
  writeJson(file, { ...readJson<Secrets>(file), demo })
}

/** Creates the data folder and the private folders in it. */
export function openDataDir(dataDir: string): void {
  try {
    const isNew = mkdirSync(dataDir, { recursive: true }) !== undefined
    // Servers that run as other users must reach their own folders in it; the rest is private.
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

/** Removes the file of an earlier run, so that programs that wait for it wait for this run. */
export function removeStackFile(dataDir: string): void {
  rmSync(stackFilePath(dataDir), { force: true })
}
