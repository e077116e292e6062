// Chooses ports for the embedded servers, below the kernel's range for outgoing connections, so
// that a restarted server finds its port free.

import { createServer } from 'node:net'

const FIRST_PORT = 20_000
const LAST_PORT = 29_999

/** True when no process listens on this port of the host. */
export function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ port, host, exclusive: true }, () => probe.close(() => resolve(true)))
  })
}

/** A server listens within this time after its port is chosen. */
const RESERVED_MS = 60_000
const reservedHere = new Set<number>()

/**
 * Reserves a port until its server listens, so that two stacks that start at once never choose the
 * same one. The reservation is an abstract socket (Linux only), which ends with the process.
 */
function reservePort(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return Promise.resolve(true)
  return new Promise((resolve) => {
    const holder = createServer()
    holder.once('error', () => resolve(false))
    holder.listen({ path: `\0device-intelligence port ${port}`, exclusive: true }, () => {
      reservedHere.add(port)
      holder.unref()
      const release = () => holder.close(() => reservedHere.delete(port))
      setTimeout(release, RESERVED_MS).unref()
      resolve(true)
    })
  })
}

/**
 * A free port on 127.0.0.1; `preferred` when it is free. `taken` are reserved ports on which no
 * server listens yet.
 */
export async function choosePort(options: {
  preferred?: number | undefined
  taken?: ReadonlySet<number>
}): Promise<number> {
  const taken = options.taken ?? new Set<number>()
  const { preferred } = options
  if (preferred && !taken.has(preferred) && (await isPortFree(preferred))) {
    if (reservedHere.has(preferred) || (await reservePort(preferred))) return preferred
  }
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1))
    if (!taken.has(port) && (await isPortFree(port)) && (await reservePort(port))) return port
  }
  throw new Error(`no free port found between ${FIRST_PORT} and ${LAST_PORT}`)
}
