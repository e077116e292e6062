// deploy/ for real servers, without a container engine: the test runs what compose.yaml has on
// local servers, with the same start order, commands, environment, secret files (host names and
// ports mapped) and health checks. `npm run faults -- image` does it in containers.

import { type ChildProcess, execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLauncher, endChild, type LaunchSpec } from '../../../deploy/local/stack/launch.ts'
import { SERVICE_NAMES } from '../../../deploy/local/stack/settings.ts'
import { toDerivedKeys } from '../../../shared/io/keys/process-keys.ts'
import { listInStartOrder, readComposeFile } from '../../support/deploy/compose-file.ts'
import {
  choosePorts,
  type MappedPorts,
  toMappedEnv,
  toMappedHealthcheck,
} from '../../support/deploy/composed-processes.ts'
import {
  type ComposedServers,
  startComposedServers,
} from '../../support/deploy/composed-servers.ts'
import { until } from '../../support/process/until.ts'

const run = promisify(execFile)
const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const compose = readComposeFile()
const service = (name: string) => compose.services[name]!

describe('the services of compose.yaml', () => {
  const launcher = createLauncher({ pathVar: process.env.PATH })
  const children: ChildProcess[] = []
  let servers: ComposedServers

  beforeAll(async () => {
    servers = await startComposedServers()
  })

  afterAll(async () => {
    await Promise.all(children.map((child) => endChild(child, end)))
    await servers?.stop()
  })

  const end = { signal: 'SIGTERM' as const, graceMs: 8_000 }

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
  function launchProcess(name: string, ports: MappedPorts) {
    const [program, ...args] = service(name).command ?? []
    expect(program).toBe('node')
    const mapped = Object.entries(toMappedEnv(service(name), ports)).map(([variable, value]) => [
      variable,
      value.replace(/^\/run\/secrets/, servers.secretsDir),
    ])
    const env = { PATH: process.env.PATH, NODE_ENV: 'production' }
    return launch({
      command: process.execPath,
      args,
      cwd: projectDir,
      env: Object.assign(env, Object.fromEntries(mapped)),
      orphanSignal: 'SIGKILL',
    })
  }

  test('have a nats-server that syncs before it acknowledges, and is healthy', async () => {
    const varz = (await (await fetch(`${servers.natsMonitorUrl}/varz`)).json()) as object
    expect(varz).toMatchObject({ jetstream: { config: { sync_always: true } } })
    const health = /http:\S+/.exec(service('nats').healthcheck?.test?.at(-1) ?? '')?.[0]
    const path = new URL(health as string).pathname
    expect((await fetch(servers.natsMonitorUrl + path)).status).toBe(200)
  })

  test('get every mounted file from make-secrets.sh, which keeps existing files', async () => {
    const { secretsDir, readSecret } = servers
    const made = readdirSync(secretsDir)
    const expected = Object.values(compose.secrets).map(({ file }) =>
      file.replace('./secrets/', ''),
    )
    expect(made).toEqual(expect.arrayContaining(expected))
    expect(statSync(secretsDir).mode & 0o777).toBe(0o700)
    expect(Buffer.from(readSecret('master_key'), 'base64')).toHaveLength(32)
    for (const [name, key] of Object.entries(toDerivedKeys(readSecret('master_key')))) {
      expect(readSecret(name.toLowerCase())).toBe(key)
    }
    const before = made.map((name) => readFileSync(join(secretsDir, name), 'utf8'))
    const { stdout } = await run(join(projectDir, 'deploy/make-secrets.sh'), [secretsDir])
    expect(stdout).toBe('')
    expect(made.map((name) => readFileSync(join(secretsDir, name), 'utf8'))).toEqual(before)
  })

  test('have the addresses of servers of your own in these files', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'di-secrets-'))
    const hosts = {
      NATS_HOST: 'nats.test:4223',
      POSTGRES_HOST: 'db.test:5433',
      CLICKHOUSE_HOST: 'olap.test:8124',
    }
    const env = { PATH: process.env.PATH, ...hosts }
    await run(join(projectDir, 'deploy/make-secrets.sh'), [dir], { env })
    const urls = readdirSync(dir).filter((name) => name.includes('_url_'))
    const found = urls.map((name) => new URL(readFileSync(join(dir, name), 'utf8')).host)
    expect(new Set(found)).toEqual(new Set(Object.values(hosts)))
    rmSync(dir, { recursive: true })
  })

  test('become healthy, all five, after the migrations end with success', async () => {
    const order = listInStartOrder(compose)
    const at = (name: string) => order.indexOf(name)
    for (const server of ['nats', 'postgres', 'clickhouse']) {
      expect(at('migrate')).toBeGreaterThan(at(server))
    }
    const ports = await choosePorts()
    const migrate = launchProcess('migrate', ports)
    const [code] = await once(migrate, 'exit')
    expect(code, migrate.printed).toBe(0)

    const started = SERVICE_NAMES.map((name) => ({ name, child: launchProcess(name, ports) }))
    const isHealthy = async ({ name, child }: (typeof started)[number]) => {
      const [program, ...args] = toMappedHealthcheck(service(name), ports)
      expect(program).toBe('node')
      await until(`${name} is healthy`, async () => {
        if (child.exitCode !== null) throw new Error(`${name} ended:\n${child.printed}`)
        return run(process.execPath, args).then(
          () => true,
          () => false,
        )
      })
    }
    await Promise.all(started.map(isHealthy))
    const exits = await Promise.all(started.map(({ child }) => endChild(child, end)))
    expect(exits).toEqual(exits.map(() => ({ code: 0, signal: null })))
  })
})
