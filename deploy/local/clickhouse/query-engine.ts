// How this process itself asks the engine that runs in it: as an ordinary client.
import { request } from 'node:http'

export type EngineAddress = { url: string; password: string }

/** @returns the answer's text, or null when there was none in `maxMs` or it was a refusal */
export function queryEngine(
  server: EngineAddress,
  query: string,
  maxMs: number,
): Promise<string | null> {
  return new Promise((resolve) => {
    const headers = { 'X-ClickHouse-User': 'default', 'X-ClickHouse-Key': server.password }
    const options = { method: 'POST', agent: false, timeout: maxMs, headers }
    const asking = request(server.url, options, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve(response.statusCode === 200 ? text : null))
      response.on('error', () => resolve(null))
    })
    asking.on('timeout', () => asking.destroy())
    asking.on('error', () => resolve(null))
    asking.end(query)
  })
}
