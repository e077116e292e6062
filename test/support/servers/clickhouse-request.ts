// One HTTP request to a ClickHouse, as curl sends it: unchanged, so that a test sees the server's
// own status, headers and bytes.
import { Agent, type IncomingHttpHeaders, request } from 'node:http'

export type ClickhouseRequest = {
  method?: string
  path?: string
  params?: Record<string, string>
  headers?: Record<string, string>
  body?: string | Buffer
  signal?: AbortSignal
}

export type ClickhouseReply = {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
  text: string
}

const agent = new Agent({ keepAlive: true })

/** `url` contains user and password; they are sent as Basic unless a header overrides it. */
export function callClickhouse(url: string, call: ClickhouseRequest): Promise<ClickhouseReply> {
  const { username, password, hostname, port } = new URL(url)
  const query = new URLSearchParams(call.params).toString()
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        agent,
        hostname,
        port,
        method: call.method ?? (call.body === undefined ? 'GET' : 'POST'),
        path: `${call.path ?? '/'}${query && `?${query}`}`,
        headers: call.headers ?? {},
        ...(username && { auth: decodeURIComponent(`${username}:${password}`) }),
        ...(call.signal && { signal: call.signal }),
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const body = Buffer.concat(chunks)
          const { statusCode, headers } = response
          resolve({ status: statusCode!, headers, body, text: body.toString() })
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(call.body)
  })
}
