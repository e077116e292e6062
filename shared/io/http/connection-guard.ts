/**
 * Limits the connections of a public server. A stranger is a connection without a valid signature,
 * key or token so far. Strangers are closed after a few seconds and limited per source address.
 * When the server is full, the oldest stranger that waits for no response is closed for a new
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

type ConnectionGuardOptions = {
  /** Whether an address is that of a trusted proxy. */
  trusts: (address: string) => boolean
  /** The present state of a connection. */
  stateOf: (socket: Socket) => 'idle' | 'receiving' | 'answering'
  metrics: Metrics
  /** Overrides the limit, for tests. */
  connectionsMax?: number
}

type ConnectionGuard = {
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
  /** Oldest first. */
  strangers: Set<Connection>
}

/** Why a connection was closed. */
type CutReason =
  /** A stranger's time was over. */
  | 'stranger'
  /** A stranger was closed for another client. */
  | 'displaced'
  /** The source address is at its limit. */
  | 'source'
  /** The server is full, and no stranger could be closed. */
  | 'full'

type State = ConnectionGuardOptions & {
  max: number
  open: number
  /** Oldest first. */
  strangers: Set<Connection>
  byStranger: WeakMap<Socket, Connection>
  sources: Map<string, Source>
  forgotten: WeakSet<Connection>
  cuts: { inc: (labels: { reason: CutReason }) => void }
}

const sweepMs = 500
/** A stranger that is still sending first gets a response with `Connection: close`. */
const graceMs = 1_000
/** Strangers to check for one that waits for no response. */
const displaceCandidatesMax = 64

/** Functions that end the stranger state, by socket. */
const strangersOf = new WeakMap<Socket, () => void>()

/** Marks a connection as verified: it has sent a valid signature, key or token. */
export function proveConnection(socket: Socket | null): void {
  if (socket !== null) strangersOf.get(socket)?.()
}

/** Installs the guard on a server. It ends with the server. */
export function guardConnections(server: Server, options: ConnectionGuardOptions): ConnectionGuard {
  const state: State = {
    ...options,
    max: options.connectionsMax ?? connectionsMax,
    open: 0,
    strangers: new Set(),
    byStranger: new WeakMap(),
    sources: new Map(),
    forgotten: new WeakSet(),
    cuts: options.metrics.counter<'reason'>(
      'di_http_connections_cut_total',
      'Closed connections of the public listener, by reason',
      ['reason'],
    ),
  }
  addGauge(state)
  // One more than the limit: the source of a new connection decides which stranger is closed.
  server.maxConnections = state.max + 1
  server.on('drop', () => state.cuts.inc({ reason: 'full' }))
  server.on('connection', (socket) => admit(state, socket))
  const sweep = setInterval(() => closeOldStrangers(state), sweepMs)
  sweep.unref()
  server.on('close', () => clearInterval(sweep))
  return {
    isOver: (socket) => {
      const connection = state.byStranger.get(socket)
      return connection !== undefined && isOver(connection)
    },
  }
}

function addGauge(state: State): void {
  state.metrics.gauge<'kind'>('di_http_connections', 'Open connections of the public listener', {
    labels: ['kind'],
    collect() {
      this.set({ kind: 'stranger' }, state.strangers.size)
      this.set({ kind: 'verified' }, state.open - state.strangers.size)
    },
  })
}

function admit(state: State, socket: Socket): void {
  const address = socket.remoteAddress
  // The client has already disconnected.
  if (address === undefined) {
    socket.destroy()
    return
  }
  const source = state.trusts(address) ? null : findSource(state, address)
  const refusal = makeSpace(state, source)
  if (refusal !== null) {
    cut(state, socket, refusal)
    return
  }
  const connection: Connection = { socket, source, openedMs: performance.now() }
  state.open++
  socket.once('close', () => forget(state, connection))
  if (source === null) return
  state.sources.set(source.key, source)
  source.open++
  source.strangers.add(connection)
  state.strangers.add(connection)
  state.byStranger.set(socket, connection)
  strangersOf.set(socket, () => prove(state, connection))
}

/** The source of an address; a new one is not yet in the map. */
function findSource({ sources }: State, address: string): Source {
  const key = toSourceKey(address)
  return sources.get(key) ?? { key, open: 0, strangers: new Set() }
}

/**
 * Closes a stranger if a new connection needs its place.
 * @returns why the new connection is refused, or null
 */
function makeSpace(state: State, source: Source | null): CutReason | null {
  if (source !== null) {
    if (source.open >= connectionsPerSourceMax) return 'source'
    const crowded = source.strangers.size >= unauthenticatedPerSourceMax
    if (crowded && !displace(state, source.strangers)) return 'source'
  }
  return state.open >= state.max && !displace(state, state.strangers) ? 'full' : null
}

/** Closes the oldest stranger that waits for no response. @returns whether there was one */
function displace(state: State, strangers: ReadonlySet<Connection>): boolean {
  let checked = 0
  for (const connection of strangers) {
    if (checked++ === displaceCandidatesMax) return false
    if (state.stateOf(connection.socket) === 'answering') continue
    forget(state, connection)
    cut(state, connection.socket, 'displaced')
    return true
  }
  return false
}

function cut({ cuts }: State, socket: Socket, reason: CutReason): void {
  cuts.inc({ reason })
  socket.destroy()
}

/** Ends the stranger state of a connection. */
function prove({ strangers, byStranger }: State, connection: Connection): void {
  strangers.delete(connection)
  connection.source?.strangers.delete(connection)
  byStranger.delete(connection.socket)
  strangersOf.delete(connection.socket)
}

/** Removes a closed connection from all counts, once. */
function forget(state: State, connection: Connection): void {
  if (state.forgotten.has(connection)) return
  state.forgotten.add(connection)
  prove(state, connection)
  state.open--
  const { source } = connection
  if (source === null) return
  source.open--
  if (source.open === 0) state.sources.delete(source.key)
}

function closeOldStrangers(state: State): void {
  for (const connection of state.strangers) {
    if (!isOver(connection, graceMs)) break
    if (state.stateOf(connection.socket) === 'idle') cut(state, connection.socket, 'stranger')
  }
}

const isOver = ({ openedMs }: Connection, graceMs = 0): boolean =>
  performance.now() - openedMs >= unauthenticatedMs + graceMs

/** One client's address: IPv4 in full, of IPv6 the network prefix of 64 bits. */
export function toSourceKey(address: string): string {
  const bytes = parseAddress(address.split('%', 1)[0]!)
  if (bytes === null) return address
  const mapped = bytes.length === 16 && bytes.slice(0, 12).join() === mappedPrefix
  if (mapped) return bytes.slice(12).join('.')
  return bytes.length === 4 ? bytes.join('.') : Buffer.from(bytes.slice(0, 8)).toString('hex')
}

/** `::ffff:0:0/96`, which contains IPv4. */
const mappedPrefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255].join()
