/**
 * A request of which the last byte is missing: begun, read by the server as far as it goes, and
 * finished when the test says so.
 */
import { connect, type Socket } from 'node:net'

export type HeldAnswer = {
  /** 0 when the connection ended without an answer. */
  status: number
  body: string
  error: string | null
}

export type Held = {
  /** Sends the last byte; resolves to the answer, or when the connection has ended without one. */
  finish: () => Promise<HeldAnswer>
  /** Whether the server has ended it already. */
  isCut: () => boolean
  abandon: () => void
}

/** A process that neither answers nor ends for so long is found out, not waited for. */
const answerLimitMs = 20_000

/**
 * Opens a connection and sends all of a request but its last byte; before that, on the same
 * connection, a whole one when it is to have been used.
 * @param used answered before the request is begun
 */
export async function holdRequest(
  port: number,
  request: Buffer,
  used: Buffer | null,
): Promise<Held> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  socket.setEncoding('latin1')
  socket.setTimeout(answerLimitMs, () => socket.destroy(new Error('no answer')))
  const seen = watch(socket)
  if (used !== null) {
    socket.write(used)
    await seen.answered()
    seen.forget()
  }
  await new Promise<void>((resolve, reject) => {
    socket.write(request.subarray(0, -1), (error) => (error ? reject(error) : resolve()))
  })
  // What is asked and answered over another connection now, was read after this one's bytes.
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
    isCut: seen.isOver,
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
    isOver: () => over,
    forget: () => {
      text = ''
    },
    answered: () =>
      new Promise<HeldAnswer>((resolve) => {
        look = () => {
          const answer = toAnswer(text)
          if (answer !== null) resolve({ ...answer, error: null })
          else if (over) resolve({ status: 0, body: '', error: error ?? 'ended' })
        }
        look()
      }),
  }
}

/** Answers have a length, or end in an empty chunk. */
function toAnswer(text: string): { status: number; body: string } | null {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return null
  const [, length] = /^content-length: (\d+)\r$/im.exec(text.slice(0, end + 2)) ?? []
  const body = text.slice(end + 4)
  const isWhole = length === undefined ? body.endsWith('0\r\n\r\n') : body.length >= Number(length)
  return isWhole ? { status: Number(text.slice(9, 12)), body } : null
}
