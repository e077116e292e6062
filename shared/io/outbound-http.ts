/**
 * Webhook requests over pooled keep-alive connections, safe against whatever answers: no redirects,
 * no decompression, one time limit from the caller's signal, at most 64 KiB read of an answer. A
 * socket is lent to one request at a time and only ever serves the tenant, origin and address rules
 * that it was dialled for, so neither a changed URL nor another tenant can inherit it.
 */
import type { Socket } from 'node:net'
import { Client, type Dispatcher } from 'undici'
import { webhookAnswerBytesMax, webhookAnswerKeptBytesMax } from '#shared/core/limits.ts'
import type { WebhookRules } from '#shared/core/outbound-address.ts'
import { type DialOptions, dial, OutboundError } from './outbound-dial.ts'
import {
  AnswerTooLongError,
  answerHeadBytesMax,
  boundReading,
  type ReadingBounds,
} from './outbound-reading.ts'

export {
  checkWebhookTarget,
  createDnsResolve,
  OutboundError,
  type OutboundErrorKind,
  type Resolve,
} from './outbound-dial.ts'

export type OutboundTarget = {
  url: URL
  rules: WebhookRules
  /** Whose connection it is: connections are never shared between owners. */
  owner: string
}

export type OutboundAnswer = {
  status: number
  /** The `Retry-After` header, as sent. */
  retryAfter: string | undefined
  /** The first 4 KiB of the body, undecoded. */
  body: Buffer
  /** The address that answered. */
  address: string
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
   * @throws StaleConnectionError when the connection had ended before anything was sent
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

/** An idle connection turned out to be closed; nothing was sent, so another one may be used. */
export class StaleConnectionError extends Error {
  constructor() {
    super('the connection had ended before the request')
    this.name = 'StaleConnectionError'
  }
}

export type Outbound = {
  /**
   * An idle connection of this target, else a new one.
   * @throws OutboundError
   */
  connect: (target: OutboundTarget, signal: AbortSignal) => Promise<OutboundConnection>
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

type Pooled = {
  client: Client
  socket: Socket
  address: string
  key: string
  bornAtMs: number
  reading: ReadingBounds
  /** A connection without a request behind it has no idle timer yet. */
  used: boolean
}

/** One outbound side of a process. */
export function createOutbound(options: OutboundOptions = {}): Outbound {
  const monotonicMs = options.monotonicMs ?? (() => performance.now())
  const ageMaxMs = options.ageMaxMs ?? 60_000
  const idle = new Map<string, Pooled[]>()
  let closed = false

  const takeIdle = (key: string): Pooled | null => {
    const waiting = idle.get(key) ?? []
    let found: Pooled | null = null
    // The youngest first: the others may then grow old and go.
    while (waiting.length > 0 && found === null) {
      const last = waiting.pop()!
      if (!last.socket.destroyed && monotonicMs() - last.bornAtMs < ageMaxMs) found = last
      else discard(last)
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
    if (closed || pooled.socket.destroyed) {
      discard(pooled)
      return
    }
    const waiting = idle.get(pooled.key)
    if (waiting === undefined) idle.set(pooled.key, [pooled])
    else waiting.push(pooled)
  }
  const open = async (target: OutboundTarget, key: string, signal: AbortSignal) => {
    const { socket, address } = await dial(target.url, target.rules, options, signal)
    const pooled: Pooled = {
      client: toClient(socket, target.url, options.idleMs ?? 4_000),
      socket,
      address,
      key,
      bornAtMs: monotonicMs(),
      reading: boundReading(socket),
      used: false,
    }
    pooled.client.on('disconnect', () => {
      forget(pooled)
      discard(pooled)
    })
    return pooled
  }

  return {
    connect: async (target, signal) => {
      const key = toKey(target)
      const pooled = takeIdle(key) ?? (await open(target, key, signal))
      const path = target.url.pathname + target.url.search
      return {
        address: pooled.address,
        post: async (body, headers, postSignal) => {
          try {
            return await post(pooled, { path, body, headers }, postSignal)
          } finally {
            giveBack(pooled)
          }
        },
        release: () => (pooled.used ? giveBack(pooled) : discard(pooled)),
      }
    },
    idleCount: () => [...idle.values()].reduce((sum, waiting) => sum + waiting.length, 0),
    close: () => {
      closed = true
      for (const pooled of [...idle.values()].flat()) discard(pooled)
      idle.clear()
    },
  }
}

function toKey({ url, rules, owner }: OutboundTarget): string {
  return JSON.stringify([owner, rules.environment, rules.allowPrivate, url.origin])
}

function discard({ client, socket }: Pooled): void {
  socket.destroy()
  if (!client.destroyed) void client.destroy()
}

/** An HTTP/1.1 client around one dialled socket. It never connects by itself: that is `dial`'s. */
function toClient(socket: Socket, url: URL, idleMs: number): Client {
  let dialled: Socket | null = socket
  return new Client(url.origin, {
    connect: (_options, callback) => {
      const first = dialled
      dialled = null
      // The client does not expect its connector to be done before it returns.
      queueMicrotask(() => {
        if (first !== null) callback(null, first)
        else callback(new StaleConnectionError(), null)
      })
    },
    allowH2: false,
    pipelining: 1,
    maxHeaderSize: answerHeadBytesMax,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: 2 * idleMs,
    // The caller's signal is the one limit: undici's own are idle timers that a slow drip resets.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

/** Answers of 1xx before the real one; `102 Processing` is the only one that repeats. */
const informationalMax = 16

type Posted = { path: string; body: Uint8Array; headers: Record<string, string> }

async function post(pooled: Pooled, posted: Posted, signal: AbortSignal): Promise<OutboundAnswer> {
  if (pooled.socket.destroyed && !signal.aborted) throw new StaleConnectionError()
  pooled.used = true
  pooled.reading.begin()
  return await new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined
    let head: { status: number; retryAfter: string | undefined } | undefined
    const kept: Buffer[] = []
    let keptBytes = 0
    let readBytes = 0
    let readBytesMax = webhookAnswerBytesMax
    let informational = 0
    const onAbort = () => {
      if (controller === undefined) pooled.socket.destroy(signal.reason)
      else controller.abort(signal.reason)
    }
    const end = (error?: Error) => {
      signal.removeEventListener('abort', onAbort)
      // An answer that was cut short, by us or by them, leaves a socket that nobody can use.
      if (error !== undefined) pooled.socket.destroy()
      if (head !== undefined)
        resolve({ ...head, body: Buffer.concat(kept), address: pooled.address })
      else reject(toOutboundError(error ?? new Error('closed'), signal, pooled.address))
    }
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: (started) => {
        controller = started
        if (signal.aborted) onAbort()
      },
      onResponseStart: (started, status, headers) => {
        if (status < 200) {
          informational += 1
          if (informational > informationalMax) started.abort(new AnswerTooLongError())
          return
        }
        pooled.reading.headArrived()
        // A body that says that it is too long is not worth reading further than it is kept.
        if (Number(headers['content-length']) > webhookAnswerBytesMax) {
          readBytesMax = webhookAnswerKeptBytesMax - 1
        }
        const retryAfter = headers['retry-after']
        head = { status, retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter }
      },
      onResponseData: (_controller, chunk) => {
        const wanted = Math.min(chunk.length, webhookAnswerKeptBytesMax - keptBytes)
        // Copied: the chunk is a view of a buffer that the whole read shares.
        if (wanted > 0) kept.push(Buffer.from(chunk.subarray(0, wanted)))
        keptBytes += wanted
        readBytes += chunk.length
        pooled.reading.bodyArrived(chunk)
        if (readBytes > readBytesMax) controller?.abort(new AnswerTooLongError())
      },
      onResponseEnd: () => end(),
      onResponseError: (_controller, error) => end(error),
    }
    signal.addEventListener('abort', onAbort, { once: true })
    const { path, body, headers } = posted
    pooled.client.dispatch({ path, method: 'POST', body, headers }, handler)
  })
}

function toOutboundError(error: Error, signal: AbortSignal, address: string): Error {
  if (error instanceof StaleConnectionError && !signal.aborted) return error
  const reason: unknown = signal.aborted ? signal.reason : error
  if (reason instanceof OutboundError)
    return new OutboundError(reason.kind, reason.message, address)
  if (signal.aborted) return new OutboundError('timeout', 'no answer in time', address)
  const code = (error as NodeJS.ErrnoException).code ?? error.name
  if (error instanceof AnswerTooLongError || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new OutboundError('protocol', 'the head of the answer is too large', address)
  }
  const unreadable =
    error.name === 'HTTPParserError' || /^bad (response|upgrade)$/.test(error.message)
  return unreadable
    ? new OutboundError('protocol', `the answer is not HTTP/1.1: ${code}`, address)
    : new OutboundError('reset', `the connection ended without an answer: ${code}`, address)
}
