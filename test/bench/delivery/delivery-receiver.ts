/**
 * The receiver of the delivery benchmark, in its own process: reads each body, answers 200, and
 * records when each delivery's first byte came. The parent sends the commands `reset` and `report`.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Milliseconds since 1970 with fractions, equal for all processes of a machine. */
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
