/**
 * Limits the connections of a public server. A stranger is a connection without a valid signature,
 * key or token so far. Strangers are closed after a few seconds and limited per source address.
 * When the server is full, the oldest stranger that waits for no response makes room for a new
 * client. Connections of trusted proxies are never strangers.
 */
import type { Server, Socket } from 'node:net'
import {
  connectionsMax,
  connectionsPerSourceMax,
  unauthenticatedMs,
  unauthenticatedPerSourceMax,
} from '#shared/core/base/limits/http.ts'
import { parseAddress } from '#shared/core/deliveries/outbound-address.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'

export type ConnectionGuardOptions = {
  /** Whether an address is that of a proxy that many clients come through. */
  trusts: (address: string) => boolean
  /** The present state of a connection. */
  stateOf: (socket: Socket) => 'idle' | 'receiving' | 'answering'
  metrics: Metrics
  /** Other than the service's own bound, for tests. */
  connectionsMax?: number
}

export type ConnectionGuard = {
  /** Whether a stranger's time is over: its connection ends with the next response. */
  isOver: (socket: Socket) => boolean
}

type Connection = {
  socket: Socket
  /** Null for a trusted proxy. */
  source: Source | null
  openedMs: number
}

type Source = {
  key: string
  open: number
  /** The oldest first. */
  strangers: Set<Connection>
}

/** Why a connection was cut. */
type Reason =
  /** A stranger's time was over. */
  | 'stranger'
  /** A stranger was closed to make room for another client. */
  | 'displaced'
  /** The source address is at its limit. */
  | 'source'
  /** The server is full, and no stranger could make room. */
  | 'full'

const sweepMs = 500
/** A stranger that is still sending gets a response with `Connection: close` first. */
const graceMs = 1_000
/** Strangers to check for one that waits for no response. */
const displaceCandidatesMax = 64

/** Callbacks that end the stranger state, by socket. */
const strangersOf = new WeakMap<Socket, () => void>()

/** Marks a connection as verified: it has shown a valid signature, key or token. */
export function proveConnection(socket: Socket | null): void {
  if (socket !== null) strangersOf.get(socket)?.()
}

/** Installs the guard; it ends with the server. */
export function guardConnections(server: Server, options: ConnectionGuardOptions): ConnectionGuard {
  const { trusts, stateOf, metrics } = options
  const max = options.connectionsMax ?? connectionsMax
  const strangers = new Set<Connection>()
  const byStranger = new WeakMap<Socket, Connection>()
  const sources = new Map<string, Source>()
  let open = 0
  const cuts = metrics.counter<'reason'>(
    'di_http_connections_cut_total',
    'Connections of the public listener that were cut, by reason',
    ['reason'],
  )
  metrics.gauge<'kind'>('di_http_connections', 'Open connections of the public listener', {
    labels: ['kind'],
    collect() {
      this.set({ kind: 'stranger' }, strangers.size)
      this.set({ kind: 'verified' }, open - strangers.size)
    },
  })

  const prove = (connection: Connection): void => {
    strangers.delete(connection)
    connection.source?.strangers.delete(connection)
    byStranger.delete(connection.socket)
    strangersOf.delete(connection.socket)
  }
  const cut = (socket: Socket, reason: Reason): void => {
    cuts.inc({ reason })
    socket.destroy()
  }
  /** Cuts the oldest stranger that waits for no response. @returns whether there was one */
  const displace = (from: ReadonlySet<Connection>): boolean => {
    let looked = 0
    for (const connection of from) {
      if (looked++ === displaceCandidatesMax) return false
      if (stateOf(connection.socket) === 'answering') continue
      forget(connection)
      cut(connection.socket, 'displaced')
      return true
    }
    return false
  }
  const forgotten = new WeakSet<Connection>()
  const forget = (connection: Connection): void => {
    if (forgotten.has(connection)) return
    forgotten.add(connection)
    prove(connection)
    open--
    const { source } = connection
    if (source === null) return
    source.open--
    if (source.open === 0) sources.delete(source.key)
  }
  /** @returns why a new connection of this source is refused, or null */
  const makeRoom = (source: Source | null): Reason | null => {
    if (source !== null) {
      if (source.open >= connectionsPerSourceMax) return 'source'
      const crowded = source.strangers.size >= unauthenticatedPerSourceMax
      if (crowded && !displace(source.strangers)) return 'source'
    }
    return open >= max && !displace(strangers) ? 'full' : null
  }

  // One more than the limit: the source of the new connection decides who is displaced.
  server.maxConnections = max + 1
  server.on('drop', () => cuts.inc({ reason: 'full' }))
  server.on('connection', (socket) => {
    const address = socket.remoteAddress
    // The client has already disconnected.
    if (address === undefined) return void socket.destroy()
    const key = trusts(address) ? null : toSourceKey(address)
    const source =
      key === null ? null : (sources.get(key) ?? { key, open: 0, strangers: new Set<Connection>() })
    const refusal = makeRoom(source)
    if (refusal !== null) return cut(socket, refusal)
    const connection: Connection = { socket, source, openedMs: performance.now() }
    open++
    socket.once('close', () => forget(connection))
    if (source === null) return
    sources.set(source.key, source)
    source.open++
    source.strangers.add(connection)
    strangers.add(connection)
    byStranger.set(socket, connection)
    strangersOf.set(socket, () => prove(connection))
  })

  const isOver = ({ openedMs }: Connection, moreMs = 0) =>
    performance.now() - openedMs >= unauthenticatedMs + moreMs
  const sweep = setInterval(() => {
    for (const connection of strangers) {
      if (!isOver(connection, graceMs)) break
      if (stateOf(connection.socket) === 'idle') cut(connection.socket, 'stranger')
    }
  }, sweepMs)
  sweep.unref()
  server.on('close', () => clearInterval(sweep))
  return {
    isOver: (socket) => {
      const connection = byStranger.get(socket)
      return connection !== undefined && isOver(connection)
    },
  }
}

/** One client's address: IPv4 in full, of IPv6 the network prefix of 64 bits. */
export function toSourceKey(address: string): string {
  const bytes = parseAddress(address.split('%', 1)[0]!)
  if (bytes === null) return address
  const mapped = bytes.length === 16 && bytes.slice(0, 12).join() === mappedPrefix
  if (mapped) return bytes.slice(12).join('.')
  return bytes.length === 4 ? bytes.join('.') : Buffer.from(bytes.slice(0, 8)).toString('hex')
}

/** `::ffff:0:0/96`, which holds IPv4. */
const mappedPrefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255].join()
