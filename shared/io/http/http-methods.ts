/**
 * Answers requests that no route handles, before their body is read: 404 for an unknown path, with
 * the nearest route; 405 with `Allow` for an unsupported method, 204 with `Allow` for OPTIONS.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { findNearestRoute, type KnownRoute } from '#shared/core/http/nearest-route.ts'
import { Problem } from '#shared/core/http/problem.ts'

export type UnroutedAnswers = {
  /** A sentence for people who called an address that does not exist. */
  notFoundHint?: string
  /** Whether the app's own handler answers a request for an address that does not exist. */
  hasNotFoundPage?: (request: FastifyRequest) => boolean
}

/** Call it before the routes are added. */
export function addUnroutedAnswers(
  app: FastifyInstance,
  sendProblem: (reply: FastifyReply, problem: Problem) => unknown,
  { notFoundHint, hasNotFoundPage }: UnroutedAnswers,
): void {
  const further = notFoundHint === undefined ? '' : ` ${notFoundHint}`
  const routes = new Map<string, Set<string>>()
  const documented = new Map<string, KnownRoute>()
  app.addHook('onRoute', ({ url, method, schema }) => {
    const names = [method].flat().map((name) => name.toUpperCase())
    const methods = routes.get(url) ?? new Set<string>()
    routes.set(url, methods)
    for (const name of names) methods.add(name)
    if ((schema as { hide?: boolean } | undefined)?.hide === true) return
    const before = documented.get(url)?.methods ?? []
    const shown = names.filter((name) => name !== 'HEAD' && !before.includes(name))
    documented.set(url, { url, methods: [...before, ...shown] })
  })
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return
    const { method } = request
    const path = request.url.split('?', 1)[0] ?? ''
    const methods = [...routes].flatMap(([url, own]) => (isOf(url, path) ? [...own] : []))
    const allowed = [...new Set(methods)].join(', ')
    if (allowed !== '') reply.header('allow', `${allowed}, OPTIONS`)
    if (allowed !== '' && method === 'OPTIONS') return reply.code(204).send()
    if (allowed === '' && hasNotFoundPage?.(request) === true) return
    const nearest = findNearestRoute({ method, path }, [...documented.values()])
    const hint = nearest === null ? '' : ` The nearest call is ${nearest}.`
    const problem =
      allowed === ''
        ? new Problem('not_found', `There is nothing at this address.${hint}${further}`)
        : new Problem('method_not_allowed', `This address takes ${allowed}.${hint}`)
    sendProblem(reply, problem)
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
