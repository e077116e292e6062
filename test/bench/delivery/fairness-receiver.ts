/**
 * A receiver of the fairness benchmark, in its own process. The path selects its behaviour: `/ok`
 * answers at once and its arrivals are reported, `/hang` never answers, `/500` fails at once and
 * `/slow` takes three seconds.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Time of the machine's monotonic clock, which all its processes share. */
const nowMs = () => Number(process.hrtime.bigint()) / 1e6

export type Arrival = [deliveryId: string, atMs: number]
export type ReceiverAnswer = { port: number } | { arrivals: Arrival[]; requests: number }

const slowMs = 3_000

let arrivals: Arrival[] = []
let requests = 0

const server = createServer((request, response) => {
  const atMs = nowMs()
  requests += 1
  const path = request.url ?? ''
  if (path === '/ok') arrivals.push([String(request.headers['x-service-delivery']), atMs])
  request.resume()
  request.on('error', () => undefined)
  request.on('end', () => {
    if (path === '/ok') response.end('ok')
    if (path === '/500') response.writeHead(500).end('no')
    if (path === '/slow') setTimeout(() => response.end('ok'), slowMs)
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  process.send!({ port: (server.address() as AddressInfo).port } satisfies ReceiverAnswer)
})
process.on('message', (what: 'read' | 'drop') => {
  if (what === 'drop') server.closeAllConnections()
  process.send!({ arrivals, requests } satisfies ReceiverAnswer)
  arrivals = []
  requests = 0
})
process.on('disconnect', () => process.exit())
