/**
 * Finds the client address of a request: that of the connection, or, behind a trusted proxy, the
 * one in `X-Forwarded-For`. A client has one spelling, so that limits, logs and the audit log know
 * it again: no port, no brackets, no zone, and IPv4 where IPv6 only maps it.
 */
import type { IncomingMessage } from 'node:http'
import { isIPv4, isIPv6, SocketAddress } from 'node:net'
import proxyaddr from '@fastify/proxy-addr'

export type ClientAddresses = {
  /** Whether an address is that of a trusted proxy. */
  trusts: (address: string) => boolean
  /** The client's address in the spelling of `toAddress`. */
  of: (request: IncomingMessage) => string
}

/**
 * @param proxies addresses and networks of proxies (`10.0.0.0/8`, `::1`)
 * @throws TypeError when one of them is neither
 */
export function createClientAddresses(proxies: readonly string[]): ClientAddresses {
  const compiled = proxyaddr.compile([...proxies])
  const trusts = (text: string) => {
    if (proxies.length === 0) return false
    const address = toAddress(text)
    return address !== null && compiled(address, 0)
  }
  return {
    trusts,
    of: (request) => {
      const peer = request.socket.remoteAddress ?? 'unknown'
      if (!trusts(peer)) return toAddress(peer) ?? peer
      // From the peer to the client: all but the last are trusted. What is no address is what a
      // client or a proxy made up, and counts as the proxy that passed it on.
      const texts = proxyaddr.all(request, trusts)
      return toAddress(texts.at(-1)!) ?? toAddress(texts.at(-2)!)!
    },
  }
}

/** `[2001:db8::1]`, `[2001:db8::1]:443` and `203.0.113.8:50000`. */
const decorated = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/

/**
 * The one spelling of an address.
 * @param text an address as sockets and proxies write it, perhaps with a port
 * @returns dotted IPv4 or compressed lower-case IPv6; null for what is no address
 */
export function toAddress(text: string): string | null {
  if (isIPv4(text)) return text
  const [, inBrackets, beforePort] = decorated.exec(text) ?? []
  if (beforePort !== undefined) return isIPv4(beforePort) ? beforePort : null
  const v6 = inBrackets ?? text
  if (!isIPv6(v6)) return null
  const [withoutZone = ''] = v6.split('%')
  const { address } = new SocketAddress({ address: withoutZone, family: 'ipv6' })
  const mapped = address.slice(mappedPrefix.length)
  return address.startsWith(mappedPrefix) && isIPv4(mapped) ? mapped : address
}

/** Of addresses that stand for IPv4: a listener for both families has them. */
const mappedPrefix = '::ffff:'
