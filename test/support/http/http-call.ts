/** One HTTP call whose path, headers and body are sent unchanged, even when they are invalid. */
import { Agent, type IncomingHttpHeaders, request } from 'node:http'

export type Call = {
  method: string
  /** The request target, sent unchanged. */
  path: string
  headers: Record<string, string>
  body?: string | Buffer | undefined
}

export type CallAnswer = {
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** The raw body. */
  body: Buffer
  tookMs: number
}

export type Caller = {
  send: (base: string, call: Call) => Promise<CallAnswer>
  close: () => void
}

/** Against a hang only. */
const limitMs = 240_000

/** A client with its own connections. */
export function createCaller(): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  return {
    // A server can close a connection after it refused a body. The next call on it is sent again.
    send: (base, call) =>
      sendOnce(agent, base, call).catch((error: NodeJS.ErrnoException & { reused?: boolean }) => {
        if (error.reused === true && error.code === 'ECONNRESET') {
          return sendOnce(agent, base, call)
        }
        throw error
      }),
    close: () => agent.destroy(),
  }
}

function sendOnce(agent: Agent, base: string, call: Call): Promise<CallAnswer> {
  const { hostname: host, port } = new URL(base)
  const { method, path, body } = call
  // For every method: a body without a length would be read as the next request.
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const headers = { ...call.headers, ...length }
  const startedMs = performance.now()
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, path, method, headers, agent, timeout: limitMs })
    const fail = (error: Error) => reject(Object.assign(error, { reused: sent.reusedSocket, call }))
    sent.on('timeout', () => sent.destroy(new Error(`no response in ${limitMs} ms`)))
    sent.on('error', fail)
    sent.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', fail)
      response.on('end', () => {
        const body = Buffer.concat(chunks)
        const text = body.toString('utf8')
        const { statusCode: status = 0, headers } = response
        resolve({ status, headers, text, body, tookMs: performance.now() - startedMs })
      })
    })
    sent.end(body)
  })
}
