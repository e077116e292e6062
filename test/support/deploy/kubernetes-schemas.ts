/**
 * Checks objects against the published schemas of Kubernetes, Gateway API, the Prometheus operator
 * and KEDA: each schema's validator (types, formats, required fields), and the compiler with its
 * type, which also refuses unknown fields at any depth.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { KubernetesObject } from './helm.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

/** Packages by API group; every other group is of Kubernetes itself. */
const packages: Record<string, string> = {
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
  'keda.sh': '@kubernetes-models/keda',
}

const toModule = ({ apiVersion }: KubernetesObject) =>
  `${packages[apiVersion.split('/')[0]!] ?? 'kubernetes-models'}/${apiVersion}`

const toTitle = ({ kind, metadata }: KubernetesObject) => `${kind} ${metadata.name}`

type Model = new (data: object) => { validate: () => void }

/** @returns what is wrong with which object */
export async function findSchemaFaults(objects: readonly KubernetesObject[]): Promise<string[]> {
  const faults: string[] = []
  for (const object of objects) {
    const models = (await import(toModule(object))) as Record<string, Model>
    try {
      new models[object.kind]!(object).validate()
    } catch (error) {
      faults.push(`${toTitle(object)}: ${(error as Error).message}`)
    }
  }
  return [...faults, ...findTypeFaults(objects)]
}

function findTypeFaults(objects: readonly KubernetesObject[]): string[] {
  const dir = mkdtempSync(join(tmpdir(), 'di-objects-'))
  try {
    symlinkSync(join(projectDir, 'node_modules'), join(dir, 'node_modules'))
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}')
    const files = objects.map((object, at) => {
      const type = `I${object.kind}`
      const name = `${at}.ts`
      const text = `import type { ${type} } from '${toModule(object)}'
export const object: ${type} = ${JSON.stringify(object, null, 1)}
`
      writeFileSync(join(dir, name), text)
      return name
    })
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--types', '']
    const modules = ['--module', 'nodenext', '--target', 'es2023']
    const tsc = join(projectDir, 'node_modules/.bin/tsc')
    execFileSync(tsc, [...options, ...modules, ...files], { cwd: dir, stdio: 'pipe' })
    return []
  } catch (error) {
    const { stdout } = error as { stdout?: Buffer }
    if (stdout === undefined) throw error
    return String(stdout)
      .split('\n')
      .filter((line) => line.includes('error TS'))
      .map((line) => {
        const at = Number(/^(\d+)\.ts/.exec(line)?.[1])
        return `${toTitle(objects[at]!)}: ${line}`
      })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
