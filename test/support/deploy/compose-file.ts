/** `deploy/compose.yaml` as a container engine reads it: aliases and merged keys are filled in. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

export type ComposeService = {
  image: string
  build?: object
  command?: string[]
  environment?: Record<string, string>
  secrets?: string[]
  networks?: string[]
  mem_limit?: string
  pids_limit?: number
  volumes?: string[]
  ports?: string[]
  healthcheck?: { test?: string[]; disable?: boolean }
  depends_on?: Record<string, { condition: string }>
  read_only?: boolean
  tmpfs?: string[]
  cap_drop?: string[]
  security_opt?: string[]
  init?: boolean
  stop_grace_period?: string
}

export type ComposeFile = {
  services: Record<string, ComposeService>
  volumes: Record<string, null>
  networks: Record<string, { internal?: boolean } | null>
  secrets: Record<string, { file: string }>
}

/** @param name of a file in `deploy` */
export function readComposeFile(name = 'compose.yaml'): ComposeFile {
  const file = fileURLToPath(new URL(`../../../deploy/${name}`, import.meta.url))
  return parse(readFileSync(file, 'utf8'), { merge: true }) as ComposeFile
}

/** The value that compose gives a variable of a container when its own environment is empty. */
export const toUnsetValue = (value: string): string => /^\$\{\w+:-(.*)\}$/.exec(value)?.[1] ?? value

/** The services in an order that respects depends_on, the only order that compose guarantees. */
export function listInStartOrder({ services }: ComposeFile): string[] {
  const order: string[] = []
  const visit = (name: string) => {
    if (order.includes(name)) return
    for (const needed of Object.keys(services[name]!.depends_on ?? {})) visit(needed)
    order.push(name)
  }
  for (const name of Object.keys(services)) visit(name)
  return order
}
