// Queries the engine in this process as an ordinary client.
import { request } from 'node:http'

export type EngineAddress = { url: string; password: string }

/** @returns the text of the response, or null after `maxMs` or an error */
export function queryEngine(
  server: EngineAddress,
  query: string,
  maxMs: number,
): Promise<string | null> {
  return new Promise((resolve) => {
    const headers = { 'X-ClickHouse-User': 'default', 'X-ClickHouse-Key': server.password }
    const options = { method: 'POST', agent: false, timeout: maxMs, headers }
    const sent = request(server.url, options, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve(response.statusCode === 200 ? text : null))
      response.on('error', () => resolve(null))
    })
    sent.on('timeout', () => sent.destroy())
    sent.on('error', () => resolve(null))
    sent.end(query)
  })
}
