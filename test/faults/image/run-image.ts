/**
 * The processes of the image as containers on real servers, with the settings of compose.yaml: they
 * migrate, take telemetry, deliver its alerts and stop.
 */
import type { ProcessName } from '#shared/core/permissions/process-permissions.ts'
import { SERVICE_NAMES, type ServiceName } from '../../../deploy/local/stack/settings.ts'
import { readComposeFile } from '../../support/deploy/compose-file.ts'
import { choosePorts, toMappedHealthcheck } from '../../support/deploy/composed-processes.ts'
import { startComposedServers } from '../../support/deploy/composed-servers.ts'
import { type Closing, startWhole } from '../../support/process/closing.ts'
import { until } from '../../support/process/until.ts'
import { seconds } from '../support/drill.ts'
import {
  type Container,
  type ContainerSettings,
  judgeRights,
  listCompiledAnew,
  readRights,
  startContainer,
  succeeds,
  writeOutside,
} from './container.ts'
import { podman } from './podman.ts'
import type { Tell } from './promises.ts'
import { tellTelemetry } from './telemetry.ts'

const { services } = readComposeFile()

type Options = {
  image: string
  /** The image's own health check: `CMD` and its words. */
  healthcheck: readonly string[]
  events: number
  tell: Tell
}

type Rig = Options & {
  settings: Omit<ContainerSettings, 'isFirst'>
  start: (process: ProcessName, isFirst: boolean) => Container
  readSecret: (name: string) => string
  stop: () => Promise<void>
}

/** Runs everything on its own servers, and tells each promise as soon as it is known. */
export async function runImage(options: Options): Promise<void> {
  const rig = await startWhole((closing, stop) => startRig(options, closing, stop))
  const { settings, tell, readSecret, events } = rig
  try {
    for (const name of ['migrate', ...SERVICE_NAMES] as const) {
      const anew = await listCompiledAnew(services[name]!, { ...settings, isFirst: false })
      tell(`${name} finds all of its files compiled`, anew)
    }
    await migrate(rig)
    const containers = await startProcesses(rig, false)
    await tellImageHealth(rig, containers)
    await tellRights(rig, containers)
    await tellTelemetry({ ports: settings.ports, readSecret, events, tell })
    await stopProcesses(rig, containers, 'SIGTERM ends')
    // The chart has no init: the process itself is the first one, which no signal ends by default.
    const first = await startProcesses(rig, true)
    await stopProcesses(rig, first, 'as the first process of its container SIGTERM ends')
  } finally {
    await rig.stop()
  }
}

async function startRig(
  options: Options,
  closing: Closing,
  stop: () => Promise<void>,
): Promise<Rig> {
  const { secretsDir, readSecret, stop: stopServers } = await startComposedServers()
  closing.push(stopServers)
  const settings = { image: options.image, secretsDir, ports: await choosePorts() }
  const start = (process: ProcessName, isFirst: boolean) => {
    // The receiver is on this machine.
    const env = /^(console|delivery)$/.test(process) ? { ALLOW_PRIVATE_WEBHOOKS: '1' } : {}
    const container = startContainer(process, services[process]!, { ...settings, env, isFirst })
    closing.push(() => podman(['rm', '--force', '--ignore', container.name]))
    return container
  }
  return { ...options, settings, start, readSecret, stop }
}

async function migrate({ start, tell }: Rig): Promise<void> {
  for (const how of ['migrates empty stores', 'leaves migrated stores as they are']) {
    const { ended, output } = start('migrate', false)
    const { code } = await ended
    tell(`migrate ${how} and ends with 0`, code === 0 ? [] : [`exit ${code}: ${output()}`])
    if (code !== 0) throw new Error('no process can start on stores without their migrations')
  }
}

/** A start takes a second or two; a busy machine needs longer. */
const readyLimitMs = 60_000

/** Starts the five, and waits until the health check of compose says that each is ready. */
async function startProcesses(rig: Rig, isFirst: boolean): Promise<Container[]> {
  const startedMs = performance.now()
  const containers = SERVICE_NAMES.map((name) => rig.start(name, isFirst))
  const unhealthy: string[] = []
  await Promise.all(
    containers.map(async (container) => {
      const { process, child, output } = container
      const command = toMappedHealthcheck(services[process]!, rig.settings.ports)
      const [url] = /http:[^']+/.exec(command.join(' '))!
      await until(
        `${process} is ready`,
        async () => {
          if (child.exitCode !== null) throw new Error(`${process} ended: ${output()}`)
          return (await fetch(url)).ok
        },
        readyLimitMs,
      )
      if (!(await succeeds(container, command))) unhealthy.push(process)
    }),
  )
  const how = isFirst ? 'without an init' : 'with the init of compose'
  rig.tell(`all five are healthy ${how}, in ${seconds(performance.now() - startedMs)}`, unhealthy)
  return containers
}

/**
 * The image's own health check asks every internal port, and a container has one of them. The
 * containers share this machine's network, so each check asks for its own port alone; port 1 stands
 * for the others.
 */
async function tellImageHealth(rig: Rig, containers: readonly Container[]): Promise<void> {
  const [kind, ...command] = rig.healthcheck
  const broken = kind === 'CMD' ? [] : [`its kind is ${kind}`]
  const withPorts = (own: readonly string[]) =>
    command.map((word) =>
      word.replace(/\b80\d\d\b/g, (port) =>
        own.includes(port) ? String(rig.settings.ports.get(port)) : '1',
      ),
    )
  for (const container of containers) {
    const { environment = {} } = services[container.process]!
    const own = Object.values(environment).flatMap((value) => /:(\d{4})$/.exec(value)?.[1] ?? [])
    if (!(await succeeds(container, withPorts(own)))) broken.push(container.process)
    if (await succeeds(container, withPorts([]))) broken.push('healthy where nothing listens')
  }
  rig.tell('the health check of the image agrees', broken)
}

async function tellRights({ tell }: Rig, containers: readonly Container[]): Promise<void> {
  for (const container of containers) {
    const broken = [...judgeRights(await readRights(container)), ...(await writeOutside(container))]
    tell(`${container.process} is user 1000 without rights, and can write to /tmp alone`, broken)
  }
}

async function stopProcesses(
  { tell }: Rig,
  containers: readonly Container[],
  how: string,
): Promise<void> {
  await Promise.all(
    containers.map(async ({ process, child, ended, output }) => {
      const startMs = performance.now()
      child.kill('SIGTERM')
      const { code, signal } = await ended
      const tookMs = performance.now() - startMs
      const graceMs = toGraceMs(process as ServiceName)
      tell(`${how} ${process} with 0 in ${seconds(tookMs)}`, [
        ...(code === 0 ? [] : [`exit ${code ?? signal}: ${output().slice(-1_000)}`]),
        ...(tookMs < graceMs ? [] : [`compose kills it after ${graceMs} ms`]),
      ])
    }),
  )
}

function toGraceMs(name: ServiceName): number {
  const grace = services[name]!.stop_grace_period
  const [, inSeconds] = /^(\d+)s$/.exec(grace ?? '') ?? []
  if (inSeconds === undefined) throw new Error(`${name} stops after ${grace}, not after seconds`)
  return Number(inSeconds) * 1_000
}
