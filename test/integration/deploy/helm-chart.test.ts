/**
 * The Helm chart, without a cluster: helm renders it with its default values and with everything
 * switched on, and every object is checked against its schema, compose.yaml, the configuration of
 * the processes and the table of rights.
 */
import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { processNames, processPermissions } from '#shared/core/permissions/process-permissions.ts'
import { readCompose, readVariables, renderProcesses } from '../../../deploy/helm-processes.ts'
import { chartDir, type KubernetesObject, renderChart, runHelm } from '../../support/deploy/helm.ts'
import { findSchemaFaults } from '../../support/deploy/kubernetes-schemas.ts'
import {
  deployed,
  envOf,
  podOf,
  renderBoth,
  workloadOf,
} from '../../support/deploy/rendered-chart.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const read = (file: string) => readFileSync(join(projectDir, file), 'utf8')
const compose = readCompose()

const { byDefault, full } = renderBoth()

const fileName = (path: string) => path.split('/').at(-1)!

describe('the chart', () => {
  it('passes helm lint in strict mode', () => {
    expect(runHelm('lint', '--strict', chartDir)).toContain('0 chart(s) failed')
  })

  it('renders objects that fit their schemas, with the default values and with everything', async () => {
    expect(await findSchemaFaults([...byDefault, ...full])).toEqual([])
    const kinds = Map.groupBy(full, ({ kind }) => kind)
    expect([...kinds.keys()].sort()).toEqual([
      ...['ConfigMap', 'CronJob', 'Deployment', 'HTTPRoute', 'HorizontalPodAutoscaler'],
      ...['Ingress', 'Job', 'NetworkPolicy', 'PersistentVolumeClaim', 'Pod', 'PodDisruptionBudget'],
      ...['PrometheusRule', 'ScaledObject', 'Service', 'ServiceMonitor', 'StatefulSet'],
    ])
  })

  it('has the version of the product, and no registry or moving tag in any file', () => {
    const chart = parse(read('deploy/helm/Chart.yaml')) as { appVersion: string }
    expect(chart.appVersion).toBe((JSON.parse(read('package.json')) as { version: string }).version)
    const names = readdirSync(chartDir, { recursive: true, withFileTypes: true })
    for (const entry of names) {
      const path = join(entry.parentPath, entry.name)
      if (entry.isDirectory()) continue
      // A link leads to a file of deploy/, so that there is one copy.
      expect(realpathSync(path)).toContain(join(projectDir, 'deploy'))
      const text = readFileSync(path, 'utf8')
      if (entry.name !== 'values.schema.json') expect(text, path).not.toMatch(/\blatest\b/)
      for (const [image] of text.matchAll(/^\s*(image|repository): [^{\s]+$/gm)) {
        expect(image, path).toMatch(/: [a-z-]+(:\d[\w.-]+)?$/)
      }
    }
  })

  it.each([
    ['a setting that no process reads', { settings: { LOG_LEVELS: 'info' } }, 'LOG_LEVELS'],
    ['a secret as a setting', { settings: { MASTER_KEY: 'x' } }, 'secrets.existingSecret'],
    [
      'a setting that this process does not read',
      { processes: { api: { settings: { DELIVERY_CONCURRENCY: 1 } } } },
      'DELIVERY_CONCURRENCY',
    ],
    ['an unknown secret', { secrets: { also: ['OTHER_KEY'] } }, 'OTHER_KEY'],
    ['an unknown value', { imagee: {} }, 'imagee'],
    ['the tag latest', { image: { tag: 'latest' } }, 'tag'],
    ['an ingress without a host', { ingress: { enabled: true } }, 'host'],
    [
      'KEDA without the address of NATS',
      { autoscaling: { scorer: { enabled: true } } },
      'natsMonitoring',
    ],
  ])('refuses %s', (_, values, message) => {
    expect(() => renderChart(values)).toThrow(message)
  })
})

describe('the settings of a process', () => {
  it.each(processNames)('%s: are the same in compose, chart and configuration', (process) => {
    const { names, fromFiles } = readVariables(process)
    const known = [...names, ...fromFiles.map((name) => `${name}_FILE`), 'NODE_EXTRA_CA_CERTS']
    const inCompose = compose[process].environment
    expect(Object.keys(inCompose).filter((name) => !known.includes(name))).toEqual([])
    const plain = envOf(podOf(byDefault, process))
    for (const objects of [byDefault, full]) {
      const env = Object.keys(envOf(podOf(objects, process)))
      expect(env.filter((name) => !known.includes(name))).toEqual([])
      expect(env.filter((name) => fromFiles.includes(name))).toEqual([])
    }
    // Addresses and files of secrets, the user of each store among them.
    const isFixed = (name: string) =>
      /_LISTEN$|_FILE$/.test(name) && name !== 'ATTESTATION_STATUS_FILE'
    const fixed = Object.entries(inCompose).filter(([name]) => isFixed(name))
    for (const [name, value] of fixed) {
      expect(fileName(plain[name] ?? 'missing'), name).toBe(fileName(value))
    }
    expect(Object.keys(plain).filter(isFixed).sort()).toEqual(fixed.map(([name]) => name).sort())
    // What compose passes through from its own environment can be set in values.yaml.
    const { settings } = (parse(renderProcesses()) as Record<string, { settings: string[] }>)[
      process
    ]!
    const open = Object.keys(inCompose).filter((name) => !isFixed(name))
    expect(open.filter((name) => !settings.includes(name) && !fromFiles.includes(name))).toEqual([])
  })

  it.each(processNames)('%s: its pod mounts its own secrets and no others', (process) => {
    for (const objects of [byDefault, full]) {
      const pod = podOf(objects, process)
      const { items } = pod.volumes.find(({ name }) => name === 'secrets')!.secret!
      const named = Object.entries(envOf(pod))
        .filter(([name, value]) => name.endsWith('_FILE') && value!.startsWith('/secrets/'))
        .map(([, value]) => fileName(value!))
      expect(items.map(({ key }) => key).sort()).toEqual(named.sort())
      for (const store of ['nats', 'postgres', 'clickhouse'] as const) {
        const urls = named.filter((key) => key.startsWith(`${store}_url`))
        const uses = processPermissions[process][store] !== null
        expect(urls).toEqual(uses ? [`${store}_url_${process}`] : [])
      }
    }
    const plain = podOf(byDefault, process).volumes.find(({ name }) => name === 'secrets')!.secret!
    const inCompose = Object.entries(compose[process].environment)
      .filter(([, path]) => path.startsWith('/run/secrets/'))
      .map(([, path]) => fileName(path))
    expect(plain.items.map(({ key }) => key).sort()).toEqual(inCompose.sort())
  })

  it('reach the processes as text, those of one process over those of all', () => {
    expect(envOf(podOf(full, 'scorer'))).toMatchObject({
      TELEMETRY_STREAM_MAX_BYTES: '17179869184',
      NATS_REPLICAS: '3',
      NATS_CA_FILE: '/certificates/ca.crt',
      TELEMETRY_KEY_PREVIOUS_FILE: '/secrets/telemetry_key_previous',
      NATS_NKEY_SEED_FILE: '/secrets/nats_nkey_seed_scorer',
    })
    expect(envOf(podOf(full, 'delivery')).DELIVERY_CONCURRENCY).toBe('64')
    const own = renderChart({
      settings: { LOG_LEVEL: 'warn' },
      processes: { api: { settings: { LOG_LEVEL: 'debug' } } },
    })
    const levels = deployed.map((name) => envOf(podOf(own, name)).LOG_LEVEL)
    expect(levels).toEqual(deployed.map((name) => (name === 'api' ? 'debug' : 'warn')))
  })
})

describe('pods', () => {
  it.each(processNames)('%s: run as in compose, as an ordinary user with no rights', (process) => {
    const pod = podOf(full, process)
    const [container] = pod.containers
    const { command, mem_limit } = compose[process]
    expect(container.command).toEqual(command)
    const memory = mem_limit.replace(/m$/, 'Mi').replace(/g$/, 'Gi')
    expect(container.resources.limits.memory).toBe(memory)
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    })
    for (const { securityContext } of [...pod.containers, ...(pod.initContainers ?? [])]) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
  })

  it.each(deployed)('%s: are probed on the internal port, and have time to stop', (process) => {
    for (const [objects, seconds] of [
      [byDefault, 20],
      [full, process === 'scorer' || process === 'delivery' ? 20 : 27],
    ] as const) {
      const pod = podOf(objects, process)
      const [{ ports, startupProbe, readinessProbe, livenessProbe }] = pod.containers
      const internal = ports!.find(({ name }) => name === 'internal')!.containerPort
      const env = envOf(pod)
      const prefix = process.toUpperCase()
      expect(env[`${prefix}_INTERNAL_LISTEN`] ?? env[`${prefix}_LISTEN`]).toBe(
        `0.0.0.0:${internal}`,
      )
      // Without ClickHouse alerts can be read, without NATS most pages.
      const ready = { api: '/readyz?exclude=clickhouse', console: '/readyz?exclude=nats' }
      const path = (ready as Record<string, string>)[process] ?? '/readyz'
      expect(readinessProbe!.httpGet).toEqual({ path, port: 'internal' })
      for (const probe of [startupProbe, livenessProbe]) {
        expect(probe!.httpGet).toEqual({ path: '/healthz', port: 'internal' })
      }
      expect(pod.terminationGracePeriodSeconds).toBe(seconds)
    }
  })

  it('are upgraded in the order console, scorer, ingest', () => {
    const waits = deployed.map((name) => {
      const [wait] = podOf(byDefault, name).initContainers ?? []
      return [name, wait?.command.slice(-3) ?? null]
    })
    const urls = {
      ingest: 'http://di-device-intelligence-ingest-new:8090/readyz',
      scorer: 'http://di-device-intelligence-scorer-new:8083/readyz',
      console: 'http://di-device-intelligence-console-new:8092/readyz',
    }
    expect(Object.fromEntries(waits)).toEqual({
      ingest: ['120', urls.scorer, urls.ingest],
      scorer: ['120', urls.console, urls.scorer],
      api: null,
      delivery: null,
      console: null,
    })
    for (const process of ['console', 'scorer', 'ingest'] as const) {
      const service = byDefault.find(
        ({ kind, metadata }) => kind === 'Service' && metadata.name.endsWith(`${process}-new`),
      ) as KubernetesObject & { spec: { selector: object } }
      const { labels } = workloadOf(byDefault, process).spec.template.metadata
      expect(labels).toMatchObject(service.spec.selector)
      expect(service.spec.selector).toHaveProperty(['app.kubernetes.io/version'])
    }
    const without = renderChart({ upgradeOrder: { waitSeconds: 0 } })
    expect(deployed.map((name) => podOf(without, name).initContainers)).toEqual(
      deployed.map(() => undefined),
    )
  })

  it('have files of the operator where they are read, and nowhere else', () => {
    const mount = { name: 'files', mountPath: '/files', readOnly: true }
    for (const name of processNames) {
      const isReader = name === 'ingest' || name === 'console'
      const pod = podOf(full, name)
      const claim = { claimName: 'network-data', readOnly: true }
      const volume = pod.volumes.find((one) => one.name === 'files')
      expect(volume?.persistentVolumeClaim).toEqual(isReader ? claim : undefined)
      expect(
        pod.containers[0].volumeMounts!.filter((one) => isDeepStrictEqual(one, mount)),
      ).toEqual(isReader ? [mount] : [])
      expect(envOf(pod).NETWORK_DATA).toBe(isReader ? '/files/network' : undefined)
      expect(podOf(byDefault, name).volumes.some((one) => one.name === 'files')).toBe(false)
      expect(compose[name].volumes ?? []).toEqual(isReader ? ['./files:/files:ro'] : [])
    }
  })

  it('migrate before an install and an upgrade, unless servers are installed with it', () => {
    expect(workloadOf(byDefault, 'migrate').metadata.annotations).toMatchObject({
      'helm.sh/hook': 'pre-install,pre-upgrade',
    })
    const beside = workloadOf(full, 'migrate').metadata
    expect(beside.annotations).toBeUndefined()
    expect(beside.name).toMatch(/-migrate-1$/)
  })
})
