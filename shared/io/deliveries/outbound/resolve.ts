/** Resolves the host names of webhook receivers. */
import { lookup, Resolver } from 'node:dns/promises'
import { OutboundError } from './outbound-error.ts'

/**
 * All addresses of a name, IPv4 and IPv6.
 * @throws OutboundError of kind `dns`
 */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<string[]>

/**
 * Resolves by DNS alone, past the hosts file and search domains. It uses c-ares, not getaddrinfo: a
 * receiver with a dead name server must not block one of the four threads that all look-ups share.
 * @param servers `host:port` of name servers, by default the machine's
 */
export function createDnsResolve(servers?: readonly string[]): Resolve {
  return async (hostname, signal) => {
    // One resolver per look-up: it can be cancelled alone and reads a changed resolv.conf.
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

/** Resolves like the machine itself, hosts file included: for receivers on private networks. */
export const resolveLocally: Resolve = async (hostname) => {
  try {
    return (await lookup(hostname, { all: true })).map(({ address }) => address)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new OutboundError('dns', `the name ${hostname} cannot be resolved: ${code}`)
  }
}

export const resolvePublicly = createDnsResolve()
