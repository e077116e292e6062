/**
 * Connects to a webhook URL and enforces the address policy: every address that the resolver
 * returns is checked, only checked addresses are dialled, and the address of the connected socket
 * is checked again before any byte, TLS included, is written to it.
 */
import net from 'node:net'
import { networkInterfaces } from 'node:os'
import tls from 'node:tls'
import { webhookConnectTimeoutMs } from '#shared/core/base/limits/deliveries.ts'
import {
  checkWebhookUrl,
  isRefusedAddress,
  mayBePrivate,
  toIpLiteral,
  unwrapNat64,
  type WebhookRules,
} from '#shared/core/deliveries/outbound-address.ts'
import { OutboundError, type OutboundErrorKind } from './outbound-error.ts'
import { type Resolve, resolveLocally, resolvePublicly } from './resolve.ts'

export type ConnectOptions = {
  /** For names under public rules; DNS by default. */
  resolve?: Resolve
  /** PEM certificates to trust instead of Node's. */
  trustedCertificates?: string
  connectTimeoutMs?: number
}

type ConnectedSocket = { socket: net.Socket; address: string }

/** Addresses of one name to try in sequence, within one time limit. */
const addressesTriedMax = 4

/**
 * Checks a webhook URL before it is saved: its text and every address that its name resolves to
 * now. It makes no connection. Each attempt checks again, because names change.
 * @returns the URL to store, or why it is refused
 */
export async function checkWebhookTarget(
  text: string,
  rules: WebhookRules,
  options: ConnectOptions = {},
): Promise<{ ok: true; url: string } | { ok: false; why: string }> {
  const verdict = checkWebhookUrl(text, rules)
  if (!verdict.ok) return verdict
  try {
    await findAddresses(new URL(verdict.url), rules, options, AbortSignal.timeout(limitOf(options)))
    return verdict
  } catch (error) {
    if (error instanceof OutboundError) return { ok: false, why: error.message }
    throw error
  }
}

const limitOf = (options: ConnectOptions) => options.connectTimeoutMs ?? webhookConnectTimeoutMs

/**
 * Connects to a URL's host within 5 s, name look-up and TLS included.
 * @param signal ends it with the signal's reason
 * @throws OutboundError
 */
export async function connect(
  url: URL,
  rules: WebhookRules,
  options: ConnectOptions,
  signal: AbortSignal,
): Promise<ConnectedSocket> {
  const limitMs = limitOf(options)
  const limit = new AbortController()
  const giveUp = () => limit.abort(signal.reason)
  const timer = setTimeout(() => limit.abort(new ConnectLimit(limitMs)), limitMs)
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    signal.throwIfAborted()
    const addresses = await findAddresses(url, rules, options, limit.signal)
    return await connectToOne({ url, rules, options, addresses, limitMs, signal: limit.signal })
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
  }
}

/** The abort reason of the limit. The step that it interrupts turns it into its kind of error. */
class ConnectLimit extends Error {
  constructor(limitMs: number) {
    super(`no connection within ${limitMs} ms`)
    this.name = 'ConnectLimit'
  }
}

/** @throws OutboundError when the name has no address, or one that the policy refuses */
async function findAddresses(
  url: URL,
  rules: WebhookRules,
  options: ConnectOptions,
  signal: AbortSignal,
): Promise<string[]> {
  const literal = toIpLiteral(url.hostname)
  const resolve = options.resolve ?? (mayBePrivate(rules) ? resolveLocally : resolvePublicly)
  const addresses =
    literal === null ? await orAborted('dns', resolve(url.hostname, signal), signal) : [literal]
  if (addresses.length === 0) {
    throw new OutboundError('dns', `the name ${url.hostname} has no address`)
  }
  // One refused address refuses the name: otherwise a mixed answer could be retried until only the
  // refused address is left.
  for (const address of addresses) requireAllowed(address, rules)
  return addresses
}

function requireAllowed(address: string, rules: WebhookRules): void {
  if (isRefusedAddress(address, rules)) {
    throw new OutboundError('refused_address', `the address ${address} is not public`, address)
  }
  if (!mayBePrivate(rules) && isOwnAddress(address)) {
    throw new OutboundError('refused_address', `the address ${address} is our own`, address)
  }
}

/** Whether the address is one of this machine's: its services are not for webhooks. */
function isOwnAddress(address: string): boolean {
  const reached = unwrapNat64(address)
  return Object.values(networkInterfaces()).some((entries) =>
    entries?.some((entry) => entry.address === reached),
  )
}

type Connecting = {
  url: URL
  rules: WebhookRules
  options: ConnectOptions
  addresses: string[]
  limitMs: number
  signal: AbortSignal
}

/** Tries the addresses in sequence; only a failed TCP connection leads to the next one. */
async function connectToOne(connecting: Connecting): Promise<ConnectedSocket> {
  const { url, rules, options, signal } = connecting
  const addresses = interleave(connecting.addresses).slice(0, addressesTriedMax)
  const shareMs = Math.ceil(connecting.limitMs / addresses.length)
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  let failure: unknown = new OutboundError('connect', 'there is no address to connect to')
  for (const address of addresses) {
    try {
      const socket = await connectTcp({ address, port, shareMs, signal })
      try {
        requireAllowed(socket.remoteAddress ?? 'nowhere', rules)
        if (url.protocol === 'http:') return { socket, address }
        return { socket: await startTls(socket, url, options, signal), address }
      } catch (error) {
        socket.destroy()
        throw withAddress(error, address)
      }
    } catch (error) {
      failure = error
      if (!(error instanceof OutboundError && error.kind === 'connect') || signal.aborted) break
    }
  }
  throw failure
}

/**
 * Alternates IPv4 and IPv6, IPv4 first: if one family does not work, the second try is the other.
 */
function interleave(addresses: readonly string[]): string[] {
  const v4 = addresses.filter((address) => net.isIPv4(address))
  const v6 = addresses.filter((address) => !net.isIPv4(address))
  const pairs = Math.max(v4.length, v6.length)
  return Array.from({ length: pairs }, (_, i) => [v4[i], v6[i]])
    .flat()
    .filter((address) => address !== undefined)
}

function withAddress(error: unknown, address: string): unknown {
  if (!(error instanceof OutboundError) || error.address !== null) return error
  return new OutboundError(error.kind, error.message, address)
}

/**
 * A shared read buffer; every read is copied out at once. By default Node allocates 64 KiB per
 * read: 200 receivers that send too much then cost 50 MB before the first connection is closed.
 */
const readBuffer = Buffer.alloc(4 * 1024)

function connectTcp(to: {
  address: string
  port: number
  shareMs: number
  signal: AbortSignal
}): Promise<net.Socket> {
  // An address, never a name: there is no look-up between the check and the connection.
  const socket: net.Socket = net.connect({
    host: to.address,
    port: to.port,
    noDelay: true,
    keepAlive: true,
    timeout: to.shareMs,
    onread: {
      buffer: readBuffer,
      callback: (bytes, buffer) => socket.push(Buffer.from(buffer.subarray(0, bytes))),
    },
  })
  return orAborted(
    'connect',
    new Promise((resolve, reject) => {
      const onTimeout = () => socket.destroy(new Error(`no connection in ${to.shareMs} ms`))
      socket.once('timeout', onTimeout)
      socket.once('connect', () => {
        socket.setTimeout(0)
        // The agent sets an idle time-out later: it must not end a request that waits for an
        // answer.
        socket.off('timeout', onTimeout)
        resolve(socket)
      })
      socket.on('error', (error: NodeJS.ErrnoException) => {
        const why = error.code ?? error.message
        reject(new OutboundError('connect', `no connection to ${to.address}: ${why}`, to.address))
      })
    }),
    to.signal,
    () => socket.destroy(),
  )
}

function startTls(
  socket: net.Socket,
  url: URL,
  options: ConnectOptions,
  signal: AbortSignal,
): Promise<net.Socket> {
  const literal = toIpLiteral(url.hostname)
  const secured = tls.connect({
    socket,

    host: literal ?? url.hostname,
    // A server name is a name (RFC 6066); an address is checked against the certificate's own.
    ...(literal === null ? { servername: url.hostname.replace(/\.$/, '') } : {}),
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: true,
    ...(options.trustedCertificates === undefined ? {} : { ca: options.trustedCertificates }),
  })
  return orAborted(
    'tls',
    new Promise((resolve, reject) => {
      secured.once('secureConnect', () => resolve(secured))
      secured.on('error', (error: NodeJS.ErrnoException) => {
        reject(new OutboundError('tls', `TLS failed: ${error.code ?? error.message}`))
      })
    }),
    signal,
    () => secured.destroy(),
  )
}

/** Waits for a step or for the signal, which abandons the step with an error of its kind. */
function orAborted<T>(
  kind: OutboundErrorKind,
  step: Promise<T>,
  signal: AbortSignal,
  abandon: () => void = () => undefined,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      const reason: unknown = signal.reason
      reject(
        reason instanceof OutboundError
          ? reason
          : new OutboundError(kind, (reason as Error).message),
      )
      abandon()
    }
    if (signal.aborted) {
      step.catch(() => undefined)
      onAbort()
      return
    }
    signal.addEventListener('abort', onAbort, { once: true })
    const settle = () => signal.removeEventListener('abort', onAbort)
    step.then(resolve, reject).finally(settle)
  })
}
