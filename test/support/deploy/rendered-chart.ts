/** The chart rendered with its default values and with everything switched on. */
import { type ProcessName, processNames } from '#shared/core/permissions/process-permissions.ts'
import { type KubernetesObject, renderChart } from './helm.ts'

export const deployed = processNames.filter((name) => name !== 'migrate')

const peers = [{ namespaceSelector: { matchLabels: { purpose: 'front' } } }]
/** Every switch of values.yaml, and every secret. */
const everything = {
  image: { repository: 'images.example.com:5000/own/device-intelligence', tag: '1.2.3' },
  imagePullSecrets: [{ name: 'pull' }],
  secrets: {
    existingSecret: 'own',
    also: [
      ...[
        'MASTER_KEY',
        'MASTER_KEY_PREVIOUS',
        'DIRECTORY_PUBLIC_KEY_PREVIOUS',
        'EDGE_KEY_PREVIOUS',
      ],
      ...['TELEMETRY_KEY_PREVIOUS', 'WEBHOOK_KEY_PREVIOUS', 'OIDC_CLIENT_SECRET', 'NATS_NKEY_SEED'],
      'OTEL_EXPORTER_OTLP_HEADERS',
    ],
  },
  certificates: { existingSecret: 'pem' },
  files: { existingClaim: 'network-data' },
  settings: {
    NATS_CA_FILE: '/certificates/ca.crt',
    TELEMETRY_STREAMS: 2,
    TELEMETRY_STREAM_MAX_BYTES: 17_179_869_184,
    OIDC_ISSUER: 'https://idp.example.com:8443/realm',
    OIDC_CLIENT_ID: 'console',
    NETWORK_DATA: '/files/network',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.example.com:4318',
    TRUSTED_PROXIES: '10.0.0.0/8',
    STOP_DELAY_MS: 12_000,
  },
  processes: {
    delivery: {
      replicas: 1,
      settings: { DELIVERY_CONCURRENCY: 64 },
      podAnnotations: { note: 'one' },
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ key: 'spot', operator: 'Exists' }],
    },
  },
  backup: {
    enabled: true,
    timeZone: 'Etc/UTC',
    clickhouseTo: "S3(backups, '{name}')",
    storage: { storageClass: 'slow' },
    podAnnotations: { note: 'one' },
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'spot', operator: 'Exists' }],
  },
  autoscaling: { ingest: { enabled: true }, scorer: { enabled: true } },
  ingress: { enabled: true, className: 'own', host: 'di.example.com', tlsSecret: 'tls' },
  httpRoute: { enabled: true, parentRefs: [{ name: 'own' }], hostnames: ['di.example.com'] },
  networkPolicy: { clients: peers, console: peers, monitoring: peers },
  monitoring: {
    serviceMonitor: { enabled: true, labels: { release: 'own' } },
    rules: { enabled: true, labels: { release: 'own' } },
    dashboards: { enabled: true },
  },
  bundled: {
    nats: { enabled: true, storageClass: 'fast' },
    postgres: { enabled: true },
    clickhouse: { enabled: true },
  },
}

export type Container = {
  name: string
  image: string
  command: string[]
  env?: { name: string; value?: string }[]
  ports?: { name: string; containerPort: number }[]
  resources: { limits: { memory: string } }
  securityContext: object
  volumeMounts?: object[]
  startupProbe?: { httpGet: object }
  readinessProbe?: { httpGet: object }
  livenessProbe?: { httpGet: object }
}
export type PodSpec = {
  terminationGracePeriodSeconds: number
  containers: [Container]
  initContainers?: [Container]
  volumes: {
    name: string
    persistentVolumeClaim?: object
    secret?: { secretName: string; items: { key: string }[] }
  }[]
}
export type Workload = KubernetesObject & {
  spec: {
    replicas?: number
    selector: { matchLabels: Record<string, string> }
    template: { metadata: { labels: Record<string, string> }; spec: PodSpec }
  }
}

let rendered: { byDefault: KubernetesObject[]; full: KubernetesObject[] } | undefined

/** Renders once for all tests of a worker. */
export function renderBoth() {
  rendered ??= { byDefault: renderChart(), full: renderChart(everything) }
  return rendered
}

export const ofKind = (objects: KubernetesObject[], kind: string) =>
  objects.filter((object) => object.kind === kind)
export const componentOf = ({ metadata }: KubernetesObject) =>
  metadata.labels['app.kubernetes.io/component']!

/** The Deployment or Job of a process. */
export function workloadOf(objects: KubernetesObject[], process: ProcessName): Workload {
  const kind = process === 'migrate' ? 'Job' : 'Deployment'
  return ofKind(objects, kind).find((one) => componentOf(one) === process) as Workload
}
export const podOf = (objects: KubernetesObject[], process: ProcessName): PodSpec =>
  workloadOf(objects, process).spec.template.spec
export const envOf = ({ containers: [{ env = [] }] }: PodSpec) =>
  Object.fromEntries(env.map(({ name, value }) => [name, value]))
