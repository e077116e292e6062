/**
 * Answers requests that no route handles, before their body is read: 404 for an unknown path, 405
 * with `Allow` for an unsupported method, 204 with `Allow` for OPTIONS.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { Problem } from '#shared/core/http/problem.ts'

/** Call it before the routes are added. @param notFoundHint what a 404 says further */
export function addUnroutedAnswers(
  app: FastifyInstance,
  sendProblem: (reply: FastifyReply, problem: Problem) => unknown,
  notFoundHint: string | undefined,
): void {
  const notFound = ['There is nothing at this address.', notFoundHint ?? []].flat().join(' ')
  const routes = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const methods = routes.get(url) ?? new Set<string>()
    routes.set(url, methods)
    for (const name of [method].flat()) methods.add(name.toUpperCase())
  })
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return
    const path = request.url.split('?', 1)[0] ?? ''
    const methods = [...routes].flatMap(([url, own]) => (isOf(url, path) ? [...own] : []))
    if (methods.length === 0) {
      sendProblem(reply, new Problem('not_found', notFound))
      return reply
    }
    const allowed = [...new Set(methods)].join(', ')
    reply.header('allow', `${allowed}, OPTIONS`)
    if (request.method === 'OPTIONS') return reply.code(204).send()
    sendProblem(reply, new Problem('method_not_allowed', `This address takes ${allowed}.`))
    return reply
  })
}

/** Whether a path matches a route: a parameter is any segment, a star the rest. */
function isOf(route: string, path: string): boolean {
  const wanted = route.split('/')
  const given = path.split('/')
  for (const [at, segment] of wanted.entries()) {
    if (segment === '*') return given.length > at
    const matches = segment.startsWith(':') ? Boolean(given[at]) : segment === given[at]
    if (!matches) return false
  }
  return given.length === wanted.length
}
