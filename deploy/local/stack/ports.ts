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

/** A server listens within this time of its port being chosen. */
const PROMISED_MS = 60_000
const promisedHere = new Set<number>()

/**
 * Keeps a port from every other process that chooses one here, until its server listens: two stacks
 * that start at once would else now and then choose the same. It is an abstract socket, so nothing
 * is left of it when the process ends; only Linux has them.
 */
function promisePort(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return Promise.resolve(true)
  return new Promise((resolve) => {
    const holder = createServer()
    holder.once('error', () => resolve(false))
    holder.listen({ path: `\0device-intelligence port ${port}`, exclusive: true }, () => {
      promisedHere.add(port)
      holder.unref()
      const release = () => holder.close(() => promisedHere.delete(port))
      setTimeout(release, PROMISED_MS).unref()
      resolve(true)
    })
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
  const { preferred } = options
  if (preferred && !taken.has(preferred) && (await isPortFree(preferred))) {
    if (promisedHere.has(preferred) || (await promisePort(preferred))) return preferred
  }
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1))
    if (!taken.has(port) && (await isPortFree(port)) && (await promisePort(port))) return port
  }
  throw new Error(`no free port found between ${FIRST_PORT} and ${LAST_PORT}`)
}
