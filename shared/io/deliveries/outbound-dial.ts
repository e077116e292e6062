/**
 * The way from a webhook URL to a connected socket, and the place where the address policy is
 * enforced: every answer of the resolver is judged, only judged addresses are dialled, and the
 * address of the connected socket is judged again before a byte, TLS included, is written to it.
 */
import { lookup, Resolver } from 'node:dns/promises'
import net from 'node:net'
import { networkInterfaces } from 'node:os'
import tls from 'node:tls'
import { webhookConnectTimeoutMs } from '#shared/core/deliveries/delivery-limits.ts'
import {
  checkWebhookUrl,
  isRefusedAddress,
  mayBePrivate,
  toIpLiteral,
  unwrapNat64,
  type WebhookRules,
} from '#shared/core/deliveries/outbound-address.ts'

/**
 * Why there was no answer: which step failed, or what ended it. `aborted` means that we gave up the
 * attempt ourselves, because the process stops.
 */
export type OutboundErrorKind =
  | 'dns'
  | 'refused_address'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'aborted'

/** An attempt without an answer; the message is meant for the operator and the tenant. */
export class OutboundError extends Error {
  readonly kind: OutboundErrorKind
  /** The address it was about, as far as the attempt came. */
  readonly address: string | null

  constructor(kind: OutboundErrorKind, message: string, address: string | null = null) {
    super(message)
    this.name = 'OutboundError'
    this.kind = kind
    this.address = address
  }
}

/**
 * All addresses of a name, IPv4 and IPv6.
 * @throws OutboundError of kind `dns`
 */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<string[]>

export type DialOptions = {
  /** For names under public rules; by default DNS itself, past hosts file and search domains. */
  resolve?: Resolve
  /** PEM certificates to trust instead of Node's. */
  trustedCertificates?: string
  connectTimeoutMs?: number
}

export type Dialled = { socket: net.Socket; address: string }

/** Addresses of one name that are tried, one after another, within the one time limit. */
const addressesTriedMax = 4

/**
 * Asks DNS, and nothing else on the machine. c-ares rather than getaddrinfo: a receiver whose name
 * server is dead must not occupy one of the four threads that all look-ups would share.
 * @param servers `host:port` of name servers, by default the machine's
 */
export function createDnsResolve(servers?: readonly string[]): Resolve {
  return async (hostname, signal) => {
    // A resolver per look-up: it can be cancelled alone and sees a changed resolv.conf.
    const resolver = new Resolver({ timeout: 1_500, tries: 2 })
    if (servers !== undefined) resolver.setServers(servers)
    const cancel = () => resolver.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const answers = await Promise.allSettled([
        resolver.resolve4(hostname),
        resolver.resolve6(hostname),
      ])
      const addresses = answers.flatMap((a) => (a.status === 'fulfilled' ? a.value : []))
      if (addresses.length > 0) return addresses
      const failed = answers.find((answer) => answer.status === 'rejected')
      const code = (failed?.reason as NodeJS.ErrnoException | undefined)?.code ?? 'no address'
      throw new OutboundError('dns', `the name ${hostname} cannot be resolved: ${code}`)
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }
}

/** As the machine itself resolves, hosts file and all: for receivers on private networks. */
const resolveLocally: Resolve = async (hostname) => {
  try {
    return (await lookup(hostname, { all: true })).map(({ address }) => address)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new OutboundError('dns', `the name ${hostname} cannot be resolved: ${code}`)
  }
}

const resolvePublicly = createDnsResolve()

/**
 * Checks a webhook URL as it is saved: its text, and every address its name stands for right now.
 * No connection is made. Each attempt checks again, since names change.
 * @returns the URL as it is to be stored, or why it is refused
 */
export async function checkWebhookTarget(
  text: string,
  rules: WebhookRules,
  options: DialOptions = {},
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

const limitOf = (options: DialOptions) => options.connectTimeoutMs ?? webhookConnectTimeoutMs

/**
 * Connects to a URL's host within 5 s, name look-up and TLS included.
 * @param signal ends it with the signal's reason
 * @throws OutboundError
 */
export async function dial(
  url: URL,
  rules: WebhookRules,
  options: DialOptions,
  signal: AbortSignal,
): Promise<Dialled> {
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

/**
 * The reason of the limit's abort: whichever step it meets turns it into an error of its own kind.
 */
class ConnectLimit extends Error {
  constructor(limitMs: number) {
    super(`no connection within ${limitMs} ms`)
    this.name = 'ConnectLimit'
  }
}

/** @throws OutboundError when the name has no address, or any address that must not be touched */
async function findAddresses(
  url: URL,
  rules: WebhookRules,
  options: DialOptions,
  signal: AbortSignal,
): Promise<string[]> {
  const literal = toIpLiteral(url.hostname)
  const resolve = options.resolve ?? (mayBePrivate(rules) ? resolveLocally : resolvePublicly)
  const addresses =
    literal === null ? await orAborted('dns', resolve(url.hostname, signal), signal) : [literal]
  if (addresses.length === 0) {
    throw new OutboundError('dns', `the name ${url.hostname} has no address`)
  }
  // One bad answer condemns the name: picking the good ones would let a mixed answer be retried
  // until the bad one is all that is left.
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

/** Whether one of this machine's interfaces has the address: its services are not for webhooks. */
function isOwnAddress(address: string): boolean {
  const reached = unwrapNat64(address)
  return Object.values(networkInterfaces()).some((entries) =>
    entries?.some((entry) => entry.address === reached),
  )
}

type Connecting = {
  url: URL
  rules: WebhookRules
  options: DialOptions
  addresses: string[]
  limitMs: number
  signal: AbortSignal
}

/** Tries the addresses one after another; only a TCP connection that cannot be made moves on. */
async function connectToOne(connecting: Connecting): Promise<Dialled> {
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

/** IPv4 first, then in turns: where one family leads nowhere, the second try has the other. */
function interleave(addresses: readonly string[]): string[] {
  const v4 = addresses.filter((address) => net.isIPv4(address))
  const v6 = addresses.filter((address) => !net.isIPv4(address))
  const turns = Math.max(v4.length, v6.length)
  return Array.from({ length: turns }, (_, i) => [v4[i], v6[i]])
    .flat()
    .filter((address) => address !== undefined)
}

function withAddress(error: unknown, address: string): unknown {
  if (!(error instanceof OutboundError) || error.address !== null) return error
  return new OutboundError(error.kind, error.message, address)
}

/**
 * Where every connection's bytes land first, to be copied out at once. Left to itself Node takes
 * 64 KiB for each read: 200 receivers that answer too much then cost 50 MB before the first is cut.
 */
const readBuffer = Buffer.alloc(4 * 1024)

function connectTcp(to: {
  address: string
  port: number
  shareMs: number
  signal: AbortSignal
}): Promise<net.Socket> {
  // An address, never a name: nothing is looked up between the verdict and the connection.
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
      socket.once('connect', () => {
        socket.setTimeout(0)
        resolve(socket)
      })
      socket.once('timeout', () => socket.destroy(new Error(`no connection in ${to.shareMs} ms`)))
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
  options: DialOptions,
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

/** Waits for a step, or for the signal: then the step is abandoned and its error has its kind. */
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
