// The life of a local stack at a terminal: start, crash of a child process, Ctrl-C, crash of all
// processes, restart. Two stacks run side by side throughout.

import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { backupLease } from '#shared/io/backup/backup-folder.ts'
import { withLease } from '#shared/io/leases/leases.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { sendSignal } from '../../deploy/local/stack/launch.ts'
import {
  freePortBase,
  type StackFacts,
  spawnStack,
  startStack,
  survivors,
  type TestStack,
} from '../support/process/stack.ts'
import { until } from '../support/process/until.ts'

const run = promisify(execFile)

const SERVICES = ['ingest', 'api', 'console', 'scorer', 'delivery'] as const
const SERVERS = ['nats', 'postgres', 'clickhouse'] as const

let first: TestStack
let second: TestStack

beforeAll(async () => {
  const bases = [await freePortBase(), await freePortBase()]
  ;[first, second] = await Promise.all([
    startStack({ portBase: bases[0] as number }),
    startStack({ portBase: bases[1] as number, throughNpm: true }),
  ])
})

afterAll(async () => {
  await Promise.all([first?.discard(), second?.discard()])
})

/**
 * Every process of this tree, including those that no file lists (its reaper, PostgreSQL's own).
 */
async function processesOf(root: number): Promise<number[]> {
  const { stdout } = await run('ps', ['-eo', 'pid=,ppid=,stat='])
  const rows = stdout
    .trim()
    .split('\n')
    .map((row) => row.trim().split(/\s+/))
    .filter((row) => !row[2]?.startsWith('Z'))
  const found = new Set([root])
  for (let size = 0; size !== found.size; ) {
    size = found.size
    for (const [pid, parent] of rows) if (found.has(Number(parent))) found.add(Number(pid))
  }
  return [...found]
}

async function readyStatus(facts: StackFacts, name: (typeof SERVICES)[number]): Promise<number> {
  return fetch(`${facts.internal[name]}/readyz`).then(
    (response) => response.status,
    () => 0,
  )
}

const shell = async (line: string) => (await run('bash', ['-c', line])).stdout

/** The lines for a newcomer to paste: the signed submission and the read of its history. */
function pasteable(output: string): { send: string; read: string } {
  const lines = output.split('\n')
  const send = lines.find((line) => line.startsWith('BODY='))
  const read = lines.find((line) => line.startsWith('curl ') && line.includes('/v1/di/devices/'))
  if (!send || !read) throw new Error(`no lines to paste in:\n${output}`)
  return { send, read }
}

/** Whether a file has a text. ClickHouse removes files of merged parts at any time. */
function hasText(file: string, text: string): boolean {
  try {
    return readFileSync(file).includes(text)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

describe('a running stack', () => {
  test('stack.json has every field of the contract and is private', () => {
    const facts = first.stack
    expect(statSync(join(first.dataDir, 'stack.json')).mode & 0o777).toBe(0o600)
    for (const [n, name] of ['ingest', 'api', 'console', 'scorer', 'delivery'].entries()) {
      expect(facts[name as 'ingest']).toBe(`http://127.0.0.1:${first.portBase + n}`)
      const internal = first.portBase + (n < 3 ? 10 + n : n)
      expect(facts.internal[name as 'ingest']).toBe(`http://127.0.0.1:${internal}`)
    }
    for (const name of SERVERS) expect(URL.canParse(facts[name])).toBe(true)
    expect(facts.admin_token.length).toBeGreaterThanOrEqual(32)
    expect(Object.keys(facts.pids).sort()).toEqual([...SERVERS, ...SERVICES].sort())
    expect(facts.demo).toMatchObject({
      tenant_id: 'demo',
      public_api_key: expect.stringMatching(/^dpk_sandbox_/),
      hmac_secret: expect.stringMatching(/^[\w-]{43}$/),
      webhook_secret: expect.stringMatching(/^whsec_/),
    })
  })

  test('prints one line "ready", then the eight addresses and the new credentials', () => {
    const [before, after = ''] = first.output().split(/^ready$/m)
    expect(before).toContain('migrations')
    const facts = first.stack
    for (const name of [...SERVICES, ...SERVERS]) expect(after).toContain(facts[name])
    for (const value of Object.values(facts.demo)) expect(after).toContain(value)
  })

  test('prints a link for the first sign-in, valid once; no file has it', async () => {
    const [link, ...others] = first.output().match(/^http:.*\/invite#[\w-]{43}$/gm) ?? []
    expect(others).toEqual([])
    const origin = first.stack.console
    expect(link).toMatch(`${origin}/invite#`)
    const token = link!.split('#')[1]!
    const files = readdirSync(first.dataDir, { recursive: true, encoding: 'utf8' })
      .map((name) => join(first.dataDir, name))
      .filter((file) => /\.(json|conf|log)$|\/pg_wal\/|\/base\//.test(file))
      .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile())
    expect(files.length).toBeGreaterThan(100)
    expect(files.filter((file) => hasText(file, token))).toEqual([])
    const accept = async () => {
      const answer = await fetch(`${origin}/admin/v1/invitations/${token}`, {
        method: 'POST',
        headers: { origin, 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'Ada', password: 'a sentence that only Ada types' }),
      })
      return { status: answer.status, cookie: answer.headers.get('set-cookie'), answer }
    }
    const { status, cookie, answer } = await accept()
    expect(status, await answer.text()).toBe(200)
    expect(cookie).toMatch(/^di_session=[\w-]{43}; .*HttpOnly/)
    const shown = await fetch(`${origin}/admin/v1/session`, {
      headers: { cookie: cookie!.split(';', 1)[0]! },
    })
    expect(await shown.json()).toMatchObject({ operator: { role: 'admin', tenants: 'all' } })
    expect((await accept()).status).toBe(404)
    const di = `DATA_DIR=${first.dataDir} npm run -s di -- operators`
    const listed = JSON.parse(await shell(`${di} list --json`))
    expect(listed.data).toHaveLength(1)
    const invited = JSON.parse(await shell(`${di} invite b@example.com --role analyst --json`))
    expect(invited.url).toMatch(`${origin}/invite#`)
  })

  test('public listeners answer /healthz, and neither readiness nor metrics', async () => {
    for (const name of ['ingest', 'api', 'console'] as const) {
      const status = async (url: string) => (await fetch(url)).status
      expect(await status(`${first.stack[name]}/healthz`)).toBe(200)
      for (const path of ['readyz', 'metrics']) {
        expect(await status(`${first.stack[name]}/${path}`), `${name} ${path}`).toBe(404)
        expect(await status(`${first.stack.internal[name]}/${path}`)).toBe(200)
      }
    }
  })

  test('the process ids are those of the servers themselves', () => {
    const { pids } = first.stack
    const program = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    expect(program(pids.nats)).toMatch(/^[^\0]*nats-server/)
    expect(program(pids.postgres)).toMatch(/^[^\0]*postgres/)
    expect(program(pids.clickhouse)).toContain('clickhouse-server.ts')
    for (const name of SERVICES) expect(program(pids[name])).toContain(`${name}/main.ts`)
  })

  test('every file with a secret is readable only for its owner', () => {
    const open = readdirSync(first.dataDir, { recursive: true, encoding: 'utf8' })
      .map((name) => join(first.dataDir, name))
      .filter((file) => /\.(json|conf|log)$/.test(file))
      .filter((file) => !file.startsWith(join(first.dataDir, 'clickhouse')))
      .filter((file) => (statSync(file).mode & 0o077) !== 0)
    expect(open).toEqual([])
  })

  test('the printed curl lines work when pasted', async () => {
    const { send, read } = pasteable(first.output())
    const answer = JSON.parse(await shell(send))
    expect(answer).toMatchObject({ status: 'accepted' })
    expect(answer.rasp_score).toBeGreaterThan(0)
    const history = await until('the device appears', async () => {
      const device = JSON.parse(await shell(read))
      return device.sessions?.length === 1 ? device : null
    })
    expect(history).toMatchObject({ device_id: 'demo-device-1' })
  })

  test('a backup that is made while it runs is restored into an empty folder', async () => {
    const { send, read } = pasteable(first.output())
    await until(
      'its event is stored',
      async () => JSON.parse(await shell(read)).sessions?.length === 1,
    )
    const folder = mkdtempSync(join(tmpdir(), 'di-backup-'))
    const [backup, dataDir] = [join(folder, 'backup'), join(folder, 'data')]
    const makeBackup = () => shell(`DATA_DIR=${first.dataDir} npm run -s di -- backup ${backup}`)
    const log = createLog('test', 'silent')
    const postgres = createPostgres(first.stack.postgres, { role: 'test', log })
    await withLease({ renewals: postgres, work: postgres }, backupLease, async () => {
      await expect(makeBackup()).rejects.toThrow('Another `di backup` of this stack is running')
    })
    await postgres.close()
    expect(existsSync(backup)).toBe(false)
    await makeBackup()
    await expect(
      shell(`DATA_DIR=${first.dataDir} npm run -s di -- restore ${backup}`),
    ).rejects.toThrow('is not empty: move it away')
    await shell(`DATA_DIR=${dataDir} npm run -s di -- restore ${backup}`)
    const restored = await startStack({ dataDir })
    try {
      expect(restored.output()).toContain('ClickHouse is restored')
      expect(restored.stack.demo).toEqual(first.stack.demo)
      const moved = (line: string) =>
        line
          .replaceAll(first.stack.ingest, restored.stack.ingest)
          .replaceAll(first.stack.api, restored.stack.api)
      const device = JSON.parse(await shell(read))
      expect(JSON.parse(await shell(moved(read)))).toEqual(device)
      expect(JSON.parse(await shell(moved(send)))).toMatchObject({ status: 'accepted' })
    } finally {
      await restored.discard()
      rmSync(folder, { recursive: true })
    }
  })

  test('a second start on its data is rejected and names the owning process', async () => {
    const portBase = await freePortBase()
    const again = spawnStack({ dataDir: first.dataDir, portBase })
    expect(await again.exit).toMatchObject({ code: 1 })
    expect(again.output()).toContain(`already running on ${first.dataDir}, pid ${first.pid}`)
    expect(await readyStatus(first.stack, 'ingest')).toBe(200)
  })

  test('a rotation of the demo tenant is in stack.json when it returns', async () => {
    const { demo, console: consoleUrl, admin_token } = second.stack
    const answer = await fetch(`${consoleUrl}/admin/v1/tenants/demo/rotate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${admin_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ hmac: true }),
    })
    const { hmac_secret } = (await answer.json()) as { hmac_secret: string }
    expect(hmac_secret).not.toBe(demo.hmac_secret)
    expect(second.stack.demo).toEqual({ ...demo, hmac_secret })
    const di = 'npm run -s di -- tenants rotate demo --api-key --webhook --json'
    const made = JSON.parse(await shell(`DATA_DIR=${second.dataDir} ${di}`))
    expect(made.public_api_key).not.toBe(demo.public_api_key)
    const { public_api_key, webhook_secret } = made
    expect(second.stack.demo).toEqual({
      tenant_id: 'demo',
      hmac_secret,
      public_api_key,
      webhook_secret,
    })
    // The next start begins with these.
    const secrets = JSON.parse(readFileSync(join(second.dataDir, 'secrets.json'), 'utf8'))
    expect(secrets.demo).toEqual(second.stack.demo)
    const alerts = await fetch(`${second.stack.api}/v1/di/alerts`, {
      headers: { authorization: `Bearer ${second.stack.demo.public_api_key}` },
    })
    expect(alerts.status).toBe(200)
  })

  test('killed processes are restarted, with their exit shown and stack.json updated', async () => {
    const before = first.stack.pids
    const killed = ['scorer', 'nats', 'postgres', 'clickhouse'] as const
    for (const name of killed) sendSignal(before[name], 'SIGKILL')
    await until('new process ids', () => {
      const now = first.stack.pids
      return killed.every((name) => now[name] !== before[name])
    })
    expect(first.output()).toMatch(/scorer +ended \(signal SIGKILL\)/)
    await until('all are ready again', async () => {
      const statuses = await Promise.all(SERVICES.map((name) => readyStatus(first.stack, name)))
      return statuses.every((status) => status === 200)
    })
    const { send } = pasteable(first.output())
    expect(JSON.parse(await shell(send))).toMatchObject({ status: 'accepted' })
  })
})

describe('the end of a stack', () => {
  test('kill -9 of npm alone leaves no process behind', async () => {
    const processes = await processesOf(second.pid)
    expect(processes.length).toBeGreaterThanOrEqual(11)
    await second.kill9Parent()
    expect(await survivors(processes, 60_000)).toEqual([])
  })

  test('kill -9 of the stack alone leaves no process behind', async () => {
    const processes = await processesOf(first.pid)
    await first.kill9Parent()
    expect(await survivors(processes, 60_000)).toEqual([])
  })

  test('it starts again on the same data after that, with the same demo tenant', async () => {
    const { send, read } = pasteable(first.output())
    const { dataDir, portBase, stack: before } = first
    first = await startStack({ dataDir, portBase })
    expect(first.stack.demo).toEqual(before.demo)
    expect(first.stack.admin_token).toBe(before.admin_token)
    expect(first.output()).not.toContain(before.demo.hmac_secret)
    // There is an operator now.
    expect(first.output()).not.toContain('/invite#')
    expect(JSON.parse(await shell(read)).sessions).toHaveLength(1)
    expect(JSON.parse(await shell(send))).toMatchObject({ status: 'accepted' })
  })

  test('it starts again after kill -9 of every process; Ctrl-C ends it in order', async () => {
    const { dataDir, portBase, stack: before } = first
    const earlier = await processesOf(first.pid)
    await first.kill9All()
    first = await startStack({ dataDir, portBase, throughNpm: true })
    expect(await survivors(earlier, 0)).toEqual([])
    expect(first.stack.demo).toEqual(before.demo)
    const processes = await processesOf(first.pid)
    // The terminal sends it to the whole group; npm forwards it once more.
    process.kill(-first.pid, 'SIGINT')
    expect(await first.exit).toMatchObject({ code: 0 })
    expect(await survivors(processes, 0)).toEqual([])
    expect(first.output()).toContain('stopped in')
  })

  test('SIGTERM during a start cancels it, with nothing left running', async () => {
    const { dataDir, portBase } = first
    const run = spawnStack({ dataDir, portBase })
    await until('a server runs', () => run.output().includes('PostgreSQL'))
    const processes = await processesOf(run.child.pid as number)
    expect(processes.length).toBeGreaterThan(2)
    run.child.kill('SIGTERM')
    expect(await run.exit).toMatchObject({ code: 0 })
    expect(run.output()).not.toMatch(/^ready$/m)
    expect(await survivors(processes, 0)).toEqual([])
  })
})

describe('a start with bad settings', () => {
  test('lists every bad variable at once and starts nothing', async () => {
    const env = { PORT_BASE: '70000', NATS_URL: 'not a url', NODE_ENV: 'production' }
    const refused = spawnStack({ dataDir: first.dataDir, portBase: 1, env })
    expect(await refused.exit).toMatchObject({ code: 1 })
    expect(refused.output()).toContain('PORT_BASE must be')
    expect(refused.output()).toContain('NATS_URL is not a URL')
    expect(refused.output()).toContain('ALLOW_EMBEDDED=1')
  })
})
