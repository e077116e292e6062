/** Traces of API calls: one span of each sampled call with a valid key. */
import type { FastifyInstance } from 'fastify'
import type { Tracing } from '#shared/io/tracing/tracing.ts'

/** Call it where `request.caller` is set. */
export function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  app.addHook('onResponse', async (request, reply) => {
    const caller = request.caller as typeof request.caller | null
    if (caller === null) return
    const { method, headers, routeOptions } = request
    const route = routeOptions.url ?? 'unknown'
    const span = tracing.startTrace(`${method} ${route}`, {
      kind: 'server',
      agoMs: reply.elapsedTime,
      link: headers.traceparent,
      attributes: {
        'http.request.method': method,
        'http.route': route,
        'http.response.status_code': reply.statusCode,
        'di.tenant_id': caller.tenantId,
      },
    })
    span?.end({ isFailed: reply.statusCode >= 500 })
  })
}
