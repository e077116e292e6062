/**
 * The servers of compose.yaml without a container engine: nats-server with the unchanged nats.conf,
 * PostgreSQL, and the ClickHouse engine with the users of users.xml. The secrets are those of
 * make-secrets.sh, with the addresses of these servers in place of their names in compose.
 */
import { strict as assert } from 'node:assert'
import { type ChildProcess, execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { processPermissions } from '#shared/core/permissions/process-permissions.ts'
import {
  type TablePrivileges,
  toClickhouseGrants,
} from '#shared/core/permissions/table-privileges.ts'
import { clickhouseProcesses } from '#shared/io/analytics/analyst-access-store.ts'
import type { EngineUser } from '../../../deploy/local/clickhouse/server-config.ts'
import { findNatsServer, natsGreets } from '../../../deploy/local/nats/nats-server.ts'
import { awaitReady } from '../../../deploy/local/stack/await-ready.ts'
import { createLauncher, endChild } from '../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { natsUserNames, OPERATOR } from '../../../deploy/nats-users.ts'
import { type Closing, startWhole } from '../process/closing.ts'
import { startClickhouse } from '../servers/clickhouse-server.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { readComposeFile } from './compose-file.ts'

const run = promisify(execFile)
const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const { services } = readComposeFile()

export type ComposedServers = {
  /** What each container has in /run/secrets, and more. */
  secretsDir: string
  readSecret: (name: string) => string
  /** Where nats-server answers HTTP. */
  natsMonitorUrl: string
  stop: () => Promise<void>
}

/** Makes the secrets, starts the servers and creates an empty database. */
export async function startComposedServers(): Promise<ComposedServers> {
  return await startWhole(startAll)
}

async function startAll(closing: Closing, stop: () => Promise<void>): Promise<ComposedServers> {
  const workDir = mkdtempSync(join(tmpdir(), 'di-compose-'))
  closing.push(() => rmSync(workDir, { recursive: true, force: true }))
  const secretsDir = join(workDir, 'run/secrets')
  const readSecret = (name: string) => readFileSync(join(secretsDir, name), 'utf8').trim()
  await run(join(projectDir, 'deploy/make-secrets.sh'), [secretsDir])
  const users = toEngineUsers(readSecret('clickhouse_hashes'))
  const [postgres, clickhouse] = await Promise.all([startPostgres(), startClickhouse({ users })])
  closing.push(postgres.stop, clickhouse.stop)
  const nats = await startNatsAsComposed(workDir)
  closing.push(nats.stop)

  /** A secret names the service, its port and the process's user; then it is mapped. */
  const map = (
    name: string,
    expected: [host: string, user: string],
    href: (url: URL) => string,
  ) => {
    const url = new URL(readSecret(name))
    assert.deepEqual([url.host, url.username], expected)
    writeFileSync(join(secretsDir, name), href(url))
  }
  const toHost = (host: string) => (url: URL) => {
    url.host = host
    return url.href
  }
  const { POSTGRES_DB: database = '', POSTGRES_USER = '' } = services.postgres!.environment ?? {}
  const databaseUrl = await postgres.createDatabase(database)
  for (const name of natsUserNames) {
    if (name === OPERATOR) continue
    map(`nats_url_${name}`, ['nats:4222', name], toHost(`127.0.0.1:${nats.port}`))
  }
  for (const name of ['scorer', 'api', 'delivery', 'console']) {
    const own: [string, string] = ['postgres:5432', `${database}_${name}`]
    map(`postgres_url_${name}`, own, toHost(new URL(databaseUrl).host))
  }
  for (const { name } of users) {
    const { host } = new URL(clickhouse.url)
    map(`clickhouse_url_${name}`, ['clickhouse:8123', name], toHost(host))
  }
  map('postgres_url_migrate', ['postgres:5432', POSTGRES_USER], ({ pathname }) => {
    assert.equal(pathname, `/${database}`)
    return databaseUrl
  })
  const { CLICKHOUSE_USER = '' } = services.clickhouse!.environment ?? {}
  map('clickhouse_url_migrate', ['clickhouse:8123', CLICKHOUSE_USER], ({ pathname }) => {
    return `${clickhouse.url}${pathname}`
  })
  return { secretsDir, readSecret, natsMonitorUrl: nats.monitorUrl, stop }
}

/** The users that deploy/clickhouse/users.xml and the file of hashes give a server. */
function toEngineUsers(hashes: string): EngineUser[] {
  return clickhouseProcesses.map((name) => ({
    name,
    passwordSha256Hex: new RegExp(`SHA256_OF_${name.toUpperCase()}=(\\w+)`).exec(hashes)![1]!,
    grants: toClickhouseGrants(processPermissions[name].clickhouse as TablePrivileges, {
      databases: ['device_intelligence'],
      analytics: 'analytics',
    }),
  }))
}

/** The unchanged nats.conf; only its addresses and its store volume differ. */
async function startNatsAsComposed(workDir: string) {
  const { volumes, command = [] } = services.nats!
  const confDir = join(workDir, 'etc/nats')
  mkdirSync(confDir, { recursive: true })
  for (const name of ['nats.conf', 'nats-users.conf']) {
    assert.ok(volumes?.includes(`./${name}:/etc/nats/${name}:ro`))
    const text = readFileSync(join(projectDir, 'deploy', name), 'utf8')
    writeFileSync(join(confDir, name), text.replace(' /data\n', ` "${join(workDir, 'nats')}"\n`))
  }
  assert.ok(volumes?.includes('nats:/data'))
  const binary = await findNatsServer({ env: process.env, projectDir })
  const [port, monitorPort] = [await choosePort({}), await choosePort({})]
  const flags = ['--addr', '127.0.0.1', '--port', `${port}`, '--http_port', `${monitorPort}`]
  const child: ChildProcess = createLauncher({ pathVar: process.env.PATH }).launch({
    command: binary.file,
    args: [
      ...command.slice(1).map((text) => text.replace(/^\/etc\//, `${workDir}/etc/`)),
      ...flags,
    ],
    env: process.env,
    orphanSignal: 'SIGTERM',
  })
  const stop = () => endChild(child, { signal: 'SIGTERM', graceMs: 8_000 })
  try {
    const isReady = () => natsGreets(port)
    await awaitReady({ name: 'nats', child, isReady, limitMs: 20_000 })
  } catch (error) {
    await stop()
    throw error
  }
  return { port, monitorUrl: `http://127.0.0.1:${monitorPort}`, stop }
}
