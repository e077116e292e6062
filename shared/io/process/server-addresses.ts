/**
 * Parses the addresses of NATS, Postgres and ClickHouse. Options that the client would ignore are
 * errors, so that `tls` or `sslmode` always takes effect.
 */

/** The servers and credentials of a `NATS_URL`. */
type NatsAddress = {
  /** `host:port`, or `host` for the default port. */
  hosts: string[]
  /** Whether a connection without TLS is refused, before any credentials are sent. */
  tls: boolean
  user: string
  password: string
}

export type NatsSettings = {
  /** In the form of `parseNatsUrl`. With `tls://`, a CA or a certificate, TLS is required. */
  url: string
  /** `NATS_REPLICAS` */
  replicas?: number | undefined
  /** `TELEMETRY_STREAMS`; 1 by default. */
  telemetryStreams?: number | undefined
  /** `TELEMETRY_STREAM_MAX_BYTES` */
  telemetryBytesMax?: number | undefined
  /** PEM files, read again for every connection. */
  caFile?: string | undefined
  certFile?: string | undefined
  keyFile?: string | undefined
  /** Whether TLS begins before the server greets, as its `handshake_first` requires. */
  tlsFirst?: boolean | undefined
  /** A credentials file with a JWT and its seed. */
  credsFile?: string | undefined
  /** The seed of an NKEY, `SU...`. */
  nkeySeed?: string | undefined
  /** How long to wait for a server that is silent; `defaultPatience` when left out. */
  patience?: NatsPatience | undefined
}

/** How long to wait for a server that is silent. */
export type NatsPatience = {
  /** How often a connection is pinged; two missed pings end it. */
  pingEveryMs: number
  /** How long one attempt to connect may take. */
  dialMaxMs: number
}

const natsSchemes: Record<string, { tls: boolean }> = {
  'nats:': { tls: false },
  'tls:': { tls: true },
}

/**
 * Reads a `NATS_URL`: `nats://` or `tls://user:password@host:port`, several separated by commas.
 * Later ones may leave out the scheme and the credentials, which are those of the first.
 * @throws Error with what is wrong with it; never with a part of it
 */
export function parseNatsUrl(text: string): NatsAddress {
  const parts = text.split(',').map((part) => part.trim())
  const scheme = /^[a-z][a-z0-9+.-]*:(?=\/\/)/i.exec(parts[0] ?? '')?.[0].toLowerCase() ?? 'nats:'
  const known = natsSchemes[scheme]
  if (known === undefined) throw new Error('must be nats://host:port or tls://host:port')
  const urls = parts.map((part) => {
    const url = part.includes('://') ? part : `${scheme}//${part}`
    if (!URL.canParse(url)) throw new Error('must be nats://host:port or tls://host:port')
    return new URL(url)
  })
  const [first] = urls
  for (const url of urls) {
    if (url.protocol !== scheme) throw new Error('must have one scheme for all servers')
    if (url.hostname === '') throw new Error('must name a host')
    if (!['', '/'].includes(url.pathname) || url.search !== '' || url.hash !== '') {
      throw new Error('must not have a path or parameters; TLS has settings of its own')
    }
    const own = url.username !== '' || url.password !== ''
    if (own && (url.username !== first?.username || url.password !== first.password)) {
      throw new Error('must have the same credentials for all servers')
    }
  }
  return {
    hosts: urls.map((url) => url.host),
    tls: known.tls,
    user: decodeURIComponent(first?.username ?? ''),
    password: decodeURIComponent(first?.password ?? ''),
  }
}

const sessionTargets = ['any', 'read-write']
const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']

/** The parameters of a Postgres URL that the client obeys. */
const postgresParameters = new Set([
  ...['sslmode', 'sslcert', 'sslkey', 'sslrootcert', 'sslnegotiation', 'uselibpqcompat'],
  ...['application_name', 'options', 'host', 'port', 'user', 'password', 'dbname', 'encoding'],
  ...['connect_timeout', 'channel_binding', 'target_session_attrs'],
])

/** The servers of a `POSTGRES_URL`: a primary and its standbys, or one server. */
export type PostgresAddress = {
  /** One URL per server, in the order of the hosts. */
  urls: string[]
  /** Whether only a server that takes writes is used. */
  readWrite: boolean
}

/**
 * What is wrong with a `POSTGRES_URL`, or null. Every `sslmode` but `disable` and `no-verify` means
 * TLS with a certificate that is verified. Several hosts are separated by commas.
 */
export function findPostgresUrlFault(text: string): string | null {
  const urls = splitHosts(text).map((one) => parse(one, ['postgres:', 'postgresql:']))
  const [url] = urls
  if (url === undefined || url === null || urls.includes(null)) {
    return 'must be a URL with postgres: or postgresql:'
  }
  for (const name of url.searchParams.keys()) {
    if (!postgresParameters.has(name)) return `has an unknown parameter: ${name}`
  }
  const mode = url.searchParams.get('sslmode')
  if (mode !== null && !sslModes.includes(mode)) {
    return `must have an sslmode of ${sslModes.join(', ')}`
  }
  const target = url.searchParams.get('target_session_attrs') ?? 'any'
  if (!sessionTargets.includes(target)) {
    return `must have a target_session_attrs of ${sessionTargets.join(', ')}`
  }
  if (['host', 'port'].some((name) => url.searchParams.get(name)?.includes(','))) {
    return 'must have several hosts as host:port,host:port before the path'
  }
  if (urls.length === 1) return null
  if (urls.some((one) => one?.hostname === '')) return 'must name a host between commas'
  return target === 'read-write'
    ? null
    : 'has several hosts, which needs target_session_attrs=read-write'
}

/** Reads a `POSTGRES_URL` without a fault. */
export function parsePostgresUrl(text: string): PostgresAddress {
  const urls = splitHosts(text)
  return { urls, readWrite: /[?&]target_session_attrs=read-write(&|$)/.test(text) }
}

/** The same URL for another database, and the name of its own. */
export function replaceDatabase(text: string, database: string): { url: string; replaced: string } {
  const [, server = text, path = '', query = ''] =
    /^([^/]*\/\/[^/?]*)([^?]*)(.*)$/s.exec(text) ?? []
  const replaced = decodeURIComponent(path.slice(1))
  return { url: `${server}/${encodeURIComponent(database)}${query}`, replaced }
}

/** One URL for each of the hosts between commas. */
function splitHosts(text: string): string[] {
  const [, before, hosts, after] = /^([^/]*\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s.exec(text) ?? []
  if (hosts === undefined) return [text]
  return hosts.split(',').map((host) => `${before}${host}${after}`)
}

/** @returns what is wrong with a `CLICKHOUSE_URL`, or null */
export function findClickhouseUrlFault(text: string): string | null {
  const url = parse(text, ['http:', 'https:'])
  if (url === null) return 'must be a URL with http: or https:'
  return url.search === '' ? null : 'must not have parameters; https: enables TLS'
}

/**
 * Reads a `CLICKHOUSE_CLUSTER`: the addresses of the servers' HTTP ports, with `;` between shards
 * and `,` between the two replicas of a shard:
 * `http://a:8123,http://b:8123;http://c:8123,http://d:8123`. Credentials and database are those of
 * `CLICKHOUSE_URL`, so the text has no secret.
 * @returns the origins of each shard's replicas, in their order
 * @throws Error with what is wrong with it
 */
export function parseClickhouseCluster(text: string): string[][] {
  const shards = text.split(';').map((shard) => shard.split(',').map(toOrigin))
  const origins = shards.flat()
  if (new Set(origins).size < origins.length) throw new Error('names a server twice')
  if (shards.some((replicas) => replicas.length > replicasMax)) {
    throw new Error(`names more than ${replicasMax} replicas of a shard; ; is between shards`)
  }
  return shards
}

/**
 * An insert waits for the majority of the replicas in Keeper: of two that is both, so that a query
 * of either finds every acknowledged row. Of three it would be any two.
 */
const replicasMax = 2

function toOrigin(part: string): string {
  const url = parse(part.trim(), ['http:', 'https:'])
  if (url === null) {
    throw new Error('must be the addresses of all servers, as in http://a:8123;http://b:8123')
  }
  if (url.username !== '' || url.password !== '' || url.pathname !== '/' || url.search !== '') {
    throw new Error('must have hosts and ports only; CLICKHOUSE_URL has credentials and database')
  }
  return url.origin
}

function parse(text: string, protocols: string[]): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null
  return url !== null && protocols.includes(url.protocol) ? url : null
}
