/**
 * The example of the whole exchange of an install, compiled and run unchanged: it registers once,
 * keeps the install for itself, sends with its key, and registers again when it is refused or its
 * token ends. Java runs here; the tools of Kotlin, Swift and Dart are not on a plain machine.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createInstallService } from '../../support/client/install-service.ts'

const examples = join(import.meta.dirname, '../../../services/ingest/examples/installs')
const hmacSecret = 'q7Yw1vVh0o3mK5tR8uX2zA4cE6gI9jL1nP3rT5vX7zB'
const day = 86_400_000
const submission = JSON.stringify({ tenant_id: 'acme', device_id: 'd-1', note: 'grün' })

let folder: string
let server: Server
let service: ReturnType<typeof createInstallService>
let tokenLifeMs = 30 * day

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'install-examples-'))
  const source = join(examples, 'InstallExchange.java')
  await promisify(execFile)('javac', ['-Xlint:all', '-Werror', '-d', folder, source])
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { status, json } = service.answer({
      method: request.method!,
      path: request.url!,
      headers: new Headers(request.headers as Record<string, string>),
      body: Buffer.concat(chunks),
    })
    response.writeHead(status).end(JSON.stringify(json))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterAll(async () => {
  server.close()
  await rm(folder, { recursive: true })
})

beforeEach(async () => {
  tokenLifeMs = 30 * day
  await rm(join(folder, 'install'), { force: true })
  start()
})

function start(): void {
  const common = { tenantId: 'acme', hmacSecret, nowMs: () => Date.now() }
  service = createInstallService({ ...common, tokenLifeMs })
}

/** Sends one submission. @returns the exit status and what it printed */
async function run(): Promise<{ code: number | null; out: string }> {
  const env = {
    PATH: process.env.PATH,
    INGEST_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    HMAC_SECRET: hmacSecret,
    TENANT_ID: 'acme',
    DEVICE_ID: 'd-1',
    INSTALL_FILE: join(folder, 'install'),
  }
  const child = spawn('java', ['-cp', folder, 'InstallExchange'], { env })
  let out = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (out += data))
  child.stdin.end(submission)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out: out.trim() }
}

const counts = () =>
  ['challenge', 'installs', 'ingest'].map((name) => service.count(`/v1/rasp/${name}`))

describe('Java', () => {
  it('registers once, keeps the install for itself, and sends with its key', async () => {
    const [first, second] = [await run(), await run()]
    expect([first.code, second.code]).toEqual([0, 0])
    expect(first.out).toMatch(/^200 .*"accepted"/)
    expect(counts()).toEqual([1, 1, 2])
    expect(service.registrations).toMatchObject([
      { device_id: 'd-1', evidence: { provider: 'none' } },
    ])
    const sent = service.asked.at(-1)!
    expect(sent.body.toString()).toBe(submission)
    expect(sent.headers.get('x-service-install')).toMatch(/^ins1\./)
    expect((await stat(join(folder, 'install'))).mode & 0o077).toBe(0)
  })

  it('registers again when it is refused, once', async () => {
    await run()
    service.rotate()
    expect((await run()).code).toBe(0)
    expect(counts()).toEqual([2, 2, 3])
    const { answer } = service
    service.answer = (request) =>
      request.path.endsWith('ingest')
        ? { status: 401, json: { code: 'signature_invalid' } }
        : answer(request)
    expect(await run()).toMatchObject({ code: 1, out: expect.stringMatching(/^401 /) })
    expect(counts()).toEqual([3, 3, 3])
  })

  it('registers again within the last day of its token', async () => {
    tokenLifeMs = day - 60_000
    start()
    await run()
    await run()
    expect(counts()).toEqual([2, 2, 2])
  })
})

it('four languages show the whole exchange: the same headers, paths and steps', async () => {
  const names = (await readdir(examples)).sort()
  expect(names.map((name) => name.split('.').pop())).toEqual(['java', 'kt', 'dart', 'swift'])
  for (const name of names) {
    const text = await readFile(join(examples, name), 'utf8')
    for (const part of [
      ...['v1/rasp/challenge', 'v1/rasp/installs', 'v1/rasp/ingest', 'X-Service-Install'],
      ...['X-Service-Signature', 'install_token', 'install_key', 'expires_at', '401'],
    ]) {
      expect({ name, has: text.includes(part) ? part : null }).toEqual({ name, has: part })
    }
  }
  const kotlin = await readFile(join(examples, 'InstallExchange.kt'), 'utf8')
  for (const part of ['setAttestationChallenge', 'SHA256withECDSA', 'X-Service-Attestation']) {
    expect(kotlin).toContain(part)
  }
  const swift = await readFile(join(examples, 'install_exchange.swift'), 'utf8')
  for (const part of ['attestKey', 'generateAssertion', 'X-Service-Attestation']) {
    expect(swift).toContain(part)
  }
})
