/**
 * Attempts to connect to every forbidden address, in a process of its own so that strace can record
 * it: as literals in every spelling, and as names of a DNS server that responds with A, AAAA,
 * aliases, mixed records and another address each time. Listeners on loopback count connections.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { WebhookRules } from '#shared/core/deliveries/outbound-address.ts'
import {
  createDnsResolve,
  createOutbound,
  OutboundError,
} from '#shared/io/deliveries/outbound/outbound-client.ts'
import { forbiddenAddresses, spelledHosts } from '../../support/deliveries/address-corpus.ts'
import { startDns, type Zone } from '../../support/servers/dns-server.ts'

export type AttemptsReport = {
  /** Attempts by their end; all must be `refused_address`. */
  ended: Record<string, number>
  /** Connections that a listener got before the allowed one. */
  connections: number
  /** Ports that may appear in the trace: of the DNS server, and of the allowed connection. */
  dnsPort: number
  allowedPort: number
}

const live: WebhookRules = { environment: 'live', allowPrivate: true }
const near: WebhookRules = { environment: 'sandbox', allowPrivate: true }

async function attemptAll(): Promise<AttemptsReport> {
  let connections = 0
  const listener = createServer((socket) => {
    connections += 1
    socket.destroy()
  })
  const port = await listenOnLoopback(listener)
  const allowed = createServer((socket) => socket.destroy())
  const allowedPort = await listenOnLoopback(allowed)
  const { zone, names } = toZone()
  const dns = await startDns(zone)
  const outbound = createOutbound({ resolve: createDnsResolve([dns.server]) })
  const ended: Record<string, number> = {}
  const attempt = async (url: string, rules: WebhookRules): Promise<string> => {
    const target = { url: new URL(url), rules, owner: 'acme' }
    try {
      const connection = await outbound.connect(target, AbortSignal.timeout(20_000))
      connection.release()
      return 'connected'
    } catch (error) {
      return error instanceof OutboundError ? error.kind : String(error)
    }
  }
  const attemptAt = async (host: string) => {
    for (const url of [`https://${host}/`, `https://${host}:${port}/`, `http://${host}:${port}/`]) {
      const kind = await attempt(url, live)
      ended[kind] = (ended[kind] ?? 0) + 1
    }
  }
  const literals = inDns(forbiddenAddresses).map((ip) => (ip.includes(':') ? `[${ip}]` : ip))
  for (const host of [...spelledHosts, ...literals, ...names]) await attemptAt(host)
  for (let n = 0; n < 20; n++) {
    // A name with a different address at each query.
    zone['rebinding.test'] = n % 2 === 0 ? { a: ['127.0.0.1'] } : { aaaa: ['::1'] }
    await attemptAt('rebinding.test')
  }
  const seen = connections
  await attempt(`http://127.0.0.1:${allowedPort}/`, near)
  outbound.close()
  await dns.close()
  for (const server of [listener, allowed]) server.close()
  const dnsPort = Number(dns.server.split(':')[1])
  return { ended, connections: seen, dnsPort, allowedPort }
}

async function listenOnLoopback(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const inDns = (addresses: readonly string[]) => addresses.filter((ip) => !ip.includes('%'))

/** Every forbidden address as DNS records: alone, behind an alias, and with public ones. */
function toZone(): { zone: Zone; names: string[] } {
  const zone: Zone = {}
  for (const [n, ip] of inDns(forbiddenAddresses).entries()) {
    const isV6 = ip.includes(':')
    const a = isV6 ? [] : [ip]
    const aaaa = isV6 ? [new URL(`http://[${ip}]`).hostname.slice(1, -1)] : []
    zone[`plain-${n}.test`] = { a, aaaa }
    zone[`alias-${n}.test`] = { cname: `plain-${n}.test` }
    zone[`mixed-${n}.test`] = { a: ['93.184.215.14', ...a], aaaa: ['2606:4700::1', ...aaaa] }
  }
  return { zone, names: Object.keys(zone) }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(`${JSON.stringify(await attemptAll())}\n`)
}
