/**
 * The connection to NATS, and nothing else: credentials from the URL, endless reconnection, and a
 * flag that says whether the server answers right now. Everything that knows the `nats` package
 * stays in this folder.
 */
import {
  connect,
  Events,
  type JetStreamClient,
  type JetStreamManager,
  type NatsConnection,
} from 'nats'
import type { Log } from './log.ts'

export type Nats = {
  connection: NatsConnection
  jetstream: JetStreamClient
  manager: JetStreamManager
  /** On how many servers streams and buckets are kept; null leaves it to who made them. */
  replicas: number | null
  /** `TELEMETRY_STREAM_MAX_BYTES`; undefined leaves the stream's room as it is. */
  telemetryBytesMax?: number | undefined
  /** Whether the connection is up at this moment, and the server answers over it. */
  connected: () => boolean
  /** Aborts as the connection breaks that is up now; aborted already while there is none. */
  broken: () => AbortSignal
  /** Flushes, drains subscriptions and closes. */
  close: () => Promise<void>
}

/**
 * Connects, waiting for the server as long as it takes to appear.
 * @param url `nats://user:password@host:port`, several separated by commas: any of them will do,
 *   and the first one's credentials are for all
 * @param name shown in the server's connection list
 * @param replicas `NATS_REPLICAS`
 */
export async function connectNats(
  url: string,
  name: string,
  log: Log,
  replicas?: number,
): Promise<Nats> {
  const servers = url
    .split(',')
    .map((text) => new URL(text.includes('://') ? text : `nats://${text}`))
  const first = servers[0]
  const user = decodeURIComponent(first?.username ?? '')
  const pass = decodeURIComponent(first?.password ?? '')
  const connection = await connect({
    servers: servers.map((server) => server.host),
    name,
    ...(user === '' ? {} : pass === '' ? { token: user } : { user, pass }),
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
  })
  let connected = true
  let breaking = new AbortController()
  void watchStatus(connection, log, (state) => {
    connected = state
    if (connected) breaking = new AbortController()
    else breaking.abort()
  })
  const answers = watchAnswers(connection)
  const manager = await connection.jetstreamManager({ timeout: askMaxMs, checkAPI: false })
  if (servers.length > 1) leaveCutOff(connection, manager, log)
  return {
    connection,
    jetstream: connection.jetstream({ timeout: 2_000 }),
    manager,
    replicas: replicas ?? null,
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

async function watchStatus(
  connection: NatsConnection,
  log: Log,
  set: (connected: boolean) => void,
): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type === Events.Disconnect) {
      set(false)
      log.warn('the connection to NATS is down')
    } else if (status.type === Events.Reconnect) {
      set(true)
      log.info('the connection to NATS is up again')
    }
  }
}
