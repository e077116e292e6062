/**
 * The local stack on an unusual machine: a proxy that cannot reach it, and a user id without an
 * account.
 */
import { execFile } from 'node:child_process'
import { chownSync, mkdtempSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  processPermissions,
  secretVariables,
} from '#shared/core/permissions/process-permissions.ts'
import { SERVICE_NAMES } from '../../deploy/local/stack/settings.ts'
import { freePortBase, spawnStack, startStack, type TestStack } from '../support/process/stack.ts'

const run = promisify(execFile)

describe('a stack, with a proxy in the environment', () => {
  let proxy: Server
  let proxyRequests = 0
  let running: TestStack
  let env: Record<string, string>

  beforeAll(async () => {
    proxy = createServer((socket) => {
      proxyRequests++
      socket.destroy()
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    const { port } = proxy.address() as { port: number }
    const url = `http://127.0.0.1:${port}`
    env = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url, HTTPS_PROXY: url, http_proxy: url }
    running = await startStack({ env })
  })
  afterAll(async () => {
    await running?.discard()
    proxy?.close()
  })

  it('neither the stack nor the command line uses the proxy for its own parts', async () => {
    const { stdout } = await run('node', ['services/console/cli.ts', 'tenants', 'list', '--json'], {
      env: { ...process.env, ...env, DATA_DIR: running.dataDir },
    })
    expect(JSON.parse(stdout)).toMatchObject({ data: [{ tenant_id: 'demo' }] })
    expect(proxyRequests).toBe(0)
  })

  it('every process has its own secrets and users in its environment, and no others', () => {
    const { pids } = running.stack
    for (const name of SERVICE_NAMES) {
      const text = readFileSync(`/proc/${pids[name]}/environ`, 'utf8')
      const env = new Map(text.split('\0').map((line) => line.split(/=(.*)/s) as [string, string]))
      const { secrets, ...stores } = processPermissions[name]
      const present = secretVariables.filter((variable) => env.has(variable))
      expect(secrets, name).toEqual(expect.arrayContaining(present))
      expect(env.has('POSTGRES_ROLE_PASSWORDS'), name).toBe(false)
      for (const store of ['nats', 'postgres', 'clickhouse'] as const) {
        const url = env.get(`${store.toUpperCase()}_URL`)
        expect(url === undefined, `${name} ${store}`).toBe(stores[store] === null)
        if (url !== undefined) expect(new URL(url).username).toMatch(new RegExp(`(^|_)${name}$`))
      }
    }
  })
})

describe('a user id without an account', () => {
  it.runIf(process.getuid?.() === 0)('gets a message about what PostgreSQL needs', async () => {
    const uid = 54_321
    const dataDir = mkdtempSync(join(tmpdir(), 'di-unknown-'))
    chownSync(dataDir, uid, uid)
    const stack = spawnStack({
      dataDir,
      portBase: await freePortBase(),
      env: {
        HOME: undefined,
        NATS_URL: 'nats://127.0.0.1:1',
        CLICKHOUSE_URL: 'http://127.0.0.1:1',
      },
      // It may read the project, also where that lies in a folder of root's own.
      runAs: { uid, gid: uid, caps: ['dac_read_search'] },
    })
    await stack.exit
    expect(stack.output()).toContain(`give user id ${uid} an entry in /etc/passwd`)
  })
})
