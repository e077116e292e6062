/**
 * What the Helm chart has around the pods: Services, scaling, budgets, network policies, routes and
 * monitoring.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import {
  type ProcessName,
  processNames,
  processPermissions,
} from '#shared/core/permissions/process-permissions.ts'
import { listTelemetryStreams } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { type KubernetesObject, renderChart } from '../../support/deploy/helm.ts'
import {
  componentOf,
  deployed,
  ofKind,
  renderBoth,
  type Workload,
  workloadOf,
} from '../../support/deploy/rendered-chart.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const read = (file: string) => readFileSync(join(projectDir, file), 'utf8')
const { byDefault, full } = renderBoth()

type Selecting = KubernetesObject & {
  spec: {
    selector?: Record<string, string> & { matchLabels?: Record<string, string> }
    podSelector?: { matchLabels: Record<string, string> }
  }
}

it('selects pods that exist', () => {
  const jobs = ofKind(full, 'CronJob').map(
    (one) => (one as unknown as { spec: { jobTemplate: Workload } }).spec.jobTemplate,
  )
  const pods = full
    .filter(({ kind }) => ['Deployment', 'Job', 'StatefulSet'].includes(kind))
    .map((one) => one as Workload)
    .concat(jobs)
    .map(({ spec }) => spec.template.metadata.labels)
  const selectors = full
    .filter(({ kind }) => ['Service', 'NetworkPolicy', 'PodDisruptionBudget'].includes(kind))
    .map((object) => {
      const { selector, podSelector } = (object as Selecting).spec
      return [object, podSelector?.matchLabels ?? selector?.matchLabels ?? selector!] as const
    })
  expect(selectors.length).toBeGreaterThan(20)
  for (const [{ kind, metadata }, labels] of selectors) {
    const found = pods.filter((pod) =>
      Object.entries(labels).every(([key, value]) => pod[key] === value),
    )
    expect(found, `${kind} ${metadata.name}`).toHaveLength(1)
  }
  for (const object of full.filter(({ kind }) => /Autoscaler|ScaledObject/.test(kind))) {
    const target = (object as unknown as { spec: { scaleTargetRef: { name: string } } }).spec
    expect(ofKind(full, 'Deployment').map(({ metadata }) => metadata.name)).toContain(
      target.scaleTargetRef.name,
    )
  }
})

it('scales: a scaled process has no fixed number, one with a single pod no budget', () => {
  const replicas = (objects: KubernetesObject[]) =>
    deployed.map((name) => workloadOf(objects, name).spec.replicas)
  expect(replicas(byDefault)).toEqual([2, 2, 2, 2, 2])
  expect(replicas(full)).toEqual([undefined, undefined, 2, 1, 2])
  const budgets = ofKind(full, 'PodDisruptionBudget').map(componentOf)
  expect(budgets.sort()).toEqual(['api', 'console', 'ingest', 'nats', 'scorer'])
  const [scaled] = ofKind(full, 'ScaledObject') as unknown as {
    spec: { triggers: { metadata: Record<string, string> }[] }
  }[]
  expect(scaled!.spec.triggers.map(({ metadata }) => metadata)).toMatchObject(
    listTelemetryStreams(2).flatMap(({ stream, scorer, decider }) =>
      [scorer, decider].map((consumer) => ({
        natsServerMonitoringEndpoint: 'nats.di.svc:8222',
        stream,
        consumer,
      })),
    ),
  )
})

it('leads clients to /v1 of ingest and api alone', () => {
  const expected = [
    ['/v1/rasp', 'di-device-intelligence-ingest'],
    ['/v1/di', 'di-device-intelligence-api'],
  ]
  type Rules = { spec: { rules: Record<string, never>[] } }
  const [ingress] = ofKind(full, 'Ingress') as unknown as Rules[]
  const { paths } = ingress!.spec.rules[0]!.http as unknown as {
    paths: { path: string; backend: { service: { name: string } } }[]
  }
  expect(paths.map(({ path, backend }) => [path, backend.service.name])).toEqual(expected)
  const [route] = ofKind(full, 'HTTPRoute') as unknown as {
    spec: {
      rules: { matches: { path: { value: string } }[]; backendRefs: { name: string }[] }[]
    }
  }[]
  const routes = route!.spec.rules.map(({ matches, backendRefs }) => [
    matches[0]!.path.value,
    backendRefs[0]!.name,
  ])
  expect(routes).toEqual(expected)
  expect(byDefault.filter(({ kind }) => ['Ingress', 'HTTPRoute'].includes(kind))).toEqual([])
  const types = ofKind(full, 'Service').map(
    (service) => (service as unknown as { spec: { type?: string } }).spec.type,
  )
  expect(new Set(types)).toEqual(new Set([undefined]))
})

it('lets each process connect to its own stores alone', () => {
  for (const process of processNames) {
    const [policy] = ofKind(full, 'NetworkPolicy').filter(
      (one) => componentOf(one) === process,
    ) as unknown as { spec: { egress: { to?: { podSelector?: Selecting['spec'] }[] }[] } }[]
    const reached = policy!.spec.egress
      .flatMap(({ to }) => to ?? [])
      .map(
        ({ podSelector }) =>
          (podSelector as { matchLabels?: Record<string, string> } | undefined)?.matchLabels?.[
            'app.kubernetes.io/component'
          ],
      )
      .filter((name) => ['nats', 'postgres', 'clickhouse'].includes(name ?? ''))
    const own = (['nats', 'postgres', 'clickhouse'] as const).filter(
      (store) => processPermissions[process][store] !== null,
    )
    expect(reached, process).toEqual(own)
  }
})

const onPort = (port: number) => ({ protocol: 'TCP', port })

/** Ports on which a process may connect to any address. */
function openPorts(objects: KubernetesObject[], process: ProcessName) {
  const [policy] = ofKind(objects, 'NetworkPolicy').filter(
    (one) => componentOf(one) === process,
  ) as unknown as { spec: { egress: { to?: object[]; ports: { port: number }[] }[] } }[]
  return policy!.spec.egress.flatMap(({ to, ports }) => (to === undefined ? ports : []))
}

it('lets traced processes connect to the collector, on the port of its address', () => {
  const connects = processNames.filter((name) =>
    openPorts(full, name).some(({ port }) => port === 4318),
  )
  expect(connects).toEqual(['ingest', 'scorer', 'api', 'delivery'])
})

it('lets the console alone connect to the identity provider, on the port of its URL', () => {
  const others = processNames.filter((name) => name !== 'console')
  for (const name of others) expect(openPorts(full, name)).not.toContainEqual(onPort(8443))
  expect(openPorts(full, 'console')).toContainEqual(onPort(8443))
  const usual = renderChart({ settings: { OIDC_ISSUER: 'https://idp1.example.com' } })
  expect(openPorts(usual, 'console')).toContainEqual(onPort(443))
})

it('gives Prometheus the rules and the names of jobs, and Grafana the dashboards', () => {
  const [rules] = ofKind(full, 'PrometheusRule') as unknown as { spec: object }[]
  expect(rules!.spec).toEqual(parse(read('deploy/prometheus/alerts.yaml')))
  const [monitor] = ofKind(full, 'ServiceMonitor') as unknown as {
    spec: { jobLabel: string; selector: { matchExpressions: { values: string[] }[] } }
  }[]
  expect(monitor!.spec.jobLabel).toBe('app.kubernetes.io/component')
  const jobs = parse(read('deploy/prometheus/prometheus.yaml')) as {
    scrape_configs: { job_name: string }[]
  }
  expect(monitor!.spec.selector.matchExpressions[0]!.values).toEqual(
    jobs.scrape_configs.map(({ job_name }) => job_name).sort(),
  )
  const maps = ofKind(full, 'ConfigMap') as unknown as { data: Record<string, string> }[]
  for (const file of ['operations.json', 'fraud.json']) {
    const [map] = maps.filter(({ data }) => file in data)
    const original = read(`deploy/grafana/provisioning/dashboards/${file}`)
    expect(JSON.parse(map!.data[file]!)).toEqual(JSON.parse(original))
  }
})
