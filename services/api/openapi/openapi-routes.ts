/**
 * The document of the public interface at `/openapi.json`, and a page to read it at `/docs/`. The
 * page needs no other host, so it works without the internet. Every address in it is relative, so
 * both also work behind a proxy that serves them below a prefix.
 */
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { addOpenapi } from '#shared/io/http/openapi.ts'
import { type PublicUrls, toApiServer, toPublicDocument } from './document.ts'

/** Allows the page's own scripts and styles, and calls to the host that served it. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The plugin's redirects are absolute, which is wrong behind a prefix. */
const relativeRedirects: Record<string, string> = {
  '/docs': 'docs/',
  '/docs/static/index.html': '../',
}

/** Adds both routes. Call it before the routes that the document describes. */
export async function addOpenapiRoutes(app: FastifyInstance, urls: PublicUrls): Promise<void> {
  await addOpenapi(app, toPublicDocument(urls))
  let text = ''
  app.addHook('onReady', async () => {
    text = JSON.stringify(app.swagger())
  })
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(text),
  )
  app.addHook('onRequest', async (request, reply) => {
    const [path, query] = request.url.split('?', 2)
    const target = relativeRedirects[path ?? '']
    if (target === undefined || request.method !== 'GET') return
    return reply.redirect(query === undefined ? target : `${target}?${query}`)
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    // The page reads the document from its own folder.
    transformSpecification: (specification) => ({
      ...specification,
      servers: [toApiServer(urls, '..')],
    }),
    transformSpecificationClone: false,
    staticCSP: contentSecurityPolicy,
    uiConfig: { deepLinking: true, docExpansion: 'list', tryItOutEnabled: false },
    theme: { title: 'Device intelligence: reference' },
  })
}
