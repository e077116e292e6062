/**
 * Requests to an address that exists, with a method it does not take: OPTIONS says what it takes,
 * all else is a 405 that says so too. Answered before a body is read.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { Problem } from '#shared/core/problem.ts'

/**
 * Answers what no route of `app` took. Call it before the routes are added.
 * @param sendProblem how a problem leaves the process
 */
export function addUnroutedAnswers(
  app: FastifyInstance,
  sendProblem: (reply: FastifyReply, problem: Problem) => unknown,
): void {
  const routes: { pattern: RegExp; methods: Set<string> }[] = []
  app.addHook('onRoute', ({ url, method }) => {
    const source = toPattern(url).source
    const known = routes.find(({ pattern }) => pattern.source === source)
    const route = known ?? { pattern: toPattern(url), methods: new Set<string>() }
    for (const name of [method].flat()) route.methods.add(name.toUpperCase())
    if (known === undefined) routes.push(route)
  })
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return
    const path = request.url.split('?', 1)[0] ?? ''
    const methods = routes
      .filter(({ pattern }) => pattern.test(path))
      .flatMap((route) => [...route.methods])
    if (methods.length === 0) {
      sendProblem(reply, new Problem('not_found', 'There is nothing at this address.'))
      return reply
    }
    reply.header('allow', [...new Set(methods), 'OPTIONS'].join(', '))
    if (request.method === 'OPTIONS') return reply.code(204).send()
    sendProblem(reply, new Problem('method_not_allowed', 'This address takes other methods.'))
    return reply
  })
}

/** A route's address as a pattern of what is sent: parameters are segments, a star is the rest. */
function toPattern(url: string): RegExp {
  const source = url
    .split(/(:\w+|\*)/)
    .map((part, index) => {
      if (index % 2 === 0) return part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
      return part === '*' ? '.*' : '[^/]+'
    })
    .join('')
  return new RegExp(`^${source}$`)
}
