/** One HTTP request over Node's own client, and how it ended. It is never retried. */
import { type Agent, type IncomingHttpHeaders, request } from 'node:http'
import { signBody } from '#shared/core/telemetry/signature.ts'

export type SentRequest = {
  /** `cut`: the connection ended after it was made, before the complete response had arrived. */
  ended: 'response' | 'no connection' | 'cut' | 'time limit'
  /** 0 without a complete response. */
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** Whether its connection had carried an earlier request. */
  reused: boolean
  /** On the monotonic clock. */
  begunMs: number
  tookMs: number
}

export type RequestOptions = {
  agent: Agent
  method?: string
  headers?: Record<string, string>
  body?: string
  /** How long the connection may be silent. */
  limitMs: number
}

export function sendRequest(
  url: string,
  { body, limitMs, ...options }: RequestOptions,
): Promise<SentRequest> {
  const begunMs = performance.now()
  return new Promise((resolve) => {
    let connected = false
    let late = false
    const sending = request(url, { ...options, timeout: limitMs })
    const end = (ended: SentRequest['ended'], response: Partial<SentRequest> = {}) => {
      const tookMs = performance.now() - begunMs
      const { reusedSocket: reused } = sending
      resolve({ status: 0, headers: {}, text: '', ...response, ended, reused, begunMs, tookMs })
    }
    const fail = () => end(late ? 'time limit' : connected ? 'cut' : 'no connection')
    sending.on('socket', (socket) => {
      connected = !socket.connecting
      if (!connected) socket.once('connect', () => (connected = true))
    })
    sending.on('timeout', () => {
      late = true
      sending.destroy(new Error('no response'))
    })
    sending.on('error', fail)
    sending.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('error', fail)
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response
        if (response.complete) end('response', { status, headers, text })
        else fail()
      })
    })
    sending.end(body)
  })
}

export type SentTelemetry = SentRequest & { eventId: string | null }

/**
 * Posts one submission to an edge.
 * @returns the result, with the event id when the response is a 200
 */
export async function postTelemetry(
  ingestUrl: string,
  { body, secret, ...options }: { agent: Agent; body: string; secret: string; limitMs: number },
): Promise<SentTelemetry> {
  return toSentTelemetry(
    await sendRequest(`${ingestUrl}/v1/rasp/ingest`, {
      ...options,
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'x-service-signature': signBody(body, secret),
      },
    }),
  )
}

function toSentTelemetry(sent: SentRequest): SentTelemetry {
  const [, eventId = null] = /"event_id":"([^"]+)"/.exec(sent.text) ?? []
  return { ...sent, eventId: sent.status === 200 ? eventId : null }
}
