/**
 * A wrong password or an unknown CA, at every server and in every process, is logged once, at
 * `warn`, with the reason, and shown in readiness. The process retries and keeps running.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { endChild } from '../../../deploy/local/stack/launch.ts'
import type { ServiceName } from '../../../deploy/local/stack/settings.ts'
import { nodeEnv } from '../../support/process/node-env.ts'
import { withOwnKeys } from '../../support/process/own-keys.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import {
  createCa,
  makeFolder,
  startConfigured,
} from '../../support/servers/nats/nats-configured.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { chooseAddresses } from '../../support/servers/service-addresses.ts'

const folder = makeFolder()
const secret = 'wrong-password-that-must-not-be-seen'
let postgres: TestPostgres
let clickhouse: TestClickhouse
let nats: Awaited<ReturnType<typeof startConfigured>>
let tlsNats: Awaited<ReturnType<typeof startConfigured>>
/** A TLS proxy before a ClickHouse, with a certificate of an unknown CA. */
let tlsProxy: Server
const children: ChildProcess[] = []

beforeAll(async () => {
  const { cert, key } = createCa(folder.dir, 'unknown').sign('server', 'IP:127.0.0.1')
  const account = 'authorization { user: di, password: right }'
  tlsProxy = createServer({ cert: readFileSync(cert), key: readFileSync(key) })
  await new Promise<void>((resolve) => tlsProxy.listen(0, '127.0.0.1', resolve))
  ;[postgres, clickhouse, nats, tlsNats] = await Promise.all([
    startPostgres(),
    startClickhouse(),
    startConfigured(folder.dir, [account]),
    startConfigured(folder.dir, [account, `tls { cert_file: "${cert}", key_file: "${key}" }`]),
  ])
})

afterAll(async () => {
  await Promise.all(children.map((child) => endChild(child, { signal: 'SIGTERM', graceMs: 8_000 })))
  await Promise.all([postgres?.stop(), clickhouse?.stop(), nats?.stop(), tlsNats?.stop()])
  tlsProxy?.close()
  folder.remove()
})

function withPassword(url: string): string {
  const wrong = new URL(url)
  wrong.password = secret
  return wrong.href
}

type Line = { level: number; msg: string; thread?: string; server?: string; reason?: string }

async function startProcess(name: ServiceName, env: Record<string, string>) {
  const addresses = await chooseAddresses(name)
  const child = spawn(process.execPath, [`services/${name}/main.ts`], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...nodeEnv(),
      ...withOwnKeys(name, { MASTER_KEY: randomBytes(32).toString('base64') }),
      ADMIN_TOKEN: 'x'.repeat(32),
      ...addresses.env,
      ...env,
    },
  })
  children.push(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  const readMissing = async (): Promise<Record<string, string>> => {
    const answer = await fetch(`${addresses.internalUrl}/readyz`).catch(() => null)
    if (answer === null) return {}
    return ((await answer.json()) as { missing?: Record<string, string> }).missing ?? {}
  }
  const readLines = () =>
    output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Line)
  return { child, readMissing, readLines, output: () => output }
}

const uses: Record<ServiceName, { servers: string[]; ready: string[] }> = {
  ingest: { servers: ['NATS'], ready: ['nats'] },
  scorer: {
    servers: ['ClickHouse', 'NATS', 'Postgres'],
    ready: ['clickhouse', 'nats', 'postgres'],
  },
  api: { servers: ['ClickHouse', 'Postgres'], ready: ['clickhouse', 'postgres'] },
  // The console works without ClickHouse, and delivery without NATS.
  console: { servers: ['ClickHouse', 'NATS', 'Postgres'], ready: ['nats', 'postgres'] },
  delivery: { servers: ['NATS', 'Postgres'], ready: ['postgres'] },
}

async function expectSaid(name: ServiceName, env: Record<string, string>, why: string) {
  const { servers, ready } = uses[name]
  const started = await startProcess(name, env)
  const readLogged = () => started.readLines().filter((line) => line.reason === why)
  // The jobs of the console have connections of their own, in a thread of their own.
  const threads = name === 'console' ? [undefined, 'jobs'] : [undefined]
  await until(`${name} says why`, async () => {
    if (started.child.exitCode !== null) throw new Error(started.output())
    const missing = await started.readMissing()
    const isMissing = ready.every((server) => missing[server]?.endsWith(why))
    return isMissing && readLogged().length >= threads.length * servers.length
  })
  // Repeated checks, while the process itself retries repeatedly.
  for (let n = 0; n < 5; n++) {
    await started.readMissing()
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  const logged = started.readLines().filter(({ reason }) => reason !== undefined)
  for (const thread of threads) {
    for (const server of servers) {
      const own = logged.filter((line) => line.thread === thread && line.server === server)
      const reasons = own.map(({ reason }) => reason)
      expect(reasons).toContain(why)
      // On a slow machine an attempt may end for another reason; the same one is said once.
      const repeated = reasons.filter((reason, at) => reason === reasons[at - 1])
      expect(repeated, started.output()).toEqual([])
    }
  }
  for (const { level } of logged) expect(level).toBe(40)
  expect(started.output()).not.toContain(secret)
  expect(started.child.exitCode).toBeNull()
}

describe('every process reports once, and in readiness, the reason', () => {
  it.each(Object.keys(uses) as ServiceName[])('%s: a wrong password', async (name) => {
    const env = {
      NATS_URL: `nats://di:${secret}@127.0.0.1:${nats.port}`,
      POSTGRES_URL: withPassword(postgres.url),
      CLICKHOUSE_URL: withPassword(clickhouse.url),
    }
    await expectSaid(name, env, 'refuses the credentials')
  })

  it.each(['scorer'] as const)('%s: a certificate of an unknown CA', async (name) => {
    const { port } = tlsProxy.address() as AddressInfo
    const started = await startProcess(name, {
      NATS_URL: `tls://di:right@127.0.0.1:${tlsNats.port}`,
      CLICKHOUSE_URL: `https://di:${secret}@127.0.0.1:${port}`,
      POSTGRES_URL: `${postgres.url}?sslmode=require`,
    })
    const why = 'has a certificate of an unknown CA'
    await until('it says why', async () => {
      const { nats: one, clickhouse: two, postgres: three } = await started.readMissing()
      return (
        one === `is not connected: it ${why}` &&
        two === why &&
        three === 'offers no TLS, which the settings ask for'
      )
    })
    expect(started.output()).not.toContain(secret)
  })
})
