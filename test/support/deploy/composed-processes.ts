/** The processes of compose.yaml on free ports of this machine in place of the containers' own. */
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { type ComposeService, toUnsetValue } from './compose-file.ts'

/** By the port in a container, a port of this machine. */
export type MappedPorts = ReadonlyMap<string, number>

/** The ports of the image. */
const imagePorts = ['8080', '8081', '8082', '8083', '8084', '8090', '8091', '8092']

export async function choosePorts(): Promise<MappedPorts> {
  const ports = new Map<string, number>()
  for (const port of imagePorts) {
    ports.set(port, await choosePort({ taken: new Set(ports.values()) }))
  }
  return ports
}

/** The environment of a container; variables of compose's own environment count as not set. */
export function toMappedEnv(
  { environment = {} }: ComposeService,
  ports: MappedPorts,
): Record<string, string> {
  const entries = Object.entries(environment).map(([variable, value]) => {
    const port = /^0\.0\.0\.0:(\d+)$/.exec(value)?.[1]
    return [variable, port ? `127.0.0.1:${ports.get(port)}` : toUnsetValue(value)]
  })
  return Object.fromEntries(entries) as Record<string, string>
}

/** The command of a service's health check. */
export function toMappedHealthcheck({ healthcheck }: ComposeService, ports: MappedPorts): string[] {
  const [kind, ...command] = healthcheck?.test ?? []
  if (kind !== 'CMD') throw new Error(`expected a health check without a shell, not ${kind}`)
  return command.map((arg) =>
    arg.replace(/127\.0\.0\.1:(\d+)/, (_, port: string) => `127.0.0.1:${ports.get(port)}`),
  )
}
