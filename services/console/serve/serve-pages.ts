/**
 * Serves the console's pages beside the admin API: the one document for every page's address, the
 * same with 404 for a browser at an unknown one, and the files it loads. The prefix of `PUBLIC_URL` is put in when the document is sent, so the pages
 * are built once for all. Pages carry a content policy with a nonce; the admin API's answers carry
 * one that allows nothing, and no nonce, so that equal answers are equal.
 */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import helmet from '@fastify/helmet'
import serveStatic from '@fastify/static'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '#shared/core/http/problem.ts'
import { sendProblem } from '#shared/io/http/problem-answers.ts'
import { pagesFolder } from './pages-folder.ts'

export type PagesDeps = {
  /** Where browsers reach the console; its path is the prefix of every address. */
  publicUrl: () => string
  /** Where the built pages are, `web/dist` by default. */
  pagesFolder?: string
}

/** First segments of the pages' addresses; the router knows what follows them. */
const pagePaths = ['/', '/invite', '/oidc', '/account', '/manage/*', '/search', '/help', '/t/*']

/** Adds the pages to the console's server. */
export async function addPages(app: FastifyInstance, deps: PagesDeps): Promise<void> {
  const folder = deps.pagesFolder ?? pagesFolder
  await app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: nothingAllowed },
    // The document has it where the console is reached over HTTPS.
    strictTransportSecurity: false,
    referrerPolicy: { policy: 'no-referrer' },
    xFrameOptions: { action: 'deny' },
  })
  app.setNotFoundHandler((request, reply) => {
    // A cache must not hand the answer for one to the other.
    reply.header('vary', 'accept')
    return asksForPage(request)
      ? sendNotFoundPage(reply, folder, new URL(deps.publicUrl()))
      : sendProblem(reply, new Problem('not_found', 'There is nothing at this address.'))
  })
  await app.register(serveStatic, {
    root: join(folder, 'assets'),
    prefix: '/assets/',
    // Their names have a hash of their content.
    immutable: true,
    maxAge: '365d',
    preCompressed: true,
    index: false,
    schemaHide: true,
    wildcard: true,
  })
  for (const path of pagePaths) {
    const helmetOfPages = {
      enableCSPNonces: true,
      contentSecurityPolicy: { useDefaults: false, directives: contentPolicy },
    }
    const options = { schema: { hide: true } as object, helmet: helmetOfPages }
    app.get(path, options, async (_, reply) =>
      sendDocument(reply, folder, new URL(deps.publicUrl()), reply.cspNonce.style),
    )
  }
  for (const name of ['theme.js', 'favicon.svg']) {
    app.get(`/${name}`, { schema: { hide: true } as object }, async (_, reply) => {
      reply.header('cache-control', 'public, max-age=300')
      return reply.sendFile(name, folder, { cacheControl: false })
    })
  }
}

/**
 * The address of a request without the prefix of `PUBLIC_URL`, for proxies that leave it in; others
 * have taken it off already.
 */
export function withoutPrefix(url: string, publicUrl: string): string {
  const { pathname } = new URL(publicUrl)
  const prefix = pathname.endsWith('/') ? pathname.slice(0, -1) : pathname
  if (prefix === '' || !(url === prefix || url.startsWith(`${prefix}/`))) return url
  return url.slice(prefix.length) || '/'
}

/**
 * Whether a browser is led to an address: it names HTML, which no client of the API and no script
 * or style sheet of a page does. Addresses of the API are answered to clients alone.
 */
export const asksForPage = ({ method, url, headers }: FastifyRequest): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  !url.startsWith('/admin/v1') &&
  /\btext\/html\b/.test(headers.accept ?? '')

/** Sends the document with 404: its router shows that there is no such page. */
function sendNotFoundPage(reply: FastifyReply, folder: string, url: URL): Promise<FastifyReply> {
  const nonce = randomBytes(nonceBytes).toString('hex')
  const styleSrc = [...self, `'nonce-${nonce}'`]
  reply.helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { ...contentPolicy, styleSrc } },
  })
  return sendDocument(reply.code(404), folder, url, nonce)
}

/** Sends `index.html` with its prefix. @throws Problem not_found while nothing is built */
async function sendDocument(
  reply: FastifyReply,
  folder: string,
  { protocol, pathname }: URL,
  nonce: string,
): Promise<FastifyReply> {
  const document = await readFile(join(folder, 'index.html'), 'utf8').catch(() => {
    throw new Problem('not_found', 'The pages are not built: run npm run build:console.')
  })
  const base = pathname.endsWith('/') ? pathname : `${pathname}/`
  reply.header('cache-control', 'no-cache')
  if (protocol === 'https:') reply.header('strict-transport-security', 'max-age=31536000')
  return reply
    .type('text/html; charset=utf-8')
    .send(document.replace('%BASE%', escapeHtml(base)).replace('%NONCE%', nonce))
}

/** As many as helmet's. */
const nonceBytes = 16

const escapeHtml = (text: string) =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)

const self = ["'self'"]

/** For answers that are not pages. */
const nothingAllowed = { defaultSrc: ["'none'"], frameAncestors: ["'none'"] }

/**
 * Own files alone: inline scripts, `style` attributes and other origins are all refused. The nonce
 * that helmet adds is for the style elements that the dialogs make.
 */
const contentPolicy = {
  defaultSrc: ["'none'"],
  scriptSrc: self,
  styleSrc: self,
  imgSrc: self,
  connectSrc: self,
  formAction: self,
  baseUri: self,
  frameAncestors: ["'none'"],
}
