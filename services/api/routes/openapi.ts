/**
 * The document of the public interface at `/openapi.json`, and a page to read it at `/docs/`. The
 * page brings everything it needs: it works without the internet and asks nobody else for anything.
 * Every address in it is relative, so both also work behind a proxy that puts them below a prefix.
 */
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { createOpenapiDocument } from '../openapi/openapi-document.ts'

/** Scripts and styles of the page itself alone; it may call the host that served it. */
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

/** The page's own redirects and links name the path from the root, which a prefix makes wrong. */
const relativeRedirects: Record<string, string> = {
  '/docs': 'docs/',
  '/docs/static/index.html': '../',
}

export async function addOpenapiRoutes(app: FastifyInstance): Promise<void> {
  const document = createOpenapiDocument()
  const text = JSON.stringify(document)
  app.get('/openapi.json', async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(text),
  )
  await app.register(swagger, {
    mode: 'static',
    specification: { document: document as never },
  })
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
      servers: [{ url: '..', description: 'The host that serves this page.' }],
    }),
    transformSpecificationClone: false,
    staticCSP: contentSecurityPolicy,
    uiConfig: { deepLinking: true, docExpansion: 'list', tryItOutEnabled: false },
    theme: { title: 'Device intelligence: reference' },
  })
}
