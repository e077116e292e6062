/**
 * What the Helm chart runs beside the processes: the bundled servers are those of compose, their
 * NATS configuration is valid, and the small programs of an upgrade and of `helm test` work.
 */
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { connectNats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { findNatsServer } from '../../../deploy/local/nats/nats-server.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { chartDir, type KubernetesObject, renderChart, runHelm } from '../../support/deploy/helm.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'

const run = promisify(execFile)
const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const servers = ['nats', 'postgres', 'clickhouse'] as const

type Container = {
  image: string
  command: string[]
  env: { name: string; value?: string }[]
}
type PodSpec = {
  containers: [Container]
  initContainers?: [Container]
  securityContext: object
  volumes: { name: string; secret?: { items: { key: string }[] } }[]
}

let workDir: string
let objects: KubernetesObject[]
beforeAll(() => {
  workDir = mkdtempSync(join(tmpdir(), 'di-chart-'))
  const bundled = Object.fromEntries(servers.map((name) => [name, { enabled: true }]))
  objects = renderChart({ bundled, backup: { enabled: true, clickhouseTo: "File('{name}')" } })
})
afterAll(() => {
  rmSync(workDir, { recursive: true, force: true })
})

const find = <T>(kind: string, name: string) =>
  objects.find((one) => one.kind === kind && one.metadata.name === name) as KubernetesObject & T
const podOf = (kind: string, name: string): PodSpec =>
  find<{ spec: { template: { spec: PodSpec } } }>(kind, name).spec.template.spec

describe('bundled servers', () => {
  it('are the images of compose, run as ordinary users', () => {
    const text = readFileSync(join(projectDir, 'deploy/compose.yaml'), 'utf8')
    const { services } = parse(text, { merge: true }) as { services: Record<string, Container> }
    for (const name of servers) {
      const pod = podOf('StatefulSet', name)
      expect(services[name]!.image).toContain(`:-${pod.containers[0].image}}`)
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true })
    }
  })

  it('find every secret that is mounted among those that make-secrets.sh makes', () => {
    const secrets = join(workDir, 'run/secrets')
    const names = [0, 1, 2].map((at) => `nats-${at}.nats-peers`).join(' ')
    const env = { ...process.env, NATS_SERVERS: names }
    execFileSync(join(projectDir, 'deploy/make-secrets.sh'), [secrets], { env, stdio: 'pipe' })
    const made = readdirSync(secrets)
    const workloads = objects.filter(({ kind }) => /^(Deployment|Job|StatefulSet)$/.test(kind))
    const { jobTemplate } = find<{
      spec: { jobTemplate: { spec: { template: { spec: PodSpec } } } }
    }>('CronJob', 'di-device-intelligence-backup').spec
    const pods = workloads.map(({ kind, metadata }) => podOf(kind, metadata.name))
    const keys = [...pods, jobTemplate.spec.template.spec].flatMap(({ volumes }) =>
      volumes.flatMap(({ secret }) => secret?.items ?? []),
    )
    expect(keys.length).toBeGreaterThan(20)
    expect(keys.map(({ key }) => key)).toContain('nats_url_di')
    expect(keys.filter(({ key }) => !made.includes(key))).toEqual([])
    for (const name of servers) {
      const urls = made.filter((file) => file.startsWith(`${name}_url_`))
      for (const file of urls) {
        const { hostname, port } = new URL(readFileSync(join(secrets, file), 'utf8'))
        const { ports } = find<{ spec: { ports: { port: number }[] } }>('Service', hostname).spec
        expect(ports.map((one) => String(one.port))).toContain(port)
      }
    }
  })

  it('have a configuration that nats-server accepts', async () => {
    const { data } = find<{ data: Record<string, string> }>('ConfigMap', 'nats')
    mkdirSync(join(workDir, 'etc/nats'), { recursive: true })
    for (const [file, text] of Object.entries(data)) {
      writeFileSync(join(workDir, 'etc/nats', file), text)
    }
    const [{ command, env }] = podOf('StatefulSet', 'nats').containers
    const [program, ...args] = command
    expect(program).toBe('nats-server')
    const { file } = await findNatsServer({ env: process.env, projectDir })
    const inWorkDir = args.map((arg) => arg.replace(/^\/etc/, join(workDir, 'etc')))
    const settings = Object.fromEntries(env.map(({ name, value = 'nats-0' }) => [name, value]))
    const { stderr } = await run(file, [...inWorkDir, '-t'], { env: settings })
    expect(stderr).toMatch(/configuration file .* is valid/)
    // Their names in the routes are those of the pods.
    const routes = readFileSync(join(workDir, 'run/secrets/nats_cluster'), 'utf8')
    const { spec } = find<{ spec: { serviceName: string; replicas: number } }>(
      'StatefulSet',
      'nats',
    )
    expect(spec.replicas).toBe(3)
    for (let at = 0; at < spec.replicas; at++) {
      expect(routes).toContain(`@nats-${at}.${spec.serviceName}:6222"`)
    }
  })
})

/** An HTTP server whose answers have this status. */
async function serve(statusOf: (url: string) => number): Promise<string> {
  const server: Server = createServer((request, response) => {
    request.resume()
    response.writeHead(statusOf(request.url!)).end()
  })
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('the wait of an upgrade', () => {
  const waitFor = (seconds: string, ...urls: string[]) => {
    const { command } = podOf('Deployment', 'di-device-intelligence-ingest').initContainers![0]
    expect(command.slice(0, 2)).toEqual(['node', '-e'])
    return run(process.execPath, ['-e', command[2]!, seconds, ...urls])
  }

  it('ends once the process before is ready', async () => {
    let calls = 0
    const url = await serve(() => (++calls < 2 ? 503 : 200))
    expect((await waitFor('100000', `${url}/readyz`)).stdout).toBe('')
    expect(calls).toBe(2)
  })

  it('ends beside a ready pod of its own version, while none of the process before is', async () => {
    const [before, own] = [await serve(() => 503), await serve(() => 200)]
    expect((await waitFor('100000', before, own)).stdout).toBe('')
  })

  it('ends with success after its time, so that a pod can always start again', async () => {
    const url = await serve(() => 503)
    expect((await waitFor('0', `${url}/readyz`)).stdout).toContain('is not ready after 0 s')
  })
})

it('the notes after an install name commands with the names of this release', () => {
  const notes = runHelm('install', 'di', chartDir, '--namespace', 'di', '--dry-run=client')
  expect(notes).toContain('exec deploy/di-device-intelligence-console -- sh -c')
  expect(notes).toContain('node services/console/cli.ts operators invite')
  expect(notes).toContain('port-forward svc/di-device-intelligence-console 8082')
})

describe('helm test', () => {
  const check = (edge: string, readiness: string) => {
    const pod = find<{ spec: PodSpec }>('Pod', 'di-device-intelligence-test').spec
    const { command } = pod.containers[0]
    expect(command.slice(3)).toEqual([
      'http://di-device-intelligence-ingest:8080',
      'http://di-device-intelligence-api:8091/readyz',
      'http://di-device-intelligence-console:8092/readyz',
      'http://di-device-intelligence-delivery:8084/readyz',
      'http://di-device-intelligence-ingest:8090/readyz',
      'http://di-device-intelligence-scorer:8083/readyz',
    ])
    // Once, instead of for a minute.
    const program = command[2]!.replace('60_000', '0')
    expect(program).not.toBe(command[2])
    return run(process.execPath, ['-e', program, edge, readiness])
  }

  it('passes when every process is ready and an unsigned submission is refused', async () => {
    const url = await serve((path) => (path === '/readyz' ? 200 : 401))
    expect((await check(url, `${url}/readyz`)).stdout).toBe('every process is ready\n')
  })

  it.each([
    ['a process is not ready', (path: string) => (path === '/readyz' ? 503 : 401), '503'],
    ['an unsigned submission is accepted', () => 200, '200, expected 401'],
  ])('fails and names it when %s', async (_, statusOf, message) => {
    const url = await serve(statusOf)
    const failure = await check(url, `${url}/readyz`).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 1, stdout: expect.stringContaining(message) })
  })
})

describe('the ScaledObject of scorers', () => {
  type Monitored = {
    account_details: {
      name: string
      stream_detail: {
        name: string
        consumer_detail: { name: string; num_pending: number }[]
      }[]
    }[]
  }

  it('names what the monitoring of a real server counts, as KEDA reads it', async () => {
    const port = await choosePort({})
    const server = await startNats({ more: [`http: "127.0.0.1:${port}"`] })
    onTestFinished(() => server.stop())
    const nats = await connectNats(server.url, 'test', quietLog)
    onTestFinished(() => nats.close())
    await ensureStreams(nats)
    await nats.jetstream.publish(nats.telemetryStreams[0]!.subject, 'x')
    const scaled = renderChart({
      autoscaling: { scorer: { enabled: true, natsMonitoring: `127.0.0.1:${port}` } },
    }).find(({ kind }) => kind === 'ScaledObject') as unknown as {
      spec: { triggers: { metadata: Record<string, string> }[] }
    }
    const read = async ({ metadata }: { metadata: Record<string, string> }) => {
      const { natsServerMonitoringEndpoint: endpoint, account, stream, consumer } = metadata
      const answer = await fetch(`http://${endpoint}/jsz?acc=${account}&consumers=true`)
      const { account_details: accounts } = (await answer.json()) as Monitored
      return accounts
        .find(({ name }) => name === account)
        ?.stream_detail.find(({ name }) => name === stream)
        ?.consumer_detail.find(({ name }) => name === consumer)?.num_pending
    }
    const { triggers } = scaled.spec
    expect(triggers.map(({ metadata }) => metadata.consumer)).toEqual(['scorer', 'decider'])
    expect(await Promise.all(triggers.map(read))).toEqual([1, 1])
  })
})
