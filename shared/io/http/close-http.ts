/**
 * The end of an HTTP server: requests that are under way are answered, what is idle goes at once,
 * and a request that is never finished holds up nothing for longer than a stop has time for.
 */
import type { FastifyInstance } from 'fastify'

const idleMs = 100
/**
 * A client that has its connection open may be writing to it at this very moment: it gets its
 * answer, which tells it that the connection ends, and only who is silent is cut.
 */
const courtesyMs = 300

/**
 * Takes no more connections, and resolves when those that there are have ended.
 * @param unfinishedMs how long requests may hold up a stop; what follows has to fit into its limit
 */
export async function closeHttp(app: FastifyInstance, unfinishedMs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, courtesyMs))
  // Closing ends what is idle at that moment; connections that fall idle later have to be asked.
  const idle = setInterval(() => app.server.closeIdleConnections(), idleMs)
  // Closed, Node no longer looks for requests that are too slow.
  const all = setTimeout(() => app.server.closeAllConnections(), unfinishedMs)
  await app.close()
  clearInterval(idle)
  clearTimeout(all)
}
