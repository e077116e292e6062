/** Podman on this machine: what the drill needs of it, and how it is called. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { findProgram } from '../../../deploy/local/stack/launch.ts'

const run = promisify(execFile)
/** A build loads some 500 packages. */
const limitMs = 30 * 60_000
/** A build prints each of its steps, a process each of its 1,400 compiled files. */
const outputBytesMax = 16 * 1024 * 1024

/** The packages of Debian that have the programs. */
const packages: Record<string, string> = {
  podman: 'podman',
  mmdebstrap: 'mmdebstrap',
  catatonit: 'catatonit',
}

/** @returns one line that says what to install or do, or null when the drill can run here */
export function findMissing(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    return 'image needs Linux and root: it mounts the image and reads the rights of its processes'
  }
  // Podman looks for the init of containers in a folder of its own too.
  const places = `${process.env.PATH}:/usr/libexec/podman:/usr/lib/podman`
  const missing = Object.keys(packages).filter((name) => findProgram(name, places) === null)
  if (missing.length === 0) return null
  return `image needs: apt-get install ${missing.map((name) => packages[name]).join(' ')}`
}

/**
 * Options before the command. Where it is installed, runc: crun does not know machines that have
 * both versions of cgroups.
 */
const globalOptions = (): string[] =>
  findProgram('runc', process.env.PATH) === null ? [] : ['--runtime', 'runc']

/**
 * Options of everything that runs in a container. Podman gives containers higher limits than a
 * machine may allow: they get the files of this process, and threads enough.
 */
export function limitOptions(): string[] {
  const [, soft, hard] = /^Max open files +(\d+) +(\d+)/m.exec(
    readFileSync('/proc/self/limits', 'utf8'),
  )!
  return ['--ulimit', `nofile=${soft}:${hard}`, '--ulimit', 'nproc=16384:16384']
}

/** The whole command line of a call. */
export const toCommand = (args: readonly string[]): [command: string, ...args: string[]] => [
  'podman',
  ...globalOptions(),
  ...args,
]

/**
 * Runs a command to its end.
 * @returns what it prints
 * @throws with its error output when it fails
 */
export async function podman(args: readonly string[], cwd?: string): Promise<string> {
  const [command, ...rest] = toCommand(args)
  const options = { cwd, timeout: limitMs, maxBuffer: outputBytesMax }
  return (await run(command, rest, options)).stdout.trim()
}
