/** HTTP over plain sockets: sends and returns bytes unchanged, even when they are invalid. */
import { connect, type Socket } from 'node:net'

/** One response; status 0 when the connection ended without one. */
export type RawAnswer = { status: number; text: string }

export type RawClient = {
  /** Sends one complete request over a free connection, which is reopened when necessary. */
  send: (request: Buffer) => Promise<RawAnswer>
  close: () => void
}

/** A slower response counts as none. */
const answerLimitMs = 20_000

/**
 * A client with a fixed number of connections, open for as long as the server allows. Only for
 * requests with one response each; others go through `exchangeRaw`.
 */
export function createRawClient(port: number, connections: number): RawClient {
  const free: RawConnection[] = Array.from({ length: connections }, () => createConnection(port))
  const all = [...free]
  const waiting: ((connection: RawConnection) => void)[] = []
  return {
    send: async (request) => {
      const connection =
        free.pop() ?? (await new Promise<RawConnection>((resolve) => waiting.push(resolve)))
      try {
        return await connection.send(request)
      } finally {
        const next = waiting.shift()
        if (next === undefined) free.push(connection)
        else next(connection)
      }
    },
    close: () => {
      for (const connection of all) connection.close()
    },
  }
}

export type RawConnection = RawClient

/** One connection, opened when it is needed and reopened when the server has closed it. */
export function createConnection(port: number): RawConnection {
  let socket: Socket | null = null
  let text = ''
  let settle: (answer: RawAnswer) => void = () => undefined
  const open = (): Socket => {
    const opened = connect({ port, host: '127.0.0.1', noDelay: true })
    opened.setEncoding('latin1')
    opened.on('data', (chunk: string) => {
      if (socket !== opened) return
      text += chunk
      const answer = parseAnswer(text)
      if (answer === null) return
      // The server is about to close the connection, so it must not be used again.
      if (/^connection: close\r$/im.test(answer.text)) {
        socket = null
        opened.destroy()
      }
      settle(answer)
    })
    opened.on('error', () => undefined)
    opened.on('close', () => {
      if (socket !== opened) return
      socket = null
      settle({ status: 0, text })
    })
    return opened
  }
  return {
    send: (request) =>
      new Promise((resolve) => {
        text = ''
        const used = socket ?? open()
        socket = used
        const timer = setTimeout(() => used.destroy(), answerLimitMs)
        settle = (answer) => {
          clearTimeout(timer)
          settle = () => undefined
          resolve(answer)
        }
        used.write(request)
      }),
    close: () => socket?.destroy(),
  }
}

/** The response at the start of these bytes, once it is complete. */
function parseAnswer(text: string): RawAnswer | null {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return null
  const [, length] = /^content-length: (\d+)\r$/im.exec(text.slice(0, end + 2)) ?? []
  if (length === undefined || text.length < end + 4 + Number(length)) return null
  return { status: Number(text.slice(9, 12)), text: text.slice(0, end + 4 + Number(length)) }
}

export type Exchange = {
  /** The status of every response, in order. */
  statuses: number[]
  text: string
  /** Whether the server ended the connection. */
  closed: boolean
}

/**
 * Sends pieces over a new connection, and reads until the server closes it or is silent for
 * `silenceMs`.
 */
export function exchangeRaw(
  port: number,
  pieces: readonly Buffer[],
  silenceMs: number,
): Promise<Exchange> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let text = ''
    let closed = false
    const silence = setTimeout(() => socket.destroy(), silenceMs)
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      text += chunk
      silence.refresh()
    })
    socket.on('error', () => undefined)
    socket.on('end', () => {
      closed = true
    })
    socket.on('close', (hadError) => {
      clearTimeout(silence)
      const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]))
      resolve({ statuses, text, closed: closed || hadError })
    })
    for (const piece of pieces) socket.write(piece)
  })
}
