/**
 * Webhook requests over pooled keep-alive connections, safe against whatever answers: no redirects,
 * no decompression, one time limit from the caller's signal, bounds on what is read. A socket is
 * lent to one request at a time and only ever serves the tenant, origin and address rules that it
 * was dialled for, so neither a changed URL nor another tenant can inherit it.
 */
import type { WebhookRules } from '#shared/core/deliveries/outbound-address.ts'
import { type DialOptions, dial } from './outbound-dial.ts'
import {
  beginExchange,
  type Connection,
  createConnection,
  type OutboundAnswer,
} from './outbound-exchange.ts'

export {
  checkWebhookTarget,
  createDnsResolve,
  OutboundError,
  type OutboundErrorKind,
  type Resolve,
} from './outbound-dial.ts'
export { type OutboundAnswer, StaleConnectionError } from './outbound-exchange.ts'

export type OutboundTarget = {
  url: URL
  rules: WebhookRules
  /** Whose connection it is: connections are never shared between owners. */
  owner: string
}

/** A connected socket, lent to one request. */
export type OutboundConnection = {
  /** The address it is connected to. */
  address: string
  /**
   * Posts, reads the answer and gives the connection back. An answer whose status has arrived
   * counts, however its body ends.
   * @param headers names in lower case
   * @param signal its abort ends the request with the signal's reason
   * @throws StaleConnectionError when a connection that was used before ended without an answer
   * @throws OutboundError when no status arrived
   */
  post: (
    body: Uint8Array,
    headers: Record<string, string>,
    signal: AbortSignal,
  ) => Promise<OutboundAnswer>
  /** Gives the connection back unused. */
  release: () => void
}

export type Outbound = {
  /**
   * An idle connection of this target, else a new one.
   * @param fresh asks for a new one, whatever is idle
   * @throws OutboundError
   */
  connect: (
    target: OutboundTarget,
    signal: AbortSignal,
    fresh?: boolean,
  ) => Promise<OutboundConnection>
  /** Connections that wait to be used again. */
  idleCount: () => number
  /** Closes idle connections; busy ones close when they are given back. */
  close: () => void
}

export type OutboundOptions = DialOptions & {
  /** How long a connection is kept unused; 4 s, below what servers keep (5 s and more). */
  idleMs?: number
  /**
   * How old a connection may be when it is used again: then its name is resolved and judged anew.
   */
  ageMaxMs?: number
  monotonicMs?: () => number
}

type Pooled = Connection & { key: string; bornAtMs: number }

/** One outbound side of a process. */
export function createOutbound(options: OutboundOptions = {}): Outbound {
  const monotonicMs = options.monotonicMs ?? (() => performance.now())
  const { ageMaxMs = 60_000, idleMs = 4_000 } = options
  const idle = new Map<string, Pooled[]>()
  let closed = false

  const takeIdle = (key: string): Pooled | null => {
    const waiting = idle.get(key) ?? []
    let found: Pooled | null = null
    // The youngest first: the others may then grow old and go.
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
  const giveBack = (pooled: Pooled): void => {
    if (closed) pooled.socket.destroy()
    if (pooled.socket.destroyed) return
    const waiting = idle.get(pooled.key)
    if (waiting === undefined) idle.set(pooled.key, [pooled])
    else waiting.push(pooled)
  }
  const open = async (target: OutboundTarget, key: string, signal: AbortSignal) => {
    const { socket, address } = await dial(target.url, target.rules, options, signal)
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
          giveBack(pooled)
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
