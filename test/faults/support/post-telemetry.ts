/** One signed submission over Node's own client, which ends in an answer or in none. */
import { type Agent, request } from 'node:http'

/** Status 0 when there was no answer. */
export type Answered = { status: number; eventId: string | null }

/** @param limitMs how long the connection may be silent */
export function postTelemetry(
  url: string,
  agent: Agent,
  body: string,
  signature: string,
  limitMs: number,
): Promise<Answered> {
  return new Promise((resolve) => {
    const none = () => resolve({ status: 0, eventId: null })
    const sending = request(`${url}/v1/rasp/ingest`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-signature': signature },
      timeout: limitMs,
    })
    sending.on('error', none)
    sending.on('timeout', () => sending.destroy(new Error('no answer')))
    sending.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('error', none)
      response.on('end', () => {
        const status = response.statusCode ?? 0
        const eventId = status === 200 ? (JSON.parse(text) as { event_id: string }).event_id : null
        resolve({ status, eventId })
      })
    })
    sending.end(body)
  })
}
