/**
 * The local stack where the machine is unusual: a proxy that cannot reach it, and a user that the
 * machine does not know.
 */
import { execFile } from 'node:child_process'
import { chownSync, mkdtempSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePortBase, spawnStack, startStack, type TestStack } from '../support/stack.ts'

const run = promisify(execFile)

describe('with a proxy in the environment', () => {
  let proxy: Server
  let asked = 0
  let running: TestStack
  let env: Record<string, string>

  beforeAll(async () => {
    proxy = createServer((socket) => {
      asked++
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

  it('neither the stack nor the command line asks the proxy for its own parts', async () => {
    const { stdout } = await run('node', ['services/console/cli.ts', 'tenants', 'list', '--json'], {
      env: { ...process.env, ...env, DATA_DIR: running.dataDir },
    })
    expect(JSON.parse(stdout)).toMatchObject({ data: [{ tenant_id: 'demo' }] })
    expect(asked).toBe(0)
  })
})

describe('a user id that the machine does not know', () => {
  it.runIf(process.getuid?.() === 0)('is told what PostgreSQL needs', async () => {
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
      runAs: { uid, gid: uid, caps: [] },
    })
    await stack.exit
    expect(stack.output()).toContain(`give user id ${uid} an entry in /etc/passwd`)
  })
})
