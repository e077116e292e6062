/**
 * Closes an HTTP server gracefully: it answers requests in flight, closes idle connections, and
 * cuts requests that do not finish in time.
 */
import type { FastifyInstance } from 'fastify'

const idleMs = 100
/**
 * Time before the first idle connection is closed: a client may be sending a request at this
 * moment, and then gets a response with `Connection: close`.
 */
const graceMs = 300

/**
 * Stops accepting connections and resolves when the open ones have ended.
 * @param unfinishedMs how long unfinished requests may delay the stop
 */
export async function closeHttp(app: FastifyInstance, unfinishedMs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, graceMs))
  // `close` ends only connections that are idle now; close those that become idle later as well.
  const idle = setInterval(() => app.server.closeIdleConnections(), idleMs)
  // A closed server no longer enforces request timeouts.
  const all = setTimeout(() => app.server.closeAllConnections(), unfinishedMs)
  await app.close()
  clearInterval(idle)
  clearTimeout(all)
}
