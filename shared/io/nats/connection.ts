/**
 * The connection to NATS: credentials and TLS from the settings, unlimited reconnection, whether
 * the server answers right now, and the reason when it does not.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import {
  type ConnectionOptions,
  createInbox,
  credsAuthenticator,
  Events,
  type JetStreamClient,
  type JetStreamManager,
  type NatsConnection,
  nkeyAuthenticator,
  type TlsOptions,
} from 'nats'
import { describeOldNats } from '#shared/core/base/server-versions.ts'
import {
  listTelemetryStreams,
  type TelemetryStream,
} from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { createFaultReporter, type FaultReporter } from '#shared/io/process/connect-faults.ts'
import type { Log } from '#shared/io/process/log.ts'
import {
  type NatsPatience,
  type NatsSettings,
  parseNatsUrl,
} from '#shared/io/process/server-addresses.ts'
import { connect, unreadable } from './transport.ts'

export type Nats = {
  connection: NatsConnection
  jetstream: JetStreamClient
  manager: JetStreamManager
  /** Replicas of streams and buckets; null leaves existing ones unchanged. */
  replicas: number | null
  /** The telemetry streams 1 to `TELEMETRY_STREAMS`. */
  telemetryStreams: readonly TelemetryStream[]
  /** `TELEMETRY_STREAM_MAX_BYTES`; undefined leaves the size of a stream unchanged. */
  telemetryBytesMax?: number | undefined
  /** A new reply subject, under the prefix that only this process may read. */
  newInbox: () => string
  /** Whether the connection is up and the server answers, at this moment. */
  connected: () => boolean
  /** Aborts when the present connection breaks; already aborted while there is none. */
  broken: () => AbortSignal
  /** Flushes, drains subscriptions and closes. */
  close: () => Promise<void>
}

const defaultPatience: NatsPatience = { pingEveryMs: 5_000, dialMaxMs: 20_000 }

/** A connection that is opened, and reopened, in the background. */
export type NatsLink = {
  /** The connection; null before the first one. */
  find: () => Nats | null
  /** For `/readyz`: null while the server answers, else the reason. */
  fault: () => string | null
  /** The first connection. */
  opened: Promise<Nats>
  close: () => Promise<void>
}

/**
 * Starts to connect and retries without limit. It logs each reason of a failure once, at `warn`.
 * @param name the process, for the server's connection list and the inbox prefix
 * @throws Error when the settings are invalid
 */
export function openNats(settings: NatsSettings, name: string, log: Log): NatsLink {
  const options = toOptions(settings, name)
  const reporter = createFaultReporter('NATS', log)
  let nats: Nats | null = null
  let closed = false
  const isUp = () => closed || nats?.connected() === true
  const stopReporting = reportFaults(options, reporter, isUp)
  const opened = connect(options).then(async (connection) => {
    nats = await toNats(connection, settings, { name, log, reporter })
    if (closed) await nats.close()
    return nats
  })
  opened.catch((error: unknown) => reporter.failed(error))
  return {
    find: () => nats,
    fault: () => {
      if (nats?.connected()) return findOldServer(nats)
      const reason = reporter.fault()
      return reason === null ? 'is not connected' : `is not connected: it ${reason}`
    },
    opened,
    close: async () => {
      closed = true
      stopReporting()
      await nats?.close()
    },
  }
}

/** @returns what is wrong with the version of the server that is connected right now, or null */
export const findOldServer = ({ connection, replicas }: Nats): string | null =>
  describeOldNats(connection.info?.version ?? '', replicas ?? 1)

/**
 * Connects, and waits for the server without limit.
 * @param settings settings, or the URL alone
 * @param name as for `openNats`
 * @param replicas `NATS_REPLICAS`, when only the URL is given
 */
export async function connectNats(
  settings: string | NatsSettings,
  name: string,
  log: Log,
  replicas?: number,
): Promise<Nats> {
  const link = openNats(
    typeof settings === 'string' ? { url: settings, replicas } : settings,
    name,
    log,
  )
  const nats = await link.opened
  return { ...nats, close: link.close }
}

function toOptions(settings: NatsSettings, name: string): ConnectionOptions {
  const { hosts, tls, user, password } = parseNatsUrl(settings.url)
  const { caFile, certFile, keyFile, tlsFirst = false, patience = defaultPatience } = settings
  const files = {
    ...(caFile === undefined ? {} : { caFile }),
    ...(certFile === undefined ? {} : { certFile }),
    ...(keyFile === undefined ? {} : { keyFile }),
  }
  return {
    servers: hosts,
    name,
    inboxPrefix: toInboxPrefix(name),
    ...toSignIn(settings, user, password),
    // Without TLS on the server, the client then disconnects before it sends credentials.
    ...(tls || Object.keys(files).length > 0 ? { tls: toTls(files, hosts, tlsFirst) } : {}),
    maxReconnectAttempts: -1,
    // By default two refused sign-ins, even hours apart, end reconnection for good.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: 250,
    reconnectJitter: 100,
    waitOnFirstConnect: true,
    // A stack trace for every request costs more than the request.
    noAsyncTraces: true,
    // Two missed pings reveal a peer that died without closing the connection.
    pingInterval: patience.pingEveryMs,
    maxPingOut: 2,
    timeout: patience.dialMaxMs,
  }
}

/**
 * The client checks a certificate for `localhost` when a server is given by its address. This check
 * requires one of the configured addresses instead.
 */
function toTls(files: TlsOptions, hosts: readonly string[], handshakeFirst: boolean): TlsOptions {
  const names = hosts.map((host) => new URL(`tls://${host}`).hostname.replace(/^\[|\]$/g, ''))
  const addresses = names.filter((name) => isIP(name) !== 0)
  const check = (host: string, certificate: PeerCertificate): Error | undefined => {
    const isNamed = host !== 'localhost' || names.includes('localhost')
    const accepted = [...(isNamed ? [host] : []), ...(host === 'localhost' ? addresses : [])]
    const faults = accepted.map((name) => checkServerIdentity(name, certificate))
    return faults.includes(undefined) ? undefined : faults[0]
  }
  return { ...files, handshakeFirst, checkServerIdentity: check } as TlsOptions
}

/** The prefix of a process's reply subjects; its NATS user may read only these. */
export const toInboxPrefix = (name: string): string => `_INBOX.${name}`

function toSignIn(
  { credsFile, nkeySeed }: NatsSettings,
  user: string,
  pass: string,
): ConnectionOptions {
  if (credsFile !== undefined) {
    return { authenticator: credsAuthenticator(() => readFileSync(credsFile)) }
  }
  if (nkeySeed !== undefined) {
    return { authenticator: nkeyAuthenticator(new TextEncoder().encode(nkeySeed)) }
  }
  if (user === '') return {}
  return pass === '' ? { token: user } : { user, pass }
}

/** Interval and time limit of the attempts that find the reason of a failure. */
const faultEveryMs = 1_000
const faultMaxMs = 3_000

/** The client hides why it fails, so a separate attempt finds the reason. */
function reportFaults(
  options: ConnectionOptions,
  reporter: FaultReporter,
  isUp: () => boolean,
): () => void {
  let trying = false
  const attempt = async () => {
    if (trying || isUp()) return
    trying = true
    const once = { reconnect: false, waitOnFirstConnect: false, timeout: faultMaxMs }
    try {
      const connection = await connect({ ...options, ...once })
      await connection.close()
    } catch (error) {
      if (!isUp()) reporter.failed(error)
    }
    trying = false
  }
  const first = setTimeout(attempt, faultEveryMs / 4)
  const timer = setInterval(attempt, faultEveryMs)
  first.unref()
  timer.unref()
  return () => {
    clearTimeout(first)
    clearInterval(timer)
  }
}

async function toNats(
  connection: NatsConnection,
  { url, replicas, telemetryStreams = 1, telemetryBytesMax }: NatsSettings,
  { name, log, reporter }: { name: string; log: Log; reporter: FaultReporter },
): Promise<Nats> {
  reporter.worked()
  let connected = true
  let breaking = new AbortController()
  void watchStatus(connection, log, (state) => {
    connected = state
    if (connected) {
      breaking = new AbortController()
      reporter.worked()
    } else breaking.abort()
  })
  const answers = watchAnswers(connection)
  const manager = await connection.jetstreamManager({ timeout: requestMaxMs, checkAPI: false })
  if (url.includes(',')) leaveCutOff(connection, manager, { log, isUp: () => connected, answers })
  const inboxPrefix = toInboxPrefix(name)
  return {
    connection,
    jetstream: connection.jetstream({ timeout: 2_000 }),
    manager,
    replicas: replicas ?? null,
    telemetryStreams: listTelemetryStreams(telemetryStreams),
    telemetryBytesMax,
    newInbox: () => createInbox(inboxPrefix),
    connected: () => connected && answers() && !connection.isClosed(),
    broken: () => breaking.signal,
    close: async () => {
      // A drain needs the server.
      if (connected && !connection.isClosed()) await connection.drain()
      else await connection.close()
    },
  }
}

/** A request over a connection that breaks is never answered; readiness must return within 5 s. */
const requestMaxMs = 3_000

/** A server that is silent for this long counts as away, although its connection is open. */
const silentMaxMs = 2_000
const pingEveryMs = 1_000

/** @returns whether the server answered lately: a server that hangs keeps its connections open */
function watchAnswers(connection: NatsConnection): () => boolean {
  let sentMs: number | null = null
  const timer = setInterval(() => {
    sentMs ??= performance.now()
    const answered = () => {
      sentMs = null
    }
    // The status events report a broken connection; the next one is pinged afresh.
    connection.flush().then(answered, answered)
  }, pingEveryMs)
  timer.unref()
  void connection.closed().then(() => clearInterval(timer))
  return () => sentMs === null || performance.now() - sentMs < silentMaxMs
}

/** How often to request something that only a majority of the cluster can answer. */
const clusterCheckEveryMs = 2_000
/** After this many failed checks in a row the server is left: an election takes less. */
const clusterFailuresMax = 2

const cutOff = 'this NATS server has no contact with a majority of its cluster; trying another'
const silent = 'this NATS server does not answer; trying another'

/**
 * Reconnects to another server of the list when this one is cut off from its cluster, or hangs: the
 * one keeps its clients and answers pings but stores nothing, the other keeps them as well. A
 * connection that is down finds another server by itself.
 * @param isUp whether there is a connection
 * @param answers whether its server answered lately
 */
function leaveCutOff(
  connection: NatsConnection,
  manager: JetStreamManager,
  { log, isUp, answers }: { log: Log; isUp: () => boolean; answers: () => boolean },
): void {
  let failures = 0
  let checking = false
  /** What was logged last; null once a check succeeded. */
  let logged: string | null = null
  const check = async () => {
    if (!isUp()) {
      failures = 0
      return
    }
    try {
      await manager.getAccountInfo()
      failures = 0
      logged = null
    } catch {
      failures++
    }
    if (failures < clusterFailuresMax || !isUp() || connection.isClosed()) return
    failures = 0
    const what = answers() ? cutOff : silent
    if (logged !== what) log.warn({ server: connection.getServer() }, what)
    logged = what
    // A draining connection stays where it is.
    await connection.reconnect().catch(() => undefined)
  }
  const timer = setInterval(async () => {
    if (checking) return
    checking = true
    await check()
    checking = false
  }, clusterCheckEveryMs)
  timer.unref()
  void connection.closed().then(() => clearInterval(timer))
}

/** How many refused subjects are logged, and how much of each: the server names them. */
const refusedSubjectsMax = 100
const refusedSubjectCharsMax = 200

async function watchStatus(
  connection: NatsConnection,
  log: Log,
  set: (connected: boolean) => void,
): Promise<void> {
  const refused = new Set<string>()
  for await (const status of connection.status()) {
    const { permissionContext } = status
    if (permissionContext !== undefined && refused.size < refusedSubjectsMax) {
      const { operation } = permissionContext
      const subject = permissionContext.subject.slice(0, refusedSubjectCharsMax)
      // Once each: refused requests are repeated.
      if (!refused.has(subject))
        log.warn({ operation, subject }, 'NATS refuses this user a subject')
      refused.add(subject)
    }
    if (status.type === Events.Error && status.data === unreadable) {
      log.error('NATS sent what its client cannot read; opening another connection')
    } else if (status.type === Events.Disconnect) {
      set(false)
      log.warn('the connection to NATS is down')
    } else if (status.type === Events.Reconnect) {
      set(true)
      log.info('the connection to NATS is up again')
    }
  }
}
