// A real PgBouncer for tests, with the two libraries that it needs. Its configuration is the
// default one: no startup parameters, no prepared statements.

import type { ChildProcess } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresAnswers } from '../../../deploy/local/postgres/postgres-server.ts'
import { awaitReady } from '../../../deploy/local/stack/await-ready.ts'
import { createLauncher, endChild } from '../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { type DebianProgram, findDebianProgram } from './debian-program.ts'

/** Its libraries other than libc and OpenSSL, by their package names in each suite. */
const packages = {
  bookworm: ['pgbouncer', 'libevent-2.1-7', 'libc-ares2'],
  trixie: ['pgbouncer', 'libevent-2.1-7t64', 'libcares2'],
}

export type TestPgbouncer = {
  /** The URL of a database of the server behind it, through PgBouncer. */
  through: (url: string) => string
  stop: () => Promise<void>
}

/**
 * Starts a PgBouncer in front of a PostgreSQL.
 * @param server.url with user and password, which its clients use as well
 * @param server.poolSize connections to the server per database and user
 */
export async function startPgbouncer(
  mode: 'session' | 'transaction',
  server: { url: string; poolSize: number },
): Promise<TestPgbouncer> {
  const program = await findDebianProgram('usr/sbin/pgbouncer', packages)
  const { hostname, port, username, password } = new URL(server.url)
  const dir = await mkdtemp(join(tmpdir(), 'di-pgbouncer-'))
  await chmod(dir, 0o755)
  const listenPort = await choosePort({})
  await writeFile(join(dir, 'users.txt'), `"${username}" "${password}"\n`, { mode: 0o644 })
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: listenPort,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: join(dir, 'users.txt'),
    pool_mode: mode,
    default_pool_size: server.poolSize,
    max_client_conn: 500,
  }
  const file = join(dir, 'pgbouncer.ini')
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  await writeFile(
    file,
    ['[databases]', `* = host=${hostname} port=${port}`, '[pgbouncer]', ...lines, ''].join('\n'),
  )
  const through = (url: string): string => {
    const address = new URL(url)
    address.port = `${listenPort}`
    return address.href
  }
  const child = launch(program, file)
  await awaitReady({
    name: 'pgbouncer',
    child,
    isReady: () => postgresAnswers(through(server.url)),
    limitMs: 120_000,
  })
  return {
    through,
    stop: async () => {
      await endChild(child, { signal: 'SIGINT', graceMs: 2_000 })
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** It refuses to run as root. */
function launch({ file, libraries }: DebianProgram, config: string): ChildProcess {
  const asRoot = process.getuid?.() === 0
  const env = { PATH: process.env.PATH, ...(libraries ? { LD_LIBRARY_PATH: libraries } : {}) }
  const args = [...(asRoot ? ['-u', 'nobody'] : []), config]
  const launcher = createLauncher({ pathVar: process.env.PATH })
  const child = launcher.launch({ command: file, args, env, orphanSignal: 'SIGTERM' })
  child.stdout?.resume()
  child.stderr?.resume()
  return child
}
