/**
 * Finds the client address of a request: that of the connection, or, behind a trusted proxy, the
 * one in `X-Forwarded-For`.
 */
import type { IncomingMessage } from 'node:http'
import proxyaddr from '@fastify/proxy-addr'

export type ClientAddresses = {
  /** Whether an address is that of a trusted proxy. */
  trusts: (address: string) => boolean
  of: (request: IncomingMessage) => string
}

/**
 * @param proxies addresses and networks of proxies (`10.0.0.0/8`, `::1`)
 * @throws TypeError when one of them is neither
 */
export function createClientAddresses(proxies: readonly string[]): ClientAddresses {
  const compiled = proxyaddr.compile([...proxies])
  const trusts = (address: string) => proxies.length > 0 && compiled(address, 0)
  return {
    trusts,
    of: (request) => {
      const peer = request.socket.remoteAddress ?? 'unknown'
      if (!trusts(peer)) return peer
      // The header may contain any text: limit it to the length of an address.
      return proxyaddr(request, trusts).slice(0, 45)
    },
  }
}
