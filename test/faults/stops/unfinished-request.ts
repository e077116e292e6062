/** A request that the server has read except its last byte; the test sends that byte. */
import { connect, type Socket } from 'node:net'

export type LateAnswer = {
  /** 0 when the connection ended without a response. */
  status: number
  body: string
  error: string | null
}

export type UnfinishedRequest = {
  /** Sends the last byte; resolves at the response or at the end of the connection. */
  finish: () => Promise<LateAnswer>
  abandon: () => void
}

/** A process that neither responds nor ends in this time fails the run. */
const answerLimitMs = 20_000

/**
 * Opens a connection and sends a request without its last byte.
 * @param first a complete request that goes over the same connection before it
 */
export async function beginRequest(
  port: number,
  request: Buffer,
  first: Buffer | null,
): Promise<UnfinishedRequest> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  socket.setEncoding('latin1')
  socket.setTimeout(answerLimitMs, () => socket.destroy(new Error('no answer')))
  const seen = watch(socket)
  if (first !== null) {
    socket.write(first)
    await seen.answered()
    seen.forget()
  }
  await new Promise<void>((resolve, reject) => {
    socket.write(request.subarray(0, -1), (error) => (error ? reject(error) : resolve()))
  })
  // The server reads this later request after the bytes of the first connection.
  const probe = await fetch(`http://127.0.0.1:${port}/healthz`, {
    signal: AbortSignal.timeout(answerLimitMs),
  })
  await probe.text()
  return {
    finish: async () => {
      socket.write(request.subarray(-1))
      const answer = await seen.answered()
      socket.destroy()
      return answer
    },
    abandon: () => socket.destroy(),
  }
}

function watch(socket: Socket) {
  let text = ''
  let error: string | null = null
  let over = false
  let look: () => void = () => undefined
  socket.on('data', (chunk: string) => {
    text += chunk
    look()
  })
  socket.on('error', (fault: NodeJS.ErrnoException) => {
    error = fault.code ?? fault.message
  })
  for (const event of ['end', 'close'] as const) {
    socket.on(event, () => {
      over = true
      look()
    })
  }
  return {
    forget: () => {
      text = ''
    },
    answered: () =>
      new Promise<LateAnswer>((resolve) => {
        look = () => {
          const answer = toAnswer(text)
          if (answer !== null) resolve({ ...answer, error: null })
          else if (over) resolve({ status: 0, body: '', error: error ?? 'ended' })
        }
        look()
      }),
  }
}

/** Responses have a length, or end in an empty chunk. */
function toAnswer(text: string): { status: number; body: string } | null {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return null
  const [, length] = /^content-length: (\d+)\r$/im.exec(text.slice(0, end + 2)) ?? []
  const body = text.slice(end + 4)
  const isWhole = length === undefined ? body.endsWith('0\r\n\r\n') : body.length >= Number(length)
  return isWhole ? { status: Number(text.slice(9, 12)), body } : null
}
