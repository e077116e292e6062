/**
 * The connection to NATS, and nothing else: credentials and TLS from the settings, endless
 * reconnection, a flag that says whether the server answers right now, and the reason where it does
 * not. Everything that knows the `nats` package stays in this folder.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import {
  type ConnectionOptions,
  connect,
  createInbox,
  credsAuthenticator,
  Events,
  type JetStreamClient,
  type JetStreamManager,
  type NatsConnection,
  nkeyAuthenticator,
  type TlsOptions,
} from 'nats'
import { createFaultTeller, type FaultTeller } from '#shared/io/process/connect-faults.ts'
import type { Log } from '#shared/io/process/log.ts'
import { parseNatsUrl } from '#shared/io/process/server-addresses.ts'

export type Nats = {
  connection: NatsConnection
  jetstream: JetStreamClient
  manager: JetStreamManager
  /** On how many servers streams and buckets are kept; null leaves it to who made them. */
  replicas: number | null
  /** `TELEMETRY_STREAM_MAX_BYTES`; undefined leaves the stream's room as it is. */
  telemetryBytesMax?: number | undefined
  /** A new subject for answers, under the prefix that this process alone may read. */
  newInbox: () => string
  /** Whether the connection is up at this moment, and the server answers over it. */
  connected: () => boolean
  /** Aborts as the connection breaks that is up now; aborted already while there is none. */
  broken: () => AbortSignal
  /** Flushes, drains subscriptions and closes. */
  close: () => Promise<void>
}

export type NatsSettings = {
  /** As `parseNatsUrl` takes it. With `tls://`, or a CA or certificate, TLS is required. */
  url: string
  /** `NATS_REPLICAS` */
  replicas?: number | undefined
  /** `TELEMETRY_STREAM_MAX_BYTES` */
  telemetryBytesMax?: number | undefined
  /** Files in PEM, read again with every connection. */
  caFile?: string | undefined
  certFile?: string | undefined
  keyFile?: string | undefined
  /** A credentials file with a JWT and its seed. */
  credsFile?: string | undefined
  /** The seed of an NKEY, `SU...`. */
  nkeySeed?: string | undefined
}

/** A connection that is being made, and made again, in the background. */
export type NatsLink = {
  /** The connection, or null while there has not been one yet. */
  find: () => Nats | null
  /** For `/readyz`: null while the server answers, else why not. */
  fault: () => string | null
  /** The first connection. */
  opened: Promise<Nats>
  close: () => Promise<void>
}

/**
 * Begins to connect and never stops trying. Why it fails is said once at `warn`.
 * @param name the process; it is shown in the server's connection list and names its inboxes
 * @throws Error when the settings cannot be right
 */
export function openNats(settings: NatsSettings, name: string, log: Log): NatsLink {
  const options = toOptions(settings, name)
  const teller = createFaultTeller('NATS', log)
  let nats: Nats | null = null
  let closed = false
  const isUp = () => closed || nats?.connected() === true
  const stopTelling = tellFaults(options, teller, isUp)
  const opened = connect(options).then(async (connection) => {
    nats = await toNats(connection, settings, { name, log, teller })
    if (closed) await nats.close()
    return nats
  })
  opened.catch((error: unknown) => teller.failed(error))
  return {
    find: () => nats,
    fault: () => {
      if (nats?.connected()) return null
      const reason = teller.fault()
      return reason === null ? 'is not connected' : `is not connected: it ${reason}`
    },
    opened,
    close: async () => {
      closed = true
      stopTelling()
      await nats?.close()
    },
  }
}

/**
 * Connects, waiting for the server as long as it takes to appear.
 * @param settings or the URL alone
 * @param name as for `openNats`
 * @param replicas `NATS_REPLICAS`, where only the URL is given
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
  const { caFile, certFile, keyFile } = settings
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
    // Without TLS the client then ends the connection before it says who it is.
    ...(tls || Object.keys(files).length > 0 ? { tls: toTls(files, hosts) } : {}),
    maxReconnectAttempts: -1,
    // Two refused sign-ins, however far apart, would end the connection for good.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: 250,
    reconnectJitter: 100,
    waitOnFirstConnect: true,
    // A stack trace for every request would cost more than the request.
    noAsyncTraces: true,
    // A dead peer without a FIN is noticed after two missed pings.
    pingInterval: 5_000,
    maxPingOut: 2,
  }
}

/**
 * The client has a certificate checked for `localhost` where a server is named by its address: then
 * it must be for one of the addresses in the settings.
 */
function toTls(files: TlsOptions, hosts: readonly string[]): TlsOptions {
  const names = hosts.map((host) => new URL(`tls://${host}`).hostname.replace(/^\[|\]$/g, ''))
  const addresses = names.filter((name) => isIP(name) !== 0)
  const check = (host: string, certificate: PeerCertificate): Error | undefined => {
    const isNamed = host !== 'localhost' || names.includes('localhost')
    const asked = [...(isNamed ? [host] : []), ...(host === 'localhost' ? addresses : [])]
    const faults = asked.map((name) => checkServerIdentity(name, certificate))
    return faults.includes(undefined) ? undefined : faults[0]
  }
  return { ...files, checkServerIdentity: check } as TlsOptions
}

/** Answers to one process are not for another: each has a prefix, and users read only their own. */
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

/** How often it is asked why there is no connection, and for how long each time. */
const faultEveryMs = 1_000
const faultMaxMs = 3_000

/** The client keeps to itself why it fails: one try of our own, beside its own, says it. */
function tellFaults(
  options: ConnectionOptions,
  teller: FaultTeller,
  isUp: () => boolean,
): () => void {
  let trying = false
  const tell = async () => {
    if (trying || isUp()) return
    trying = true
    const once = { reconnect: false, waitOnFirstConnect: false, timeout: faultMaxMs }
    try {
      const connection = await connect({ ...options, ...once })
      await connection.close()
    } catch (error) {
      if (!isUp()) teller.failed(error)
    }
    trying = false
  }
  const first = setTimeout(tell, faultEveryMs / 4)
  const timer = setInterval(tell, faultEveryMs)
  first.unref()
  timer.unref()
  return () => {
    clearTimeout(first)
    clearInterval(timer)
  }
}

async function toNats(
  connection: NatsConnection,
  { url, replicas, telemetryBytesMax }: NatsSettings,
  { name, log, teller }: { name: string; log: Log; teller: FaultTeller },
): Promise<Nats> {
  teller.worked()
  let connected = true
  let breaking = new AbortController()
  void watchStatus(connection, log, (state) => {
    connected = state
    if (connected) {
      breaking = new AbortController()
      teller.worked()
    } else breaking.abort()
  })
  const answers = watchAnswers(connection)
  const manager = await connection.jetstreamManager({ timeout: askMaxMs, checkAPI: false })
  if (url.includes(',')) leaveCutOff(connection, manager, log)
  const inboxPrefix = toInboxPrefix(name)
  return {
    connection,
    jetstream: connection.jetstream({ timeout: 2_000 }),
    manager,
    replicas: replicas ?? null,
    telemetryBytesMax,
    newInbox: () => createInbox(inboxPrefix),
    connected: () => connected && answers() && !connection.isClosed(),
    broken: () => breaking.signal,
    close: async () => {
      // A drain needs the server; without it closing is all that can be done.
      if (connected && !connection.isClosed()) await connection.drain()
      else await connection.close()
    },
  }
}

/**
 * A request to a broker that broke under it is never answered: it must end well within the five
 * seconds in which a service is ready again.
 */
const askMaxMs = 3_000

/** A server that is silent for this long is away, though its connection stands. */
const silentMaxMs = 2_000
const askEveryMs = 1_000

/** @returns whether the server has answered lately: one that hangs leaves its connections open */
function watchAnswers(connection: NatsConnection): () => boolean {
  let askedMs: number | null = null
  const timer = setInterval(() => {
    askedMs ??= performance.now()
    const answered = () => {
      askedMs = null
    }
    // A connection that broke is known by its status; the next one is asked anew.
    connection.flush().then(answered, answered)
  }, askEveryMs)
  timer.unref()
  void connection.closed().then(() => clearInterval(timer))
  return () => askedMs === null || performance.now() - askedMs < silentMaxMs
}

/** How often a server of several is asked for what only its cluster can tell. */
const clusterAskEveryMs = 2_000
/** So many times in a row without an answer it is cut off: an election takes less. */
const clusterSilencesMax = 2

/**
 * Leaves a server that is cut off from its cluster for another of the list: it keeps its clients,
 * answers their pings and takes nothing.
 */
function leaveCutOff(connection: NatsConnection, manager: JetStreamManager, log: Log): void {
  let silences = 0
  let asking = false
  const ask = async () => {
    try {
      await manager.getAccountInfo()
      silences = 0
    } catch {
      silences++
    }
    if (silences < clusterSilencesMax || connection.isClosed()) return
    silences = 0
    log.warn({ server: connection.getServer() }, 'NATS is cut off from its cluster; trying another')
    // One that is draining stays where it is.
    await connection.reconnect().catch(() => undefined)
  }
  const timer = setInterval(async () => {
    if (asking) return
    asking = true
    await ask()
    asking = false
  }, clusterAskEveryMs)
  timer.unref()
  void connection.closed().then(() => clearInterval(timer))
}

/** Subjects in the log of those that a user may not use. */
const refusedSubjectsMax = 100

async function watchStatus(
  connection: NatsConnection,
  log: Log,
  set: (connected: boolean) => void,
): Promise<void> {
  const refused = new Set<string>()
  for await (const status of connection.status()) {
    const { permissionContext } = status
    if (permissionContext !== undefined && refused.size < refusedSubjectsMax) {
      const { operation, subject } = permissionContext
      // Once each: what is refused is asked for again and again.
      if (!refused.has(subject))
        log.warn({ operation, subject }, 'NATS refuses this user a subject')
      refused.add(subject)
    }
    if (status.type === Events.Disconnect) {
      set(false)
      log.warn('the connection to NATS is down')
    } else if (status.type === Events.Reconnect) {
      set(true)
      log.info('the connection to NATS is up again')
    }
  }
}
