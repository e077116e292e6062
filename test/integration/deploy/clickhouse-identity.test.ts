// No query of the embedded engine reads a secret, also not the owner's. Started by root, it is a
// user of its own and reads neither root's files nor root's environment. Otherwise it has namespaces
// of its own, in which it sees neither the data folder nor other processes' environments.
import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { analystSettings } from '#shared/core/analytics/analyst-access.ts'
import { chooseIsolation, hasNamespaces } from '../../../deploy/local/clickhouse/isolation.ts'
import { callClickhouse } from '../../support/servers/clickhouse-request.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'

describe.runIf(process.getuid?.() === 0)('the engine that root starts', () => {
  let folder: string
  let engine: TestClickhouse
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'identity-'))
    chmodSync(folder, 0o755)
    writeFileSync(join(folder, 'secrets.json'), 'MASTER_KEY', { mode: 0o600 })
    // The state that an earlier version left, with root as the owner.
    mkdirSync(join(folder, 'clickhouse/run'), { recursive: true, mode: 0o700 })
    writeFileSync(join(folder, 'clickhouse/run/users.xml'), '', { mode: 0o600 })
    engine = await startClickhouse({ path: join(folder, 'clickhouse') })
  })
  afterAll(async () => {
    await engine?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('is another user', () => {
    const status = readFileSync(`/proc/${engine.pid}/status`, 'utf8')
    expect(status).toMatch(/^Uid:\t65533\t65533\t65533\t65533$/m)
    expect(status).toMatch(/^CapEff:\t0+$/m)
  })

  it.each(['secrets.json', '/proc/self/environ', '/etc/shadow'])(
    'reads no secret: %s',
    async (name) => {
      const path = name.startsWith('/') ? name : join(folder, name)
      const body = `select length(file('${path}'))`
      const { text } = await callClickhouse(engine.url, { method: 'POST', body })
      expect(text).toContain('Permission denied')
    },
  )

  it('is one where that user may enter the folders, and in namespaces elsewhere', () => {
    const elsewhere = hasNamespaces(process.env.PATH) ? 'namespace' : 'none'
    for (const [mode, isolation] of [
      [0o711, 'user'],
      [0o700, elsewhere],
    ] as const) {
      chmodSync(folder, mode)
      expect(chooseIsolation(folder, process.env.PATH)).toBe(isolation)
    }
    chmodSync(folder, 0o755)
  })

  it('starts in a folder that its user may not enter', async () => {
    const closed = mkdtempSync(join(tmpdir(), 'closed-'))
    const workingDir = join(closed, 'project')
    mkdirSync(workingDir)
    try {
      const other = await startClickhouse({ workingDir })
      expect(await other.kill('SIGTERM')).toBe(0)
    } finally {
      rmSync(closed, { recursive: true, force: true })
    }
  })

  it('reports where it cannot change the user', async () => {
    const closed = mkdtempSync(join(tmpdir(), 'closed-'))
    const other = await startClickhouse({ path: join(closed, 'clickhouse') })
    try {
      expect(readFileSync(`/proc/${other.pid}/status`, 'utf8')).toMatch(/^Uid:\t0\t/m)
      expect(other.complaint()).toContain(`only root may enter ${closed}`)
    } finally {
      await other.stop()
      rmSync(closed, { recursive: true, force: true })
    }
  })
})

describe.runIf(hasNamespaces(process.env.PATH))('the engine in namespaces of its own', () => {
  let dataDir: string
  let engine: TestClickhouse
  let other: ChildProcess
  beforeAll(async () => {
    // As DATA_DIR of the user who starts the stack: the engine is of the same user.
    dataDir = mkdtempSync(join(tmpdir(), 'isolated-'))
    for (const name of ['logs', 'clickhouse']) mkdirSync(join(dataDir, name), { mode: 0o700 })
    writeFileSync(join(dataDir, 'stack.json'), 'ADMIN_TOKEN', { mode: 0o600 })
    other = spawn('sleep', ['300'], { env: { ...process.env, MASTER_KEY: 'k' } })
    engine = await startClickhouse({ path: join(dataDir, 'clickhouse'), isIsolated: true })
    // Written after its start, by the rename that replaces a state file.
    writeFileSync(join(dataDir, 'secrets.tmp'), 'MASTER_KEY', { mode: 0o600 })
    renameSync(join(dataDir, 'secrets.tmp'), join(dataDir, 'secrets.json'))
    renameSync(join(dataDir, 'stack.json'), join(dataDir, 'moved.json'))
    renameSync(join(dataDir, 'moved.json'), join(dataDir, 'stack.json'))
  })
  afterAll(async () => {
    other?.kill('SIGKILL')
    await engine?.stop()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const asOwner = async (body: string) =>
    (await callClickhouse(engine.url, { method: 'POST', body })).text

  it.each(['stack.json', 'secrets.json', 'clickhouse/../secrets.json'])(
    'does not see %s of the data folder',
    async (name) => {
      for (const path of [join(dataDir, name), `${dataDir}/${name}`]) {
        expect(await asOwner(`select file('${path}')`)).toContain('FILE_DOESNT_EXIST')
        const table = await asOwner(`select * from file('${path}', 'LineAsString')`)
        expect(table).toMatch(/CANNOT_STAT|FILE_DOESNT_EXIST|CANNOT_EXTRACT|doesn't exist/)
      }
    },
  )

  it.each(['environ', 'mem', 'root/etc/hostname', 'fd/1'])(
    'reads nothing of another process: %s',
    async (name) => {
      const text = await asOwner(`select length(file('/proc/${other.pid}/${name}'))`)
      expect(text).toMatch(/Permission denied|PATH_ACCESS_DENIED|CANNOT_OPEN_FILE|DOESNT_EXIST/)
      const own = await asOwner(`select length(file('/proc/self/status')) > 0`)
      expect(own).toBe('1\n')
    },
  )

  const nice = 'os_threads_nice_value_query'
  it('has no capability, and goes on after queries with the settings of analysts', async () => {
    const params = { [nice]: String(analystSettings[nice]) }
    const ask = async (body: string) =>
      (await callClickhouse(engine.url, { method: 'POST', params, body })).text
    for (let n = 0; n < 3; n += 1) {
      expect(await ask('select no_such_column')).toContain('UNKNOWN_IDENTIFIER')
      expect(await ask('select sum(number) from numbers(10)')).toBe('45\n')
    }
    expect(readFileSync(`/proc/${engine.pid}/status`, 'utf8')).toMatch(/^CapEff:\t0+$/m)
  })

  it('works like others, keeps its process id, and its files are the user’s', async () => {
    expect(await asOwner('create table t (a Int8) engine = MergeTree order by a')).toBe('')
    expect(await asOwner('insert into t values (1)')).toBe('')
    expect(await asOwner('select * from t')).toBe('1\n')
    expect(readFileSync(`/proc/${engine.pid}/cmdline`, 'utf8')).toContain('clickhouse-server.ts')
    const { uid } = statSync(join(dataDir, 'clickhouse/run/users.xml'))
    expect(uid).toBe(process.getuid?.())
  })
})
