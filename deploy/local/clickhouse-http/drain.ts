// What a stop does before the engine may go: as an ordinary client it waits until no query runs.
// This engine has no queue of asynchronous inserts (`async_insert` is accepted and every insert is
// written before its answer), so idle connections have nothing left to lose then. Only a Buffer
// table, should somebody make one, keeps acknowledged rows in memory until the tables shut down.
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

type Server = { url: string; password: string }

const othersRunning = 'SELECT count() FROM system.processes WHERE query_id != currentQueryID()'
const pauseMs = 50

/** Resolves when the server runs no query but this one, or is silent, or when `maxMs` are over. */
export async function drainQueries(server: Server, maxMs: number): Promise<void> {
  const deadline = performance.now() + maxMs
  const leftMs = () => deadline - performance.now()
  while (leftMs() > pauseMs) {
    const running = await ask(server, othersRunning, leftMs())
    if (running === null || Number.parseInt(running, 10) === 0) return
    await sleep(pauseMs)
  }
}

function ask(server: Server, query: string, maxMs: number): Promise<string | null> {
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
