/** A process of compose.yaml as a container of Podman, with the same settings. */
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ProcessName } from '#shared/core/permissions/process-permissions.ts'
import { createLauncher, type Exit, exitOf } from '../../../deploy/local/stack/launch.ts'
import type { ComposeService } from '../../support/deploy/compose-file.ts'
import { type MappedPorts, toMappedEnv } from '../../support/deploy/composed-processes.ts'
import { listTree } from '../support/process-tree.ts'
import { limitOptions, podman, toCommand } from './podman.ts'

export type Container = {
  process: ProcessName
  name: string
  child: ChildProcess
  ended: Promise<Exit>
  /** The end of its log. */
  output: () => string
}

export type ContainerSettings = {
  image: string
  secretsDir: string
  ports: MappedPorts
  /** Beside the environment of compose. */
  env?: Record<string, string>
  /** Whether the process is the container's first one, as in the chart, and not below an init. */
  isFirst: boolean
}

const composeDir = fileURLToPath(new URL('../../../deploy', import.meta.url))

/** Keys that the drill reads elsewhere, or that mean nothing where a host's network is used. */
const otherKeys =
  /^(image|build|restart|stop_grace_period|networks|ports|healthcheck|depends_on|command)$/

/**
 * The options of `podman run`.
 * @throws on a key that the drill does not know: it would try another container than compose's
 */
export function toRunOptions(
  service: ComposeService,
  { secretsDir, ports, env = {}, isFirst }: Omit<ContainerSettings, 'image'>,
): string[] {
  const environment = Object.entries({ ...toMappedEnv(service, ports), ...env })
  return Object.entries(service).flatMap(([key, value]): string[] => {
    if (otherKeys.test(key)) return []
    if (key === 'environment') return environment.flatMap(([n, v]) => ['--env', `${n}=${v}`])
    // Without it podman mounts writable folders over a read-only root.
    if (key === 'read_only') return value ? ['--read-only', '--read-only-tmpfs=false'] : []
    if (key === 'init') return value && !isFirst ? ['--init'] : []
    if (key === 'mem_limit') return ['--memory', String(value)]
    if (key === 'pids_limit') return ['--pids-limit', String(value)]
    if (!Array.isArray(value)) throw new Error(`the drill does not know ${key} of compose.yaml`)
    const each = (option: string) => value.flatMap((one: string) => [option, one])
    if (key === 'tmpfs') return each('--tmpfs')
    if (key === 'cap_drop') return each('--cap-drop')
    if (key === 'security_opt') return each('--security-opt')
    // Folders are beside compose.yaml.
    if (key === 'volumes') {
      return value.flatMap((one: string) => ['--volume', one.replace(/^\.\//, `${composeDir}/`)])
    }
    if (key !== 'secrets') throw new Error(`the drill does not know ${key} of compose.yaml`)
    return value.flatMap((name: string) => [
      '--volume',
      `${secretsDir}/${name}:/run/secrets/${name}:ro`,
    ])
  })
}

const launcher = createLauncher({ pathVar: process.env.PATH })

/** Runs it with the network of this machine; it ends with this process. */
export function startContainer(
  process: ProcessName,
  service: ComposeService,
  settings: ContainerSettings,
): Container {
  const name = `di-image-${globalThis.process.pid}-${process}`
  const [command, ...args] = toCommand([
    ...['run', '--rm', '--name', name, '--pull', 'never', '--network', 'host', '--no-healthcheck'],
    ...[...limitOptions(), ...toRunOptions(service, settings)],
    ...[settings.image, ...(service.command ?? [])],
  ])
  const child = launcher.launch({
    command,
    args,
    env: globalThis.process.env,
    orphanSignal: 'SIGTERM',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output = (output + chunk).slice(-4_000)
    })
  }
  return { process, name, child, ended: exitOf(child), output: () => output }
}

/** What the kernel lets every process of a container do. */
export type Rights = {
  uids: string[]
  capabilities: string[]
  noNewPrivileges: string[]
  /** Where its file system can be written, without what the kernel or the engine always gives. */
  writable: string[]
}

/** Read on this machine, where no process of the container can change what it says. */
export async function readRights({ name }: Container): Promise<Rights> {
  const pid = Number(await podman(['inspect', '--format', '{{.State.Pid}}', name]))
  const statuses = listTree(pid).map((one) => readFileSync(`/proc/${one}/status`, 'utf8'))
  const values = (key: string) => [
    ...new Set(
      statuses.map((text) => new RegExp(`^${key}:\\s+(.*)$`, 'm').exec(text)?.[1] ?? 'unknown'),
    ),
  ]
  const mounts = readFileSync(`/proc/${pid}/mountinfo`, 'utf8').trim().split('\n')
  return {
    uids: values('Uid'),
    capabilities: ['CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].flatMap(values),
    noNewPrivileges: values('NoNewPrivs'),
    writable: mounts
      .map((line) => line.split(' '))
      .filter(([, , , , path = '', options = '']) => {
        return /^rw\b/.test(options) && !/^\/(dev|proc|sys)(\/|$)/.test(path)
      })
      .map(([, , , , path]) => path!),
  }
}

/** @returns what breaks the promise about the rights of a container */
export function judgeRights({ uids, capabilities, noNewPrivileges, writable }: Rights): string[] {
  const wrong: string[] = []
  if (uids.length !== 1 || uids[0] !== '1000\t1000\t1000\t1000') wrong.push(`users ${uids}`)
  if (capabilities.some((one) => !/^0+$/.test(one))) wrong.push(`capabilities ${capabilities}`)
  if (noNewPrivileges.join() !== '1') wrong.push(`NoNewPrivs ${noNewPrivileges}`)
  if (writable.join() !== '/tmp') wrong.push(`writable: ${writable}`)
  return wrong
}

/**
 * Tries to write as the process's own user.
 * @returns where it could, and /tmp when it could not
 */
export async function writeOutside(container: Container): Promise<string[]> {
  const tryWrite = (path: string) => succeeds(container, ['sh', '-c', `echo x > ${path}/.written`])
  const wrong: string[] = []
  for (const path of closedPaths) if (await tryWrite(path)) wrong.push(`wrote to ${path}`)
  if (!(await tryWrite('/tmp'))) wrong.push('cannot write to /tmp')
  return wrong
}

const closedPaths = '/ /app /app/.compiled /home/node /run /run/secrets /var/tmp'.split(' ')

/** Whether a command in the container, as the user of its process, ends with 0. */
export const succeeds = ({ name }: Container, command: readonly string[]): Promise<boolean> =>
  podman(['exec', name, ...command]).then(
    () => true,
    () => false,
  )

/**
 * Runs a process whose settings are not valid: it ends as soon as it has loaded its files.
 * @returns those that it had to compile, and `nothing` when it did not look for compiled ones
 */
export async function listCompiledAnew(
  service: ComposeService,
  settings: ContainerSettings,
): Promise<string[]> {
  const env = { NODE_DEBUG_NATIVE: 'COMPILE_CACHE', LOG_LEVEL: 'none' }
  const output = await podman([
    ...['run', '--rm', '--pull', 'never', '--network', 'none', '--no-healthcheck'],
    ...[...limitOptions(), ...toRunOptions(service, { ...settings, env }), settings.image],
    ...['sh', '-c', '"$@" 2>&1 | grep "reading cache from" || true', 'sh'],
    ...(service.command ?? []),
  ])
  const reads = output.split('\n').filter((line) => line !== '')
  if (reads.length < filesLeast) return [`it looked for ${reads.length} compiled files`]
  return reads
    .filter((line) => !line.includes('... success, size='))
    .map((line) => / for (.*)/.exec(line)?.[1] ?? line)
}

/** Migrate has the fewest, some 400. */
const filesLeast = 100
