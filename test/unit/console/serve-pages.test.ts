// The console serves its pages: one document for every address, cached files, and headers that
// allow a page to load from and connect to its own origin only.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHttpServer } from '#shared/io/http/http-server.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import {
  addPages,
  asksForPage,
  withoutPrefix,
} from '../../../services/console/serve/serve-pages.ts'

const folder = mkdtempSync(join(tmpdir(), 'di-pages-'))
const script = 'export const answer = 42\n'.repeat(50)

beforeAll(() => {
  mkdirSync(join(folder, 'assets'))
  const head = '<base href="%BASE%"><meta property="csp-nonce" nonce="%NONCE%">'
  writeFileSync(join(folder, 'index.html'), head)
  writeFileSync(join(folder, 'theme.js'), '')
  writeFileSync(join(folder, 'assets/index-abc.js'), script)
  writeFileSync(join(folder, 'assets/index-abc.js.gz'), gzipSync(script))
})
afterAll(() => rmSync(folder, { recursive: true }))

async function serve(publicUrl: string, pagesFolder = folder) {
  const app = createHttpServer({
    log: createLog('console', 'silent'),
    metrics: createMetrics('console'),
    hasNotFoundPage: asksForPage,
  })
  await addPages(app, { publicUrl: () => publicUrl, pagesFolder })
  return app
}

describe('the document', () => {
  it.each(['/', '/account', '/invite', '/t/acme/alerts', '/manage/integrations/acme'])(
    'is served at %s and revalidated on each load',
    async (url) => {
      const app = await serve('http://localhost:8082')
      const { statusCode, headers, body } = await app.inject({ url })
      expect([statusCode, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
      expect(headers['cache-control']).toBe('no-cache')
      expect(body).toContain('<base href="/">')
      await app.close()
    },
  )

  it('has the escaped prefix of PUBLIC_URL', async () => {
    const app = await serve('https://tools.example/di/a%22b')
    const { body } = await app.inject({ url: '/t/acme/alerts' })
    expect(body).toContain('<base href="/di/a%22b/">')
    await app.close()
  })

  it('lets a page use only its own origin, and no inline script', async () => {
    const app = await serve('https://console.example')
    const { headers, body } = await app.inject({ url: '/' })
    const policy = String(headers['content-security-policy'])
    const nonce = /nonce="([^"]+)"/.exec(body)?.[1]
    expect(nonce).toMatch(/^[0-9a-f]{32}$/)
    const directives = new Map(
      policy.split(';').map((text) => {
        const [name = '', ...sources] = text.trim().split(' ')
        return [name, sources.filter((source) => !source.startsWith("'nonce-"))]
      }),
    )
    expect(Object.fromEntries(directives)).toEqual({
      'default-src': ["'none'"],
      'script-src': ["'self'"],
      'style-src': ["'self'"],
      'img-src': ["'self'"],
      'connect-src': ["'self'"],
      'form-action': ["'self'"],
      'base-uri': ["'self'"],
      'frame-ancestors': ["'none'"],
    })
    expect(policy).toContain(`style-src 'self' 'nonce-${nonce}'`)
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'strict-transport-security': 'max-age=31536000',
    })
    await app.close()
  })

  it('sends the HTTPS header only where it is reached by HTTPS', async () => {
    const app = await serve('http://localhost:8082')
    const { headers } = await app.inject({ url: '/' })
    expect(headers).not.toHaveProperty('strict-transport-security')
    await app.close()
  })

  it('is a 404 for a browser at an unknown address; clients and other methods get JSON', async () => {
    const app = await serve('https://tools.example/di')
    const html = 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8'
    const ask = async (url: string, accept?: string, method: 'GET' | 'POST' | 'HEAD' = 'GET') => {
      const headers = accept === undefined ? {} : { accept }
      const answer = await app.inject({ url, method, headers })
      const [type] = String(answer.headers['content-type']).split(';')
      return { ...answer, said: [answer.statusCode, type] as const }
    }
    const { said, body, headers } = await ask('/nothing/here', html)
    expect(said).toEqual([404, 'text/html'])
    expect(body).toContain('<base href="/di/">')
    const nonce = /nonce="([0-9a-f]{32})"/.exec(body)?.[1]
    expect(headers['content-security-policy']).toContain(`style-src 'self' 'nonce-${nonce}'`)
    expect(headers['content-security-policy']).toContain("script-src 'self'")
    expect(headers.vary).toContain('accept')
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-cache',
    })
    expect((await ask('/manage', html, 'HEAD')).said).toEqual([404, 'text/html'])
    const json = [404, 'application/problem+json']
    for (const accept of [undefined, '*/*', 'application/json']) {
      expect((await ask('/nothing', accept)).said).toEqual(json)
    }
    expect((await ask('/admin/v1/nothing', html)).said).toEqual(json)
    expect((await ask('/nothing', html, 'POST')).said).toEqual(json)
    expect((await ask('/account', html, 'POST')).said[0]).toBe(405)
    await app.close()
  })

  it('explains how to build the pages when they are missing', async () => {
    const app = await serve('http://localhost:8082', join(folder, 'absent'))
    const { statusCode, body } = await app.inject({ url: '/' })
    expect(statusCode).toBe(404)
    expect(JSON.parse(body)).toMatchObject({
      code: 'not_found',
      detail: expect.stringContaining('npm run build:console'),
    })
    await app.close()
  })
})

describe('the files of the pages', () => {
  it('are cached for a year and compressed', async () => {
    const app = await serve('http://localhost:8082')
    const url = '/assets/index-abc.js'
    const { headers, rawPayload } = await app.inject({
      url,
      headers: { 'accept-encoding': 'gzip' },
    })
    expect(headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-encoding': 'gzip',
      'x-content-type-options': 'nosniff',
    })
    expect(headers['content-type']).toContain('javascript')
    expect(rawPayload.length).toBeLessThan(script.length)
    expect((await app.inject({ url })).body).toBe(script)
    await app.close()
  })

  it('are never served from outside their folder; a missing file is not the document', async () => {
    const app = await serve('http://localhost:8082')
    for (const url of ['/assets/absent.js', '/assets/../index.html', '/assets/%2e%2e/index.html']) {
      const { statusCode, headers } = await app.inject({ url })
      expect([url, statusCode]).toEqual([url, 404])
      expect(headers['content-type']).toContain('application/problem+json')
    }
    await app.close()
  })
})

describe('a path without the prefix', () => {
  it.each([
    ['/di/t/acme', '/t/acme'],
    ['/di', '/'],
    ['/di/?a=1', '/?a=1'],
    ['/t/acme', '/t/acme'],
    ['/diary', '/diary'],
  ])('of %s is %s', (url, expected) => {
    expect(withoutPrefix(url, 'https://tools.example/di/')).toBe(expected)
  })

  it('is unchanged where PUBLIC_URL has no path', () => {
    expect(withoutPrefix('/t/acme', 'https://console.example')).toBe('/t/acme')
  })
})
