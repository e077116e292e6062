// The embedded servers of the local stack: how a nats-server is found or fetched, that it syncs
// before it acknowledges, and that PostgreSQL starts after any crash.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect as dial } from 'node:net'
import { availableParallelism, networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { connect, StorageType } from 'nats'
import { Client } from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { describeOldServer } from '#shared/core/base/server-versions.ts'
import { cachedNatsServer, keepInCache } from '../../../deploy/local/nats/nats-cache.ts'
import { fetchNatsServer, ownSources } from '../../../deploy/local/nats/nats-fetch.ts'
import {
  findNatsServer,
  missingNatsServer,
  natsGreets,
  natsLaunchSpec,
} from '../../../deploy/local/nats/nats-server.ts'
import { awaitReady } from '../../../deploy/local/stack/await-ready.ts'
import { createLauncher, endChild, isAlive } from '../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { type NatsUser, natsUserNames } from '../../../deploy/nats-users.ts'
import { until } from '../../support/process/until.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'

const run = promisify(execFile)
const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const workDir = mkdtempSync(join(tmpdir(), 'di-local-servers-'))

afterAll(() => rmSync(workDir, { recursive: true, force: true }))

describe('finding a nats-server', () => {
  test('returns one that is new enough, although the path has an older one', async () => {
    const bin = join(workDir, 'old-on-path')
    mkdirSync(bin)
    const file = join(bin, 'nats-server')
    writeFileSync(file, '#!/bin/sh\necho nats-server: v2.9.10\n', { mode: 0o755 })
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
    const found = await findNatsServer({ env, projectDir })
    expect(found.file).not.toBe(file)
    expect(describeOldServer('NATS', found.version)).toBeNull()
    const named = findNatsServer({ env: { ...env, NATS_SERVER_BIN: file }, projectDir })
    await expect(named).rejects.toThrow(
      /NATS_SERVER_BIN=.* has version 2\.9\.10; 2\.10\.23 or newer/,
    )
  })

  test('prefers NATS_SERVER_BIN, and rejects it when it is not a nats-server', async () => {
    const found = await findNatsServer({ env: process.env, projectDir })
    const mine = join(workDir, 'my-nats-server')
    copyFileSync(found.file, mine)
    chmodSync(mine, 0o755)
    const env = { ...process.env, NATS_SERVER_BIN: mine }
    expect(await findNatsServer({ env, projectDir })).toMatchObject({ file: mine })
    const wrong = { ...process.env, NATS_SERVER_BIN: '/bin/true' }
    await expect(findNatsServer({ env: wrong, projectDir })).rejects.toThrow(/NATS_SERVER_BIN/)
  })

  test('fails, when none can be fetched, with the reason and every remedy', async () => {
    const { binary, reasons } = await fetchNatsServer({
      cacheDir: join(workDir, 'empty-cache'),
      pathVar: process.env.PATH,
      aptRoot: join(workDir, 'no-apt-here'),
      // No process listens on the discard port.
      releaseOrigin: 'http://127.0.0.1:9',
      report: () => undefined,
    })
    expect(binary).toBeNull()
    const { message } = missingNatsServer(reasons)
    for (const word of ['release 2.15.0: fetch failed', 'NATS_SERVER_BIN', 'PATH', 'NATS_URL']) {
      expect(message).toContain(word)
    }
  })

  test('keeps a release archive only when its checksum is the pinned one', async () => {
    const found = await findNatsServer({ env: process.env, projectDir })
    const target = `${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`
    const folder = `nats-server-v2.15.0-${target}`
    mkdirSync(join(workDir, folder))
    copyFileSync(found.file, join(workDir, folder, 'nats-server'))
    const archive = join(workDir, 'archive.tar.gz')
    await run('tar', ['-czf', archive, '-C', workDir, folder])
    const bytes = readFileSync(archive)
    const requestedUrls: string[] = []
    const site = createServer((request, response) => {
      requestedUrls.push(request.url ?? '')
      response.end(bytes)
    })
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
    const options = {
      cacheDir: join(workDir, 'cache'),
      pathVar: process.env.PATH,
      aptRoot: join(workDir, 'no-apt-here'),
      releaseOrigin: `http://127.0.0.1:${(site.address() as AddressInfo).port}`,
      report: () => undefined,
    }
    try {
      const refused = await fetchNatsServer({
        ...options,
        releaseSha256: { [target]: '0'.repeat(64) },
      })
      expect(refused.binary).toBeNull()
      expect(refused.reasons.join()).toContain('is not the pinned')

      const sha256 = createHash('sha256').update(bytes).digest('hex')
      const both = await Promise.all(
        [1, 2].map(() => fetchNatsServer({ ...options, releaseSha256: { [target]: sha256 } })),
      )
      for (const { binary } of both) expect(binary?.version).toBe(found.version)
      expect(requestedUrls.at(-1)).toBe(`/v2.15.0/${folder}.tar.gz`)
      const again = await findNatsServer({
        env: { CACHE_DIR: options.cacheDir, PATH: join(workDir, 'nowhere') },
        projectDir,
      })
      expect(again.file).toContain(options.cacheDir)
    } finally {
      site.close()
    }
  })

  test('never runs a cached program that is not the one that was verified', async () => {
    const found = await findNatsServer({ env: process.env, projectDir })
    const cacheDir = join(workDir, 'checked-cache')
    mkdirSync(cacheDir, { mode: 0o755 })
    const { file } = await keepInCache(cacheDir, found.file)
    const lines: string[] = []
    const cached = () => cachedNatsServer(cacheDir, (line) => lines.push(line))
    expect(await cached()).toEqual({ ...found, file })
    // A program that leaves a trace where it runs.
    const trace = join(workDir, 'it-ran')
    const evil = `#!/bin/sh\ntouch ${trace}\necho nats-server: v${found.version}\n`
    writeFileSync(file, evil)
    expect(await cached()).toBeNull()
    expect(lines.join()).toContain('its SHA-256 is another one')
    for (const shared of [file, cacheDir]) {
      await keepInCache(cacheDir, found.file)
      chmodSync(shared, 0o777)
      expect(await cached()).toBeNull()
      expect(lines.at(-1)).toContain(`others can change ${shared}`)
      chmodSync(shared, 0o755)
    }
    expect(await cached()).toEqual({ ...found, file })
    expect(existsSync(trace)).toBe(false)
  })

  test('goes on with the program that the previous release cached, under its digest', async () => {
    const found = await findNatsServer({ env: process.env, projectDir })
    const cacheDir = join(workDir, 'earlier-cache')
    mkdirSync(cacheDir, { mode: 0o755 })
    copyFileSync(found.file, join(cacheDir, `nats-server-${found.version}`))
    const lines: string[] = []
    const first = await cachedNatsServer(cacheDir, (line) => lines.push(line))
    expect(first?.file).toMatch(/nats-server-[\d.]+-[0-9a-f]{64}$/)
    expect(lines.join()).toContain('has no digest yet')
    expect(await cachedNatsServer(cacheDir, () => expect.fail())).toEqual(first)
  })

  test('uses apt with the distribution’s own sources only, with the suite replaced', () => {
    const apt = join(workDir, 'apt')
    mkdirSync(join(apt, 'sources.list.d'), { recursive: true })
    const stanzas = [
      '# a comment\nTypes: deb deb-src\nURIs: http://mirror.test/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /k.gpg',
      'Types: deb\nURIs: http://mirror.test/debian-security\nSuites: bookworm-security\nComponents: main',
      'Types: deb\nURIs: http://vendor.test/repo\nSuites: bookworm\nComponents: stable',
      'Types: deb\nURIs: http://unsigned.test/debian\nSuites: bookworm\nComponents: main\nTrusted: yes',
    ]
    writeFileSync(join(apt, 'sources.list.d/a.sources'), stanzas.join('\n\n'))
    writeFileSync(
      join(apt, 'sources.list'),
      'deb [signed-by=/k.gpg] http://old.test/debian bookworm main contrib\ndeb-src http://old.test/debian bookworm main\ndeb [trusted=yes] http://unsigned.test/debian bookworm main\n',
    )
    const written = ownSources(apt, 'bookworm').map((source) => source.withSuite('sid'))
    expect(written.sort()).toEqual([
      'Types: deb\nURIs: http://mirror.test/debian\nSuites: sid\nComponents: main\nSigned-By: /k.gpg\n',
      'deb [signed-by=/k.gpg] http://old.test/debian sid main contrib\n',
    ])
  })
})

describe('the embedded nats-server', () => {
  test('runs JetStream with sync_interval always and 8 MB payloads, as it reports', async () => {
    const binary = await findNatsServer({ env: process.env, projectDir })
    const [port, monitorPort] = [await choosePort({}), await choosePort({})]
    const dir = join(workDir, 'varz')
    const passwords = Object.fromEntries(natsUserNames.map((user) => [user, 'secret'])) as Record<
      NatsUser,
      string
    >
    const settings = { binary, dir, port, passwords }
    const spec = natsLaunchSpec(settings, { ...process.env, GOMAXPROCS: undefined })
    // The configuration itself turns monitoring off; the flags add it for this one query.
    const args = [...spec.args, '--http_port', `${monitorPort}`]
    const child = createLauncher({ pathVar: process.env.PATH }).launch({ ...spec, args })
    try {
      const isReady = () => natsGreets(port)
      await awaitReady({ name: 'nats-server', child, isReady, limitMs: 20_000 })
      const response = await fetch(`http://127.0.0.1:${monitorPort}/varz`)
      const varz = (await response.json()) as Record<string, unknown>
      expect(varz).toMatchObject({
        host: '127.0.0.1',
        auth_required: true,
        max_payload: 8 * 1024 ** 2,
        gomaxprocs: Math.max(1, Math.floor(availableParallelism() / 2)),
        jetstream: { config: { sync_always: true } },
      })
    } finally {
      await endChild(child, { signal: 'SIGTERM', graceMs: 5_000 })
    }
  })

  test('keeps an acknowledged message through kill -9, and rejects unknown clients', async () => {
    const server = await startNats()
    try {
      const { host, username: user, password: pass } = new URL(server.url)
      await expect(connect({ servers: host })).rejects.toThrow(/authorization/i)
      const before = await connect({ servers: host, user, pass, reconnect: false })
      const manager = await before.jetstreamManager()
      await manager.streams.add({ name: 'KEPT', subjects: ['kept'], storage: StorageType.File })
      for (let n = 1; n <= 20; n++) {
        expect((await before.jetstream().publish('kept', `message ${n}`)).seq).toBe(n)
      }
      const { pid } = server
      await server.kill('SIGKILL')
      await server.restart()
      expect(server.pid).not.toBe(pid)
      const after = await connect({ servers: host, user, pass })
      const { state } = await (await after.jetstreamManager()).streams.info('KEPT')
      expect(state.messages).toBe(20)
      await after.close()
    } finally {
      await server.stop()
    }
  })
})

describe('the embedded PostgreSQL', () => {
  test('keeps its data through kill -9, and starts with a foreign id in its pid file', async () => {
    const server = await startPostgres({ settings: { fsync: 'on' } })
    try {
      const url = await server.createDatabase()
      await query(url, 'create table kept (n int)')
      await query(url, 'insert into kept values (7)')
      await server.kill('SIGKILL')
      await server.restart()
      expect(await query(url, 'select n from kept')).toEqual([{ n: 7 }])

      await server.kill('SIGKILL')
      const pidFile = join(server.dir, 'postgres', 'postmaster.pid')
      const lines = readFileSync(pidFile, 'utf8').split('\n')
      writeFileSync(pidFile, [`${process.pid}`, ...lines.slice(1)].join('\n'))
      await server.restart()
      expect(await query(url, 'select n from kept')).toEqual([{ n: 7 }])
    } finally {
      await server.stop()
    }
  })

  test('ends when it loses a process, so that it restarts instead of recovering', async () => {
    const server = await startPostgres({ settings: { fsync: 'on' } })
    const client = new Client({ connectionString: server.url })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.query('create table kept as select 7 as n')
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
      const { pid } = server
      process.kill(rows[0]!.pid, 'SIGKILL')
      await until('the end of all of it', () => !isAlive(pid))
      await server.restart()
      expect(await query(server.url, 'select n from kept')).toEqual([{ n: 7 }])
    } finally {
      await client.end().catch(() => undefined)
      await server.stop()
    }
  })

  test('syncs, needs its password, listens only on 127.0.0.1 and never runs as root', async () => {
    const server = await startPostgres({ settings: { fsync: 'on' } })
    try {
      const shown = await query(
        server.url,
        `select name, setting from pg_settings
         where name in ('fsync', 'synchronous_commit', 'unix_socket_directories')
         order by name`,
      )
      expect(shown.map((row) => row.setting)).toEqual(['on', 'on', ''])
      const wrong = new URL(server.url)
      wrong.password = 'guess'
      await expect(query(wrong.href, 'select 1')).rejects.toThrow(/password/)
      const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
      expect(status).not.toMatch(/^Uid:\s+0\b/m)
      for (const address of otherAddresses()) {
        expect(await canDial(address, server.port)).toBe(false)
      }
    } finally {
      await server.stop()
    }
  })
})

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query(text)).rows
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** This machine's addresses other than loopback. */
function otherAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter((one) => !one.internal && one.family === 'IPv4')
    .map((one) => one.address)
}

function canDial(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = dial({ host, port, timeout: 1_000 })
    const end = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
    socket.once('timeout', () => end(false))
  })
}
