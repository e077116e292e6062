/**
 * The HTTP client for webhooks, safe against hostile receivers: no redirects, no decompression, one
 * time limit by the caller's signal, bounded reads. It pools keep-alive connections by tenant,
 * origin and address rules, so neither another tenant nor a changed URL can reuse a connection.
 * This file is the entry of the folder: `resolve`, `connect`, then `exchange`.
 */
import type { WebhookRules } from '#shared/core/deliveries/outbound-address.ts'
import { type ConnectOptions, connect } from './connect.ts'
import {
  beginExchange,
  type Connection,
  createConnection,
  type OutboundAnswer,
} from './exchange.ts'

export { checkWebhookTarget } from './connect.ts'
export { type OutboundAnswer, StaleConnectionError } from './exchange.ts'
export { OutboundError } from './outbound-error.ts'
export { createDnsResolve, type Resolve } from './resolve.ts'

export type OutboundTarget = {
  url: URL
  rules: WebhookRules
  /** Connections are never shared between owners. */
  owner: string
}

/** A connection leased to one request. */
export type OutboundConnection = {
  /** The remote address. */
  address: string
  /**
   * Posts, reads the response and returns the connection to the pool. A response counts once its
   * status has arrived, however its body ends.
   * @param headers names in lower case
   * @param signal its abort ends the request with the signal's reason
   * @throws StaleConnectionError when a reused connection ended without a response
   * @throws OutboundError when no status arrived
   */
  post: (
    body: Uint8Array,
    headers: Record<string, string>,
    signal: AbortSignal,
  ) => Promise<OutboundAnswer>
  /** Closes the connection unused. */
  release: () => void
}

export type Outbound = {
  /**
   * Leases an idle connection of this target, or opens one.
   * @param fresh always opens one
   * @throws OutboundError
   */
  connect: (
    target: OutboundTarget,
    signal: AbortSignal,
    fresh?: boolean,
  ) => Promise<OutboundConnection>
  /** Idle connections in the pool. */
  idleCount: () => number
  /** Closes idle connections; busy ones close when their request ends. */
  close: () => void
}

export type OutboundOptions = ConnectOptions & {
  /** How long a connection may be idle; 4 s, because servers close theirs after 5 s or more. */
  idleMs?: number
  /**
   * The age at which a connection is not reused, so that its name is resolved and checked again.
   */
  ageMaxMs?: number
  monotonicMs?: () => number
}

type Pooled = Connection & { key: string; bornAtMs: number }

/** The webhook client of a process. */
export function createOutbound(options: OutboundOptions = {}): Outbound {
  const monotonicMs = options.monotonicMs ?? (() => performance.now())
  const { ageMaxMs = 60_000, idleMs = 4_000 } = options
  const idle = new Map<string, Pooled[]>()
  let closed = false

  const takeIdle = (key: string): Pooled | null => {
    const waiting = idle.get(key) ?? []
    let found: Pooled | null = null
    // The newest first, so that the others can expire.
    while (waiting.length > 0 && found === null) {
      const last = waiting.pop()!
      if (!last.socket.destroyed && monotonicMs() - last.bornAtMs < ageMaxMs) found = last
      else last.socket.destroy()
    }
    if (waiting.length === 0) idle.delete(key)
    return found
  }
  const forget = (pooled: Pooled): void => {
    const rest = idle.get(pooled.key)?.filter((other) => other !== pooled) ?? []
    if (rest.length === 0) idle.delete(pooled.key)
    else idle.set(pooled.key, rest)
  }
  const returnToPool = (pooled: Pooled): void => {
    if (closed) pooled.socket.destroy()
    if (pooled.socket.destroyed) return
    const waiting = idle.get(pooled.key)
    if (waiting === undefined) idle.set(pooled.key, [pooled])
    else waiting.push(pooled)
  }
  const open = async (target: OutboundTarget, key: string, signal: AbortSignal) => {
    const { socket, address } = await connect(target.url, target.rules, options, signal)
    const connection = createConnection(socket, address, idleMs)
    const pooled: Pooled = Object.assign(connection, { key, bornAtMs: monotonicMs() })
    socket.on('close', () => forget(pooled))
    return pooled
  }

  return {
    connect: async (target, signal, fresh = false) => {
      const key = toKey(target)
      const found = fresh ? null : takeIdle(key)
      const pooled = found ?? (await open(target, key, signal))
      const exchange = await beginExchange(pooled, target.url)
      return {
        address: pooled.address,
        post: async (body, headers, postSignal) => {
          const answer = await exchange.post(body, headers, postSignal)
          returnToPool(pooled)
          return answer
        },
        release: exchange.abandon,
      }
    },
    idleCount: () => [...idle.values()].reduce((sum, waiting) => sum + waiting.length, 0),
    close: () => {
      closed = true
      for (const { socket } of [...idle.values()].flat()) socket.destroy()
      idle.clear()
    },
  }
}

function toKey({ url, rules, owner }: OutboundTarget): string {
  return JSON.stringify([owner, rules.environment, rules.allowPrivate, url.origin])
}
