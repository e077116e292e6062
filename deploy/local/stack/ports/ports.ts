// Chooses ports for the embedded servers, outside the kernel's range for outgoing connections, so
// that a restarted server finds its port free, and looks at ports without ever taking one.

import { readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'

/** Where servers' ports are chosen, in the order of preference. */
const SPANS = [
  [20_000, 29_999],
  [10_240, 19_999],
] as const
/** Fewer ports than this are no choice for several stacks. */
const CHOICE_MIN = 200

/** The ports that the kernel gives to outgoing connections, first and last. */
export function readOutgoingPorts(): [first: number, last: number] {
  try {
    const text = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8')
    const [first = 0, last = 0] = text.trim().split(/\s+/).map(Number)
    return [first, last]
  } catch {
    // As IANA assigns them, and macOS uses them.
    return [49_152, 65_535]
  }
}

/** A sentence for a port that outgoing connections of any program can hold, else an empty text. */
export function explainOutgoing(ports: readonly number[]): string {
  const [first, last] = readOutgoingPorts()
  if (!ports.some((port) => port >= first && port <= last)) return ''
  return (
    `The kernel gives the ports ${first} to ${last} to outgoing connections of any program, which ` +
    'can hold one for a while: choose a PORT_BASE outside of them.'
  )
}

/** Another address of this machine, where there is one: Linux has all of 127.0.0.0/8. */
const OTHER_ADDRESS = '127.0.0.2'
const LOOK_LIMIT_MS = 1_000

/**
 * Whether a server listens on a port of 127.0.0.1. A connection to a port without a listener
 * yet can get that very port as its own end: it then is connected to itself, and the server finds
 * its port in use. From another address it cannot. Without one the answer is always true.
 */
export function isListenedOn(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const look = connect({ port, host: '127.0.0.1', localAddress: OTHER_ADDRESS })
    const end = (answer: boolean) => {
      look.destroy()
      resolve(answer)
    }
    look.setTimeout(LOOK_LIMIT_MS, () => end(false))
    look.once('connect', () => end(true))
    look.once('error', ({ code }: NodeJS.ErrnoException) => end(code === 'EADDRNOTAVAIL'))
  })
}

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
  const choice = listChoice()
  if (preferred && choice.includes(preferred) && !taken.has(preferred)) {
    const mine = reservedHere.has(preferred)
    if ((await isPortFree(preferred)) && (mine || (await reservePort(preferred)))) return preferred
  }
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = choice[Math.floor(Math.random() * choice.length)]!
    if (!taken.has(port) && (await isPortFree(port)) && (await reservePort(port))) return port
  }
  throw new Error(`no free port found between ${choice[0]} and ${choice.at(-1)}`)
}

function listChoice(): number[] {
  const [first, last] = readOutgoingPorts()
  const spans = SPANS.map(([from, to]) => Array.from({ length: to - from + 1 }, (_, n) => from + n))
  const choices = spans.map((span) => span.filter((port) => port < first || port > last))
  // Where the kernel may use them all, one of them is still better than none.
  return choices.find((choice) => choice.length >= CHOICE_MIN) ?? spans[0]!
}
