/**
 * The document of the public interface at `/openapi.json`, and a page to read it at `/docs/`. The
 * page needs no other host, so it works without the internet. Every address in it is relative, so
 * both also work behind a proxy that serves them below a prefix.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { addOpenapi } from '#shared/io/http/openapi.ts'
import { ingestPath, type PublicUrls, toApiServer, toPublicDocument } from './document.ts'
import { readSigningSamples } from './signing-samples.ts'

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

const css = `.swagger-ui .topbar { display: none }
.swagger-ui .markdown details pre code { font: 12px/1.5 monospace; color: inherit }
.swagger-ui .markdown summary { cursor: pointer; font-size: 14px; padding: 4px 0 }
`

/** The page's own icon; its bar would show the name of the program that draws the page. */
const theme = {
  title: 'Device intelligence: reference',
  css: [{ filename: 'reference.css', content: css }],
  favicon: [
    {
      filename: 'favicon.svg',
      rel: 'icon',
      type: 'image/svg+xml',
      sizes: 'any',
      content: readFileSync(join(import.meta.dirname, 'favicon.svg'), 'utf8'),
    },
  ],
}

type Paths = Record<string, { post?: { description: string } }>

/** The paths with programs below the description of the ingest call. */
function withSamples(paths: Paths, samples: string): Paths {
  const { post, ...item } = paths[ingestPath]!
  const description = `${post!.description}\n\n${samples}`
  return { ...paths, [ingestPath]: { ...item, post: { ...post, description } } }
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
  const samples = readSigningSamples()
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    // The page reads the document from its own folder.
    transformSpecification: (specification) => ({
      ...specification,
      paths: withSamples(specification.paths as Paths, samples),
      servers: [toApiServer(urls, '..')],
    }),
    transformSpecificationClone: false,
    staticCSP: contentSecurityPolicy,
    uiConfig: { deepLinking: true, docExpansion: 'list', tryItOutEnabled: false },
    theme,
  })
}
