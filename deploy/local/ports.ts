// Chooses ports for the embedded servers. They stay below the range the kernel hands to outgoing
// connections, so that a server which restarts finds its own port free again.

import { createServer } from 'node:net'

const FIRST_PORT = 20_000
const LAST_PORT = 29_999

/** True when nothing listens on this port of the host. */
export function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ port, host, exclusive: true }, () => probe.close(() => resolve(true)))
  })
}

/**
 * A free port on 127.0.0.1, `preferred` when that one is free. `taken` are ports already promised
 * to somebody who does not listen yet.
 */
export async function choosePort(options: {
  preferred?: number | undefined
  taken?: ReadonlySet<number>
}): Promise<number> {
  const taken = options.taken ?? new Set<number>()
  if (options.preferred && !taken.has(options.preferred) && (await isPortFree(options.preferred))) {
    return options.preferred
  }
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1))
    if (!taken.has(port) && (await isPortFree(port))) return port
  }
  throw new Error(`no free port found between ${FIRST_PORT} and ${LAST_PORT}`)
}
