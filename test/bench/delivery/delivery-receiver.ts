/**
 * The receiver of the delivery benchmark, a process of its own: reads each body, answers 200, and
 * remembers when each delivery's first byte came. Told `reset` and `report` by its parent.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Milliseconds since 1970, finer than whole ones and the same for all processes of a machine. */
const nowMs = () => performance.timeOrigin + performance.now()

let arrivals: [deliveryId: string, atMs: number][] = []

const server = createServer((request, response) => {
  arrivals.push([String(request.headers['x-service-delivery'] ?? ''), nowMs()])
  request.resume()
  request.on('end', () => response.end('ok'))
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as AddressInfo).port }))
process.on('message', (what: 'reset' | 'count' | 'report') => {
  if (what === 'reset') arrivals = []
  if (what === 'count') process.send!({ count: arrivals.length })
  if (what === 'report') process.send!({ arrivals })
  if (what === 'reset') process.send!({ done: true })
})
process.on('disconnect', () => process.exit(0))
