// What the Helm chart knows of each process: from compose.yaml its command, ports, memory and
// files of secrets, from the process's own configuration the settings that it reads, from
// `processPermissions` its stores. `npm run generate` writes `deploy/helm/files/processes.yaml`.

import { readFileSync } from 'node:fs'
import { parse, stringify } from 'yaml'
import { readApiConfig } from '../services/api/config.ts'
import { readConsoleConfig } from '../services/console/config.ts'
import { readDeliveryConfig } from '../services/delivery/config.ts'
import { readIngestConfig } from '../services/ingest/config.ts'
import { readMigrateConfig } from '../services/migrate/config.ts'
import { readScorerConfig } from '../services/scorer/config.ts'
import { mayHaveMasterKey, toPrevious } from '../shared/core/permissions/process-keys.ts'
import {
  type ProcessName,
  processNames,
  processPermissions,
  type StoreName,
  secretVariables,
} from '../shared/core/permissions/process-permissions.ts'
import { ConfigError, type Env } from '../shared/io/process/config.ts'

export type ComposeService = {
  command: string[]
  environment: Record<string, string>
  secrets: string[]
  volumes?: string[]
  mem_limit: string
}

const readers: Record<ProcessName, (env: Env) => unknown> = {
  ingest: readIngestConfig,
  scorer: readScorerConfig,
  api: readApiConfig,
  delivery: readDeliveryConfig,
  console: readConsoleConfig,
  migrate: readMigrateConfig,
}

/** Read by Node itself. */
const nodeVariables = ['NODE_EXTRA_CA_CERTS']
/** Of the local stack, and of several processes in one place: a container has one. */
const notInContainers = /^(CLICKHOUSE_EMBEDDED|PARENT_PID|REUSE_PORT|\w+_LISTEN)$/

/**
 * The variables that a process reads.
 * @returns their names, and those of them that can come from files (`NAME_FILE`)
 */
export function readVariables(process: ProcessName): { names: string[]; fromFiles: string[] } {
  const read = new Set<string>()
  const env = new Proxy<Env>({}, { get: (_, name) => void read.add(String(name)) })
  try {
    readers[process](env)
  } catch (error) {
    // Required variables are missing; the error comes after all were read.
    if (!(error instanceof ConfigError)) throw error
  }
  const names = [...read].filter((name) => !(isFile(name) && read.has(withoutFile(name))))
  return { names, fromFiles: names.filter((name) => read.has(`${name}_FILE`)) }
}

const isFile = (name: string) => name.endsWith('_FILE')
const withoutFile = (name: string) => name.replace(/_FILE$/, '')

/** The service of a process in compose.yaml. */
export function readCompose(): Record<ProcessName, ComposeService> {
  const text = readFileSync(new URL('compose.yaml', import.meta.url), 'utf8')
  return (parse(text, { merge: true }) as { services: Record<ProcessName, ComposeService> })
    .services
}

/** `deploy/helm/files/processes.yaml` */
export function renderProcesses(): string {
  const compose = readCompose()
  const table = Object.fromEntries(
    processNames.map((name) => [name, toEntry(name, compose[name])] as const),
  )
  return [
    '# Made by `npm run generate` from compose.yaml, the configuration of each process and its rights:',
    '# do not edit. What the chart knows of each process.',
    stringify(table, { lineWidth: 100 }),
  ].join('\n')
}

function toEntry(name: ProcessName, { command, environment, mem_limit }: ComposeService) {
  const { names, fromFiles } = readVariables(name)
  const portOf = (variable: string) => {
    const address = environment[`${name.toUpperCase()}_${variable}`]
    return address === undefined ? undefined : Number(address.split(':').at(-1))
  }
  const secrets = Object.entries(environment)
    .filter(([variable]) => isFile(variable) && fromFiles.includes(withoutFile(variable)))
    .map(([variable, path]) => [withoutFile(variable), path.split('/').at(-1)!])
  const required = Object.fromEntries(secrets)
  const optional = fromFiles
    .filter((variable) => !(variable in required) && mayHave(name, variable))
    .map((variable) => [variable, toKey(name, variable)])
  const settings = names.filter(
    (variable) => !fromFiles.includes(variable) && !notInContainers.test(variable),
  )
  const internal = portOf('INTERNAL_LISTEN')
  const stores = (['nats', 'postgres', 'clickhouse'] satisfies StoreName[]).filter(
    (store) => processPermissions[name][store] !== null,
  )
  return {
    command,
    memory: mem_limit.replace(/m$/, 'Mi').replace(/g$/, 'Gi'),
    ...(internal === undefined ? {} : { publicPort: portOf('LISTEN') }),
    ...(name === 'migrate' ? {} : { internalPort: internal ?? portOf('LISTEN') }),
    stores,
    settings: [...settings, ...nodeVariables].sort(),
    secrets: required,
    optionalSecrets: Object.fromEntries(optional),
  }
}

function mayHave(name: ProcessName, variable: string): boolean {
  const isMasterKey = ['MASTER_KEY', toPrevious('MASTER_KEY')].includes(variable)
  if (isMasterKey && mayHaveMasterKey.includes(name)) return true
  const isKey = secretVariables.includes(variable)
  return !isKey || processPermissions[name].secrets.includes(variable)
}

/** The key of an optional secret in the Kubernetes Secret: a user's own, or one for all. */
function toKey(name: ProcessName, variable: string): string {
  const key = variable.toLowerCase()
  return variable === 'NATS_NKEY_SEED' ? `${key}_${name}` : key
}
