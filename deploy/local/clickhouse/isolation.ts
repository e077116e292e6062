// What keeps the SQL of the embedded engine from secrets of this machine: its function `file` reads
// every file that the engine's process can read. Where root starts the stack, the engine becomes a
// user of its own (engine-user.ts). Where an ordinary user does, the kernel gives the engine a user
// namespace, in which it reads no memory or environment of other processes, and a mount namespace,
// in which the data folder has nothing but the engine's own folder. Both are util-linux' `unshare`.
// Its `setpriv` takes the namespace's capabilities from the engine, which would take them for those
// of the machine and end at the first query with a nice value, because it cannot lower that again.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { findProgram } from '../stack/launch.ts'
import { findClosedFolder } from './engine-user.ts'

/** `none` where the kernel or its settings allow no namespace. */
export type Isolation = 'user' | 'namespace' | 'none'

/** Decides how the engine whose folders are in this data folder can be kept from secrets. */
export function chooseIsolation(dataDir: string, pathVar: string | undefined): Isolation {
  const closed = findClosedFolder(join(dataDir, 'clickhouse'))
  if (process.getuid?.() === 0 && closed === null) return 'user'
  return hasNamespaces(pathVar) ? 'namespace' : 'none'
}

/** Whether this user may make namespaces and mounts in them. */
export function hasNamespaces(pathVar: string | undefined): boolean {
  const attempt = `mount -t tmpfs none /tmp; exec ${dropCapabilities} true`
  const [program, ...args] = enterNamespaces(pathVar, ['sh', '-ec', attempt])
  return spawnSync(program!, args, { stdio: 'ignore' }).status === 0
}

/** For the terminal: what the SQL of an operator can read here, or null for no file of others. */
export const isolationNotes: Record<Isolation, string | null> = {
  user: null,
  namespace:
    'SQL of the engine cannot read the secrets of this data folder or other processes. It can ' +
    'read the other files of your account.',
  none:
    'warning: SQL of the engine can read every file of your account, the secrets of this data ' +
    'folder among them, because this machine allows no user namespaces (unshare --user --mount).',
}

/**
 * The command in namespaces of its own. It keeps its process id, and is root only there.
 * @param options.name the engine's folder in the data folder
 */
export function isolate(
  command: readonly string[],
  options: { dataDir: string; name: string; pathVar: string | undefined },
): string[] {
  const { dataDir, name, pathVar } = options
  return enterNamespaces(pathVar, [
    ...['sh', '-ec', hideDataFolder, 'sh', dataDir, name, join(dataDir, 'logs')],
    ...command,
  ])
}

const dropCapabilities = 'setpriv --bounding-set=-all --'

/** Lays an empty folder with the engine's own in it over the data folder. A shard's may be new. */
const hideDataFolder = `data="$1" name="$2" place="$3"
shift 3
engine="$data/$name"
mkdir -p -m 700 "$engine" "$place"
mount -t tmpfs -o mode=711 none "$place"
mkdir "$place/$name"
mount --rbind "$engine" "$place/$name"
mount --rbind "$place" "$data"
exec ${dropCapabilities} "$@"`

const enterNamespaces = (pathVar: string | undefined, command: readonly string[]): string[] => [
  findProgram('unshare', pathVar) ?? 'unshare',
  ...['--user', '--map-root-user', '--mount', '--'],
  ...command,
]
