// The API's page and its device ids behind a reverse proxy that serves it below a prefix. The proxy
// works like nginx: `proxy_pass http://api/` decodes the path and encodes it again; another proxy
// passes the rest of the path unchanged.
import { readFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiRig, acceptEvent, startApiRig } from '../../support/http/api-rig.ts'

let rig: ApiRig
let key: string
const proxies: Server[] = []

beforeAll(async () => {
  rig = await startApiRig()
  key = await rig.addTenant('acme')
})
afterAll(async () => {
  for (const proxy of proxies) proxy.close()
  await rig?.close()
})

type Document = { paths: Record<string, { post: { description: string } }> }

/** A decoded path, encoded again as nginx does. */
const encodeAgain = (path: string): string =>
  decodeURIComponent(path).replace(/[^!-~]|[%?#]/gu, (one) => encodeURIComponent(one))

/** @returns the address under which the API is served */
async function startProxy(toPath: (path: string) => string): Promise<string> {
  const proxy = createServer((incoming, outgoing) => {
    const [path = '', query] = (incoming.url ?? '').replace(/^\/risk/, '').split('?', 2)
    const sent = request(
      new URL(rig.url),
      {
        method: incoming.method,
        path: toPath(path) + (query === undefined ? '' : `?${query}`),
        headers: { ...incoming.headers, host: 'api' },
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      },
    )
    incoming.pipe(sent)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  proxies.push(proxy)
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/risk`
}

describe.each([
  ['that passes paths on as they came', (path: string) => path],
  ['that decodes paths and encodes them again', encodeAgain],
])('behind a proxy %s', (_, toPath) => {
  let base: string
  beforeAll(async () => {
    base = await startProxy(toPath)
  })

  it.each(['/docs', '/docs/', '/docs/static/index.html'])(
    '%s shows its complete page',
    async (at) => {
      const page = await fetch(base + at)
      expect(page.status).toBe(200)
      expect(page.url).toBe(`${base}/docs/`)
      const links = [...(await page.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(
        ([, to]) => to!,
      )
      expect(links.length).toBeGreaterThan(3)
      for (const link of [...links, './json']) {
        const part = await fetch(new URL(link, page.url))
        expect([link, part.status]).toEqual([link, 200])
        await part.body?.cancel()
      }
    },
  )

  it('/docs shows programs that sign, and no logo of another product', async () => {
    const page = await (await fetch(`${base}/docs/`)).text()
    expect(page).not.toMatch(/favicon-\d+x\d+\.png/)
    const theme = [...page.matchAll(/(?:src|href)="([^"]*theme[^"]+)"/g)].map(([, to]) => to!)
    expect(theme.map((path) => path.split('/').at(-1))).toEqual(['reference.css', 'favicon.svg'])
    const css = await fetch(new URL(theme[0]!, `${base}/docs/`))
    expect(await css.text()).toMatch(/\.topbar \{ display: none/)
    const document = (await (await fetch(`${base}/docs/json`)).json()) as Document
    const { description } = document.paths['/v1/rasp/ingest']!.post
    const languages = [...description.matchAll(/<summary>([^<]+)</g)].map(([, name]) => name)
    expect(languages).toEqual(['Python', 'Java', 'Go', 'C#', 'PHP'])
    const python = readFileSync('services/ingest/examples/send_telemetry.py', 'utf8')
    expect(description).toContain(python.trimEnd())
  })

  it.each(['/openapi.json', '/docs/json'])('%s names the address for calls', async (at) => {
    const document = await fetch(base + at)
    const { servers } = (await document.json()) as { servers: { url: string }[] }
    const server = new URL(servers[0]!.url, document.url).href.replace(/\/$/, '')
    expect(server).toBe(base)
    const answer = await fetch(`${server}/v1/di/alerts`, {
      headers: { authorization: `Bearer ${key}` },
    })
    expect(answer.status).toBe(200)
  })

  it('finds a device with any id', async () => {
    const ids = ['a/b', '/a', 'a/', 'a//b', 'a/b/sessions', 'a%2Fb', 'é/ß', 'a b/c', '?/#', '100%/']
    await rig.telemetry.insertTelemetry(
      ids.map((deviceId) =>
        acceptEvent({ tenantId: 'acme', deviceId, sessionId: 's', atMs: Date.now() }),
      ),
    )
    for (const id of ids) {
      const answer = await fetch(
        `${base}/v1/di/devices/${encodeURIComponent(id)}?sessions_limit=1`,
        {
          headers: { authorization: `Bearer ${key}` },
        },
      )
      expect([answer.status, ((await answer.json()) as { device_id: string }).device_id]).toEqual([
        200,
        id,
      ])
    }
  })
})
