// Starts the programs of the local stack so that none of them outlives it. Each child leads its
// own process group, so Ctrl-C reaches only the stack, which stops its children in order. With
// util-linux' setpriv the kernel signals a child as soon as its parent has gone, also after kill
// -9. On other machines the orphan reaper does that.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { accessSync, constants, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The identity of a child. `caps` are kept although the user is not root. */
export type RunAs = { uid: number; gid: number; caps: string[] }

export type LaunchSpec = {
  command: string
  args: string[]
  env: Record<string, string | undefined>
  cwd?: string
  runAs?: RunAs | undefined
  /** Sent by the kernel or by the orphan reaper when the stack's process has ended. */
  orphanSignal: 'SIGTERM' | 'SIGQUIT' | 'SIGKILL'
  /** Opens an IPC channel. Called with each message; the result is sent back. */
  onMessage?: (message: unknown) => object
}

export type Launcher = {
  /** True when the kernel ends children whose parent died. */
  kernelBound: boolean
  launch: (spec: LaunchSpec) => ChildProcess
  /** The argv that runs `command` under `runAs`, for short probes. */
  wrap: (spec: Pick<LaunchSpec, 'command' | 'args' | 'runAs'>) => string[]
}

/** The first executable called `name` on `pathVar` (or in the usual places), or null. */
export function findProgram(name: string, pathVar: string | undefined): string | null {
  const folders = (pathVar ?? '').split(delimiter).filter(Boolean)
  for (const folder of [...folders, '/usr/local/sbin', '/usr/sbin', '/usr/bin', '/bin']) {
    const file = join(folder, name)
    try {
      accessSync(file, constants.X_OK)
      return file
    } catch {
      // not here: look in the next folder
    }
  }
  return null
}

/**
 * A launcher for this machine. Calls `onLaunch` with every child, for the orphan reaper.
 * BusyBox has a setpriv without --pdeathsig, so the option itself is tried once.
 */
export function createLauncher(options: {
  pathVar: string | undefined
  onLaunch?: (pid: number, orphanSignal: string) => void
  /** False behaves as on a machine without setpriv. */
  useKernel?: boolean
}): Launcher {
  const found = options.useKernel === false ? null : findProgram('setpriv', options.pathVar)
  const works =
    found !== null &&
    spawnSync(found, ['--pdeathsig', 'TERM', '--', 'true'], { stdio: 'ignore' }).status === 0
  const setpriv = works ? found : null

  function wrap(spec: Pick<LaunchSpec, 'command' | 'args' | 'runAs'>, orphanSignal?: string) {
    if (setpriv === null) return [spec.command, ...spec.args]
    const flags: string[] = []
    if (spec.runAs) {
      flags.push('--reuid', `${spec.runAs.uid}`, '--regid', `${spec.runAs.gid}`, '--clear-groups')
      for (const cap of spec.runAs.caps) {
        // access(2) ignores capabilities of an ordinary user unless this bit is set, and PostgreSQL
        // uses access(2) to check whether its own program files can be run.
        flags.push('--inh-caps', `+${cap}`, '--ambient-caps', `+${cap}`)
        flags.push('--securebits', '+no_setuid_fixup')
      }
    }
    if (orphanSignal) flags.push('--pdeathsig', orphanSignal.replace(/^SIG/, ''))
    return [setpriv, ...flags, '--', spec.command, ...spec.args]
  }

  function launch(spec: LaunchSpec): ChildProcess {
    const [command, ...args] = wrap(spec, spec.orphanSignal)
    const child = spawn(command as string, args, {
      env: spec.env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', ...(spec.onMessage ? ['ipc' as const] : [])],
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      ...(setpriv === null && spec.runAs ? { uid: spec.runAs.uid, gid: spec.runAs.gid } : {}),
    })
    const { onMessage } = spec
    // The send fails when the child has just exited; no response is needed then.
    if (onMessage) child.on('message', (message) => child.send(onMessage(message), () => undefined))
    if (child.pid !== undefined) options.onLaunch?.(child.pid, spec.orphanSignal)
    return child
  }
  return { kernelBound: setpriv !== null, launch, wrap }
}

/** True while a process with this id exists (a zombie counts as gone). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  return readProcStat(pid)?.state !== 'Z'
}

/**
 * A token that differs when a process id has been reused: the kernel's start time of the process.
 * Null when the process does not exist. Machines without /proc use `ps`.
 */
export function startToken(pid: number): string | null {
  const stat = readProcStat(pid)
  if (stat) return stat.state === 'Z' ? null : stat.startTicks
  if (process.platform === 'linux') return null
  const ps = spawnSync('ps', ['-o', 'lstart=', '-p', `${pid}`], { encoding: 'utf8' })
  return ps.stdout?.trim() || null
}

function readProcStat(pid: number): { state: string; startTicks: string } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the program's name in parentheses and may contain anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] ?? '?', startTicks: fields[19] ?? '?' }
  } catch {
    return null
  }
}

/** Sends a signal, and ignores a process that has just ended. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

export type Exit = { code: number | null; signal: NodeJS.Signals | null }

/** Resolves when the child has ended (at once when it already has or never started). */
export function exitOf(child: ChildProcess): Promise<Exit> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve({ code: child.exitCode, signal: child.signalCode })
  }
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
}

/** Sends `signal` to a child and kills it after `graceMs`. Resolves when it has ended. */
export async function endChild(
  child: ChildProcess,
  options: { signal: NodeJS.Signals; graceMs: number },
): Promise<Exit> {
  const gone = exitOf(child)
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return gone
  child.kill(options.signal)
  const timer = setTimeout(() => child.kill('SIGKILL'), options.graceMs)
  try {
    return await gone
  } finally {
    clearTimeout(timer)
  }
}
