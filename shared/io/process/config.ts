/**
 * Configuration from the environment: every process declares the variables it needs, all of them
 * are checked at start and every error is listed at once. Secrets may come from files
 * (`NAME_FILE`).
 */
import { readFileSync } from 'node:fs'
import proxyaddr from '@fastify/proxy-addr'
import { z } from 'zod'
import { telemetryStreamBytesMin, telemetryStreamsMax } from '#shared/core/base/limits/stream.ts'
import { sampledRatioDefault } from '#shared/core/base/limits/tracing.ts'
import { type Network, parseNetwork } from '#shared/core/deliveries/outbound-address.ts'
import { isSecureOrLocal } from '#shared/core/http/local-hosts.ts'
import {
  processNames,
  secretVariables as secretKeys,
} from '#shared/core/permissions/process-permissions.ts'
import {
  auditDaysDefault,
  auditDaysMin,
  isAuditRetention,
  retentionDaysMax,
} from '#shared/core/tenants/retention.ts'
import {
  findClickhouseUrlFault,
  findPostgresUrlFault,
  type NatsSettings,
  parseClickhouseCluster,
  parseNatsUrl,
} from './server-addresses.ts'

export type Env = Record<string, string | undefined>

/**
 * Thrown once, with one line per faulty variable. Values are never repeated: they may be secret.
 */
export class ConfigError extends Error {
  constructor(lines: string[]) {
    super(`The configuration is not valid:\n${lines.map((line) => `  - ${line}`).join('\n')}`)
    this.name = 'ConfigError'
  }
}

/** `host:port`, with `[...]` around an IPv6 address; port 0 for any free one. */
const listenSchema = z
  .string()
  .regex(/^.+:\d{1,5}$/, 'must be host:port')
  .transform((text) => {
    const at = text.lastIndexOf(':')
    return { host: text.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(text.slice(at + 1)) }
  })
  .refine(({ port }) => port <= 65_535, 'must have a port up to 65535')

export type Listen = z.output<typeof listenSchema>

/** @param findFault what is wrong with an address; null when nothing is */
const address = (findFault: (text: string) => string | null) =>
  z.string().superRefine((text, context) => {
    const fault = findFault(text)
    if (fault !== null) context.addIssue({ code: 'custom', message: fault })
  })

/** @returns what a parser says of an address, as `address` takes it */
const toFault = (read: (text: string) => unknown) => (text: string) => {
  try {
    read(text)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

const readableFileSchema = z.string().refine((file) => {
  try {
    readFileSync(file)
    return true
  } catch {
    return false
  }
}, 'names a file that cannot be read')

/** `1` is on; off by default. */
const switchSchema = z
  .enum(['0', '1'])
  .default('0')
  .transform((text) => text === '1')

const keySchema = (missing: string) =>
  z
    .string(missing)
    .refine(
      (text) => Buffer.from(text, 'base64').length === 32,
      'must be 32 bytes in base64, as `openssl rand -base64 32` prints',
    )

function areAddresses(proxies: readonly string[]): boolean {
  try {
    proxyaddr.compile([...proxies])
    return true
  } catch {
    return false
  }
}

/** A list of networks with commas between them; each fault names its entry. */
function toNetworks(text: string, context: z.RefinementCtx): Network[] {
  const networks: Network[] = []
  for (const entry of text.split(',').map((one) => one.trim())) {
    if (entry === '') continue
    const parsed = parseNetwork(entry)
    if ('network' in parsed) networks.push(parsed.network)
    else context.addIssue({ code: 'custom', message: `${entry} ${parsed.why}` })
  }
  return networks
}

const rolePasswordsSchema = z
  .string()
  .transform((text, context) => {
    try {
      return JSON.parse(text) as unknown
    } catch {
      context.addIssue('must be a JSON object of passwords by process')
      return z.NEVER
    }
  })
  .pipe(z.partialRecord(z.enum(processNames), z.string().min(16, 'must have 16 characters each')))

/** `name=value,name=value`, with values percent-encoded. */
const keyValuesSchema = z.string().transform((text, context) => {
  const pairs: [string, string][] = []
  for (const entry of text.split(',')) {
    const at = entry.indexOf('=')
    const name = entry.slice(0, at).trim()
    const value = decodeIfPossible(entry.slice(at + 1).trim())
    if (at < 1 || name === '' || value === null) {
      context.addIssue('must be name=value pairs with commas between them, values percent-encoded')
      return z.NEVER
    }
    pairs.push([name, value])
  }
  return Object.fromEntries(pairs)
})

function decodeIfPossible(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

const samplers = [
  ...['always_on', 'always_off', 'traceidratio'],
  ...['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'],
] as const

const publicUrlSchema = z
  .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
  .refine((text) => !/[?#]/.test(text), 'must have no query and no fragment')
/** Paths are appended to it. */
const clientUrlSchema = publicUrlSchema.transform((text) => text.replace(/\/+$/, ''))

/** Every variable of the service. A process picks the ones it needs. */
export const variables = {
  NATS_URL: address(toFault(parseNatsUrl)).default('nats://127.0.0.1:4222'),
  /** TLS of the connection to NATS: the CA, and this process's certificate and its key, in PEM. */
  NATS_CA_FILE: readableFileSchema.optional(),
  NATS_CERT_FILE: readableFileSchema.optional(),
  NATS_KEY_FILE: readableFileSchema.optional(),
  /** `1`: TLS begins before NATS greets, for servers with `handshake_first`. */
  NATS_TLS_FIRST: switchSchema,
  /** Credentials for NATS outside the URL: a credentials file, or the seed of an NKEY. */
  NATS_CREDS_FILE: readableFileSchema.optional(),
  NATS_NKEY_SEED: z
    .string()
    .regex(/^SU[A-Z2-7]{56}$/, "must be the seed of a user's NKEY, SU...")
    .optional(),
  /** Replicas of every stream; by default existing streams keep theirs and new ones get one. */
  NATS_REPLICAS: z.coerce
    .number('must be 1, 3 or 5')
    .refine((count) => [1, 3, 5].includes(count), 'must be 1, 3 or 5')
    .optional(),
  /** Number of telemetry streams. It may rise, and never fall below a stream that has a tenant. */
  TELEMETRY_STREAMS: z.coerce
    .number(`must be 1 to ${telemetryStreamsMax}`)
    .refine(
      (count) => Number.isInteger(count) && count >= 1 && count <= telemetryStreamsMax,
      `must be 1 to ${telemetryStreamsMax}`,
    )
    .default(1),
  /** Size of each telemetry stream; by default an existing one keeps its size. */
  TELEMETRY_STREAM_MAX_BYTES: z.coerce
    .number('must be a number of bytes')
    .int('must be a whole number of bytes')
    .min(telemetryStreamBytesMin, `must be ${telemetryStreamBytesMin} bytes at least`)
    .optional(),
  CLICKHOUSE_URL: address(findClickhouseUrlFault).default(
    'http://127.0.0.1:8123/device_intelligence',
  ),
  /** The shards of ClickHouse and their replicas; without it CLICKHOUSE_URL is the only node. */
  CLICKHOUSE_CLUSTER: address(toFault(parseClickhouseCluster)).optional(),
  /** `1`: ClickHouse is the local stack's engine, which separates no tenants. The stack sets it. */
  CLICKHOUSE_EMBEDDED: switchSchema,
  POSTGRES_URL: address(findPostgresUrlFault).default(
    'postgres://postgres@127.0.0.1:5432/device_intelligence',
  ),
  MASTER_KEY: keySchema('is required: 32 random bytes in base64'),
  /** The previous key, while secrets are still sealed under it. */
  MASTER_KEY_PREVIOUS: keySchema('').optional(),
  /** Keys derived from MASTER_KEY, for the processes that have no MASTER_KEY. */
  DIRECTORY_PUBLIC_KEY: keySchema('').optional(),
  DIRECTORY_PUBLIC_KEY_PREVIOUS: keySchema('').optional(),
  EDGE_KEY: keySchema('').optional(),
  EDGE_KEY_PREVIOUS: keySchema('').optional(),
  TELEMETRY_KEY: keySchema('').optional(),
  TELEMETRY_KEY_PREVIOUS: keySchema('').optional(),
  WEBHOOK_KEY: keySchema('').optional(),
  WEBHOOK_KEY_PREVIOUS: keySchema('').optional(),
  ADMIN_TOKEN: z
    .string('is required: the bearer token of the admin API')
    .min(16, 'must have at least 16 characters'),
  /** Passwords of the roles that `migrate` creates in Postgres, by process. */
  POSTGRES_ROLE_PASSWORDS: rolePasswordsSchema.optional(),
  /** How many days audit entries are kept; 0 keeps them forever. `migrate` sets it. */
  AUDIT_RETENTION_DAYS: z.coerce
    .number('must be a number of days')
    .refine(isAuditRetention, `must be 0, or ${auditDaysMin} to ${retentionDaysMax} whole days`)
    .default(auditDaysDefault),
  INGEST_LISTEN: listenSchema.prefault('127.0.0.1:8080'),
  API_LISTEN: listenSchema.prefault('127.0.0.1:8081'),
  CONSOLE_LISTEN: listenSchema.prefault('127.0.0.1:8082'),
  SCORER_LISTEN: listenSchema.prefault('127.0.0.1:8083'),
  DELIVERY_LISTEN: listenSchema.prefault('127.0.0.1:8084'),
  /** Readiness and metrics of the three processes that have a public listener. */
  INGEST_INTERNAL_LISTEN: listenSchema.prefault('127.0.0.1:8090'),
  API_INTERNAL_LISTEN: listenSchema.prefault('127.0.0.1:8091'),
  CONSOLE_INTERNAL_LISTEN: listenSchema.prefault('127.0.0.1:8092'),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  /** `1` lets sandbox tenants use http and private addresses for webhooks. */
  ALLOW_PRIVATE_WEBHOOKS: switchSchema,
  /** Where browsers reach the console, with a path where a proxy serves it under one. */
  PUBLIC_URL: publicUrlSchema.optional(),
  /** Where clients reach the REST API and ingest, for the OpenAPI document and the console. */
  PUBLIC_API_URL: clientUrlSchema.optional(),
  PUBLIC_INGEST_URL: clientUrlSchema.optional(),
  /** The claim `iss` of verdict tokens; PUBLIC_API_URL, where that is set, by default. */
  SERVICE_ISSUER: z
    .string()
    .regex(/^[!-~]{1,256}$/, 'must have 1 to 256 visible ASCII characters, such as a URL')
    .optional(),
  /** The identity provider of operators; http only on this machine. */
  OIDC_ISSUER: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .refine((text) => !/[?#]/.test(text), 'must have no query and no fragment')
    .refine(isSecureOrLocal, 'must be an https URL, unless it is on localhost')
    .optional(),
  OIDC_CLIENT_ID: z.string().max(512, 'must have at most 512 characters').optional(),
  OIDC_CLIENT_SECRET: z.string().optional(),
  /** `1`: passwords do not sign in. */
  OIDC_ONLY: switchSchema,
  /** The issuer, named again, whose emails count as verified though it does not say so. */
  OIDC_TRUST_EMAILS_OF: z.string().optional(),
  /** `totp`: the provider does not say when someone proved who they are, so codes confirm. */
  OIDC_STEP_UP: z.enum(['provider', 'totp']).default('provider'),
  /** Addresses and networks of reverse proxies, separated by commas. */
  TRUSTED_PROXIES: z
    .string()
    .default('')
    .transform((text) => text.split(',').map((part) => part.trim()))
    .transform((parts) => parts.filter((part) => part !== ''))
    .refine(areAddresses, 'must be IP addresses or networks, separated by commas'),
  /**
   * Android's published list of revoked certificates, read again when it is replaced. It may be
   * missing or broken at the start: intake does not depend on it.
   */
  ATTESTATION_STATUS_FILE: z.string().min(1).optional(),
  /** Root keys that count for sandbox tenants alone. */
  ATTESTATION_TEST_ROOTS_FILE: readableFileSchema.optional(),
  /** The folder of network data; without it nothing is known of clients' networks. */
  NETWORK_DATA: z.string().min(1, 'must name a folder').optional(),
  /** `1` looks documentation addresses up as well: for tests and demos. */
  NETWORK_DATA_DOCUMENTATION: switchSchema,
  /** Private networks that webhook receivers of all tenants may be in. */
  WEBHOOK_ALLOW_NETWORKS: z.string().default('').transform(toNetworks),
  /** `1` lets several processes listen on one address; the kernel distributes connections. */
  REUSE_PORT: switchSchema,
  /** How long a process serves on after SIGTERM, while its readiness is 503 already. */
  STOP_DELAY_MS: z.coerce.number().int().min(0).max(60_000).default(0),
  /** How long shadow policies may delay a batch of a scorer. */
  SHADOW_HOLD_MAX_MS: z.coerce.number().int().min(100).max(60_000).default(2_000),
  /** Where spans are exported to, by OTLP over HTTP; without it tracing is off. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .optional(),
  OTEL_EXPORTER_OTLP_HEADERS: keyValuesSchema.optional(),
  OTEL_TRACES_SAMPLER: z.enum(samplers).default('parentbased_traceidratio'),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number('must be a number from 0 to 1')
    .refine((ratio) => ratio >= 0 && ratio <= 1, 'must be a number from 0 to 1')
    .default(sampledRatioDefault),
  /** Read by the packages of OpenTelemetry. */
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: z.string().optional(),
  /** Where analysts reach ClickHouse; the local stack sets it to an address of its own. */
  ANALYSTS_URL: z.url().optional(),
  /** A process ends itself when this one is gone; set by the local stack. */
  PARENT_PID: z.coerce.number().int().positive().optional(),
} as const

/** The variables of every process that connects to NATS. */
export const natsVariables = {
  NATS_URL: variables.NATS_URL,
  NATS_REPLICAS: variables.NATS_REPLICAS,
  TELEMETRY_STREAMS: variables.TELEMETRY_STREAMS,
  TELEMETRY_STREAM_MAX_BYTES: variables.TELEMETRY_STREAM_MAX_BYTES,
  NATS_CA_FILE: variables.NATS_CA_FILE,
  NATS_CERT_FILE: variables.NATS_CERT_FILE,
  NATS_KEY_FILE: variables.NATS_KEY_FILE,
  NATS_TLS_FIRST: variables.NATS_TLS_FIRST,
  NATS_CREDS_FILE: variables.NATS_CREDS_FILE,
  NATS_NKEY_SEED: variables.NATS_NKEY_SEED,
} as const

/**
 * The settings of the connection to NATS.
 * @throws ConfigError where they contradict one another
 */
export function toNatsSettings(config: z.output<z.ZodObject<typeof natsVariables>>): NatsSettings {
  const faults: string[] = []
  const has = (name: keyof typeof natsVariables) => config[name] !== undefined
  if (has('NATS_CERT_FILE') !== has('NATS_KEY_FILE')) {
    faults.push('NATS_CERT_FILE and NATS_KEY_FILE must be set together')
  }
  const { tls, user } = parseNatsUrl(config.NATS_URL)
  const usesTls = tls || has('NATS_CA_FILE') || has('NATS_CERT_FILE') || has('NATS_KEY_FILE')
  if (config.NATS_TLS_FIRST && !usesTls) {
    faults.push('NATS_TLS_FIRST needs TLS: tls:// in NATS_URL, or NATS_CA_FILE')
  }
  const ways = [
    ...(user === '' ? [] : ['the credentials in NATS_URL']),
    ...(has('NATS_CREDS_FILE') ? ['NATS_CREDS_FILE'] : []),
    ...(has('NATS_NKEY_SEED') ? ['NATS_NKEY_SEED'] : []),
  ]
  if (ways.length > 1) faults.push(`only one way to sign in may be set, not ${ways.join(' and ')}`)
  if (faults.length > 0) throw new ConfigError(faults)
  return {
    url: config.NATS_URL,
    replicas: config.NATS_REPLICAS,
    telemetryStreams: config.TELEMETRY_STREAMS,
    telemetryBytesMax: config.TELEMETRY_STREAM_MAX_BYTES,
    caFile: config.NATS_CA_FILE,
    certFile: config.NATS_CERT_FILE,
    keyFile: config.NATS_KEY_FILE,
    tlsFirst: config.NATS_TLS_FIRST,
    credsFile: config.NATS_CREDS_FILE,
    nkeySeed: config.NATS_NKEY_SEED,
  }
}

/** The variables of every process that connects to ClickHouse. */
export const clickhouseVariables = {
  CLICKHOUSE_URL: variables.CLICKHOUSE_URL,
  CLICKHOUSE_CLUSTER: variables.CLICKHOUSE_CLUSTER,
} as const

/**
 * The URLs of each shard's replicas, with the credentials and the database of CLICKHOUSE_URL. There
 * are no shards for one node.
 * @throws ConfigError when CLICKHOUSE_URL is none of the servers
 */
export function toShardUrls(config: z.output<z.ZodObject<typeof clickhouseVariables>>): string[][] {
  if (config.CLICKHOUSE_CLUSTER === undefined) return []
  const own = new URL(config.CLICKHOUSE_URL)
  const shards = parseClickhouseCluster(config.CLICKHOUSE_CLUSTER)
  if (!shards.flat().includes(own.origin)) {
    throw new ConfigError(['CLICKHOUSE_URL must be one of the servers in CLICKHOUSE_CLUSTER'])
  }
  const toUrl = (origin: string) => {
    const url = new URL(own.pathname, origin)
    url.username = own.username
    url.password = own.password
    return url.href
  }
  return shards.map((replicas) => replicas.map(toUrl))
}

const secretVariables = new Set([
  'NATS_URL',
  'NATS_NKEY_SEED',
  'CLICKHOUSE_URL',
  'POSTGRES_URL',
  ...secretKeys,
  'OIDC_CLIENT_SECRET',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'POSTGRES_ROLE_PASSWORDS',
])

/**
 * Reads and checks a process's configuration.
 * @param shape variable names and their schemas, as in `variables`
 * @throws ConfigError with every fault
 */
export function readConfig<Shape extends z.ZodRawShape>(
  shape: Shape,
  env: Env,
): z.output<z.ZodObject<Shape>> {
  const faults: string[] = []
  const values: Env = {}
  for (const name of Object.keys(shape)) {
    const file = secretVariables.has(name) ? env[`${name}_FILE`] : undefined
    const value = file === undefined ? env[name] : readSecret(name, file, faults)
    // In compose files and shells an empty variable means "not set".
    if (value !== undefined && value !== '') values[name] = value
  }
  const parsed = z.object(shape).safeParse(values)
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      faults.push(`${issue.path.join('.')} ${issue.message}`)
    }
  }
  if (faults.length > 0 || !parsed.success) throw new ConfigError(faults)
  return parsed.data
}

function readSecret(name: string, file: string, faults: string[]): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    faults.push(`${name}_FILE names a file that cannot be read`)
    return undefined
  }
}
