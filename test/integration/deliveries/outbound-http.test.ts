// Webhook requests to good and faulty receivers. Hostile ones are in `outbound-hostile.test.ts`,
// forbidden addresses in `outbound-addresses.test.ts`.
import { readFileSync } from 'node:fs'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, expect, test } from 'vitest'
import type { WebhookRules } from '#shared/core/deliveries/outbound-address.ts'
import {
  checkWebhookTarget,
  createDnsResolve,
  createOutbound,
  type Outbound,
  OutboundError,
  type OutboundOptions,
  StaleConnectionError,
} from '#shared/io/deliveries/outbound/outbound-client.ts'
import { startRawReceiver, startReceiver } from '../../support/deliveries/receiver.ts'
import { afterTurns } from '../../support/process/turns.ts'
import { waitFor } from '../../support/process/wait-for.ts'
import { startDns } from '../../support/servers/dns-server.ts'

const live: WebhookRules = { environment: 'live', allowPrivate: true }
const near: WebhookRules = { environment: 'sandbox', allowPrivate: true }
const body = Buffer.from('{"alert_id":"alr_1"}')
const headers = { 'content-type': 'application/json', 'x-service-delivery': 'dlv_1' }

const closers: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function make(options: OutboundOptions = {}): Outbound {
  const outbound = createOutbound(options)
  closers.push(() => outbound.close())
  return outbound
}
async function receiver(...args: Parameters<typeof startReceiver>) {
  const started = await startReceiver(...args)
  closers.push(started.close)
  return started
}
async function rawReceiver(onSocket: (socket: Socket) => void) {
  const started = await startRawReceiver(onSocket)
  closers.push(started.close)
  return started
}
async function dnsServer(...args: Parameters<typeof startDns>) {
  const started = await startDns(...args)
  closers.push(started.close)
  return started
}

/** A signal with a time limit as a delivery attempt's. */
function within(ms: number): AbortSignal {
  const controller = new AbortController()
  const reason = new OutboundError('timeout', `no answer within ${ms} ms`)
  closers.push(afterTurns(ms, () => controller.abort(reason)))
  return controller.signal
}

type Sent = { url: string; rules?: WebhookRules; owner?: string; ms?: number }

async function send(outbound: Outbound, { url, rules = near, owner = 'acme', ms = 60_000 }: Sent) {
  const signal = within(ms)
  const connection = await outbound.connect({ url: new URL(url), rules, owner }, signal)
  return connection.post(body, headers, signal)
}

/** The error of a request that must fail. */
async function failure(outbound: Outbound, sent: Sent): Promise<OutboundError> {
  const error = await send(outbound, sent).then(
    (answer) => new Error(`it was answered ${answer.status}`),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(OutboundError)
  return error as OutboundError
}

test('the exact bytes and headers arrive, and the answer comes back', async () => {
  const there = await receiver((response) => response.writeHead(202).end('taken'))
  const answer = await send(make(), { url: `${there.url}?a=b%20c` })
  expect(answer).toMatchObject({ status: 202, retryAfter: undefined })
  expect(answer.body.toString()).toBe('taken')
  expect(there.requests[0]).toMatchObject({ method: 'POST', path: '/hook?a=b%20c' })
  expect(there.requests[0]!.body.equals(body)).toBe(true)
  expect(there.requests[0]!.headers).toMatchObject({
    ...headers,
    host: `127.0.0.1:${there.port}`,
    'content-length': String(body.length),
  })
})

test('a connection is reused only by its owner, with its rules and its origin', async () => {
  const there = await receiver()
  const other = await receiver()
  const outbound = make()
  await send(outbound, { url: there.url })
  await send(outbound, { url: there.url.replace('/hook', '/changed') })
  expect(there.connections()).toBe(1)
  await send(outbound, { url: there.url, owner: 'rival' })
  expect(there.connections()).toBe(2)
  await send(outbound, { url: other.url })
  expect([there.connections(), other.connections()]).toEqual([2, 1])
  // The rules changed: the idle socket to an address that is now forbidden must not be reused.
  expect((await failure(outbound, { url: there.url, rules: live })).kind).toBe('refused_address')
  expect(there.requests).toHaveLength(3)
})

test('a connection that is too old is replaced, and its address checked again', async () => {
  const there = await receiver()
  let nowMs = 0
  const answers = [['127.0.0.1'], ['169.254.169.254']]
  const resolve = async () => answers.shift() ?? []
  const outbound = make({ ageMaxMs: 60_000, monotonicMs: () => nowMs, resolve })
  const url = `http://receiver.test:${there.port}/`
  await send(outbound, { url })
  nowMs = 59_999
  await send(outbound, { url })
  expect(there.connections()).toBe(1)
  nowMs = 60_000
  expect((await failure(outbound, { url })).kind).toBe('refused_address')
  expect(there.requests).toHaveLength(2)
})

test('idle connections are closed after a while, and a closed one is never an error', async () => {
  const there = await receiver()
  const outbound = make({ idleMs: 50 })
  await send(outbound, { url: there.url })
  expect(outbound.idleCount()).toBe(1)
  await waitFor(() => expect(outbound.idleCount()).toBe(0))
  await send(outbound, { url: there.url })
  there.closeIdleConnections()
  await waitFor(() => expect(outbound.idleCount()).toBe(0))
  expect((await send(outbound, { url: there.url })).status).toBe(200)
})

test('an answer may outlast the idle limit of a reused connection', async () => {
  let delayMs = 0
  const there = await receiver((response) => {
    setTimeout(() => response.writeHead(200).end('ok'), delayMs)
  })
  const outbound = make({ idleMs: 1_500 })
  await send(outbound, { url: there.url })
  delayMs = 2_500
  expect((await send(outbound, { url: there.url })).status).toBe(200)
  expect(there.connections()).toBe(1)
})

test('a connection that ended before its request reports that nothing was sent', async () => {
  const there = await receiver()
  const outbound = make()
  await send(outbound, { url: there.url })
  const target = { url: new URL(there.url), rules: near, owner: 'acme' }
  const connection = await outbound.connect(target, within(60_000))
  there.closeIdleConnections()
  await waitFor(() => expect(there.open()).toBe(0))
  // Our side sees the end one turn of the event loop later.
  await new Promise((resolve) => setImmediate(resolve))
  const posted = connection.post(body, headers, within(60_000))
  await expect(posted).rejects.toBeInstanceOf(StaleConnectionError)
  expect((await send(outbound, { url: there.url })).status).toBe(200)
})

test('an answer before its request is invalid', async () => {
  const there = await rawReceiver((socket) =>
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'),
  )
  const target = { url: new URL(there.url), rules: near, owner: 'acme' }
  const connection = await make().connect(target, within(60_000))
  await waitFor(() => expect(there.open()).toBe(0))
  const posted = connection.post(body, headers, within(60_000))
  await expect(posted).rejects.toMatchObject({ kind: 'protocol' })
})

test.each([301, 302, 303, 307, 308])(
  'a redirect (%d) is an answer and never followed',
  async (status) => {
    const trap = await receiver()
    const there = await receiver((response) =>
      response.writeHead(status, { location: trap.url }).end(),
    )
    expect((await send(make(), { url: there.url })).status).toBe(status)
    expect(trap.connections()).toBe(0)
  },
)

test('Retry-After is returned unchanged', async () => {
  const there = await receiver((r) => r.writeHead(503, { 'retry-after': '120' }).end())
  expect(await send(make(), { url: there.url })).toMatchObject({ status: 503, retryAfter: '120' })
})

test('the first 4 KiB of an answer are kept, and at most 64 KiB of it are read', async () => {
  let written = 0
  const there = await rawReceiver((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n')
      const more = () => {
        for (let canWrite = true; canWrite && !socket.destroyed; ) {
          canWrite = socket.write(Buffer.alloc(16_384, 'x'))
          written += 16_384
        }
      }
      socket.on('drain', more)
      more()
    })
  })
  const answer = await send(make(), { url: there.url })
  expect(answer.status).toBe(200)
  expect(answer.body.toString()).toBe('x'.repeat(4_096))
  await waitFor(() => expect(there.open()).toBe(0))
  // The receiver's bytes went into the kernel's buffers of the loopback connection, and no further.
  expect(written).toBeLessThan(16 * 1024 * 1024)
})

test('an answer of exactly 64 KiB is read to its end and the connection is reused', async () => {
  const there = await receiver((response) => response.end(Buffer.alloc(65_536, 'y')))
  const outbound = make()
  for (let i = 0; i < 3; i++) expect((await send(outbound, { url: there.url })).status).toBe(200)
  expect(there.connections()).toBe(1)
})

test.each([
  ['of known length', { 'content-length': String(60_000) }],
  ['in chunks', {}],
])('a body of empty lines, %s, is a body', async (_what, length) => {
  const lines = Buffer.alloc(60_000, '{\n')
  const there = await receiver((response) => response.writeHead(200, length).end(lines))
  const outbound = make()
  for (let i = 0; i < 3; i++) {
    const answer = await send(outbound, { url: there.url })
    expect(answer.body.equals(lines.subarray(0, 4_096))).toBe(true)
  }
  expect(there.connections()).toBe(1)
})

test('early hints, many headers and trailers of a good answer are accepted', async () => {
  const there = await receiver((response) => {
    response.writeProcessing()
    response.writeEarlyHints({ link: '</style.css>; rel=preload' })
    for (let n = 0; n < 90; n++) response.setHeader(`x-header-${n}`, 'v'.repeat(60))
    response.writeHead(202, { trailer: 'x-checksum' })
    for (let n = 0; n < 20; n++) response.write('piece')
    response.addTrailers({ 'x-checksum': 'abc' })
    response.end()
  })
  const outbound = make()
  for (let i = 0; i < 3; i++) {
    const answer = await send(outbound, { url: there.url })
    expect([answer.status, answer.body.toString()]).toEqual([202, 'piece'.repeat(20)])
  }
  expect(there.connections()).toBe(1)
})

test('a compressed answer is kept unchanged: a bomb is never inflated', async () => {
  const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024))
  const there = await receiver((r) => r.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
  const answer = await send(make(), { url: there.url })
  expect(answer.body.equals(bomb.subarray(0, 4_096))).toBe(true)
})

test('a silent receiver is aborted at the time limit and its socket closed', async () => {
  const there = await rawReceiver(() => undefined)
  const error = await failure(make(), { url: there.url, ms: 200 })
  expect(error).toMatchObject({ kind: 'timeout', address: '127.0.0.1' })
  await waitFor(() => expect(there.open()).toBe(0))
})

test.each([
  ['a reset', (socket: Socket) => socket.once('data', () => socket.resetAndDestroy()), 'reset'],
  ['a close', (socket: Socket) => socket.once('data', () => socket.end()), 'reset'],
  ['a close at once', (socket: Socket) => socket.end(), 'reset'],
  ['garbage', (socket: Socket) => socket.once('data', () => socket.end('SSH-2.0\r\n')), 'protocol'],
  [
    'an upgrade',
    (socket: Socket) =>
      socket.once('data', () =>
        socket.write('HTTP/1.1 101 No\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
      ),
    'protocol',
  ],
] as const)('%s instead of an answer has its own error kind', async (_what, onSocket, kind) => {
  const there = await rawReceiver((socket) => void onSocket(socket))
  const outbound = make()
  expect((await failure(outbound, { url: there.url })).kind).toBe(kind)
  expect(outbound.idleCount()).toBe(0)
})

test('a port without a listener is a connect error', async () => {
  const there = await startReceiver()
  await there.close()
  expect(await failure(make(), { url: there.url })).toMatchObject({
    kind: 'connect',
    address: '127.0.0.1',
  })
})

test('when one address cannot be connected to, the next one is tried', async () => {
  const there = await receiver()
  // No process listens on 127.0.0.9 at that port.
  const outbound = make({ resolve: async () => ['127.0.0.9', '127.0.0.1'] })
  const answer = await send(outbound, { url: `http://receiver.test:${there.port}/` })
  expect(answer.status).toBe(200)
})

test('an aborted attempt ends at once with its reason', async () => {
  const there = await rawReceiver(() => undefined)
  const controller = new AbortController()
  const target = { url: new URL(there.url), rules: near, owner: 'acme' }
  const connection = await make().connect(target, controller.signal)
  const posted = connection.post(body, headers, controller.signal)
  controller.abort(new OutboundError('aborted', 'stopping'))
  await expect(posted).rejects.toMatchObject({ kind: 'aborted' })
  await waitFor(() => expect(there.open()).toBe(0))
})

const pem = (name: string) =>
  readFileSync(new URL(`../../vectors/${name}.pem`, import.meta.url), 'utf8')

async function tlsReceiver(answerAfterMs: () => number = () => 0) {
  const names: string[] = []
  const server = createTlsServer(
    {
      key: pem('receiver-key'),
      cert: pem('receiver-cert'),
      SNICallback: (name, done) => {
        names.push(name)
        done(null)
      },
    },
    (_request, response) => setTimeout(() => response.end('ok'), answerAfterMs()),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { port: (server.address() as AddressInfo).port, names }
}

test('over TLS, too, an answer may outlast the idle limit of a reused connection', async () => {
  let delayMs = 0
  const { port } = await tlsReceiver(() => delayMs)
  const resolve = async () => ['127.0.0.1']
  const outbound = make({ resolve, trustedCertificates: pem('receiver-cert'), idleMs: 1_500 })
  await send(outbound, { url: `https://receiver.test:${port}/` })
  delayMs = 2_500
  const answer = await send(outbound, { url: `https://receiver.test:${port}/` })
  expect(answer.status).toBe(200)
})

test('TLS sends the host name and accepts only a trusted certificate for it', async () => {
  const { port, names } = await tlsReceiver()
  const resolve = async () => ['127.0.0.1']
  const trusting = make({ resolve, trustedCertificates: pem('receiver-cert') })
  const answer = await send(trusting, { url: `https://receiver.test:${port}/` })
  expect(answer.status).toBe(200)
  expect(names).toEqual(['receiver.test'])
  for (const [outbound, host] of [
    [make({ resolve }), 'receiver.test'],
    [trusting, 'other.test'],
    [trusting, '127.0.0.1'],
  ] as const) {
    const error = await failure(outbound, { url: `https://${host}:${port}/` })
    expect(error).toMatchObject({ kind: 'tls', address: '127.0.0.1' })
  }
})

test('a hanging TLS handshake ends at the connect limit', async () => {
  const there = await rawReceiver(() => undefined)
  const outbound = make({ connectTimeoutMs: 200 })
  const url = there.url.replace('http:', 'https:')
  expect((await failure(outbound, { url })).kind).toBe('tls')
  await waitFor(() => expect(there.open()).toBe(0))
})

test('plain HTTP behind an https URL is a TLS error', async () => {
  const there = await receiver()
  const url = there.url.replace('http:', 'https:')
  expect((await failure(make(), { url })).kind).toBe('tls')
  expect(there.requests).toHaveLength(0)
})

test('names use DNS, and every family, alias and later answer is checked', async () => {
  const there = await receiver()
  const dns = await dnsServer({
    'private.test': { a: ['127.0.0.1'] },
    'mixed.test': { a: ['93.184.215.14', '127.0.0.1'] },
    'six.test': { a: ['93.184.215.14'], aaaa: ['::1'] },
    'alias.test': { cname: 'private.test' },
    'rebinding.test': { a: ['93.184.215.14'] },
    'public.test': { a: ['93.184.215.14'], aaaa: ['2606:4700:4700::1111'] },
  })
  const resolve = createDnsResolve([dns.server])
  const outbound = make({ resolve })
  const urlOf = (name: string) => `https://${name}:${there.port}/`
  for (const name of ['private.test', 'mixed.test', 'six.test', 'alias.test']) {
    expect(await checkWebhookTarget(urlOf(name), live, { resolve })).toMatchObject({ ok: false })
    const error = await failure(outbound, { url: urlOf(name), rules: live })
    expect(error.kind, name).toBe('refused_address')
  }
  const saved = await checkWebhookTarget(urlOf('public.test'), live, { resolve })
  expect(saved).toEqual({ ok: true, url: urlOf('public.test') })
  expect(await checkWebhookTarget(urlOf('rebinding.test'), live, { resolve })).toMatchObject({
    ok: true,
  })
  dns.zone['rebinding.test'] = { a: ['127.0.0.1'] }
  const rebound = await failure(outbound, { url: urlOf('rebinding.test'), rules: live })
  expect(rebound).toMatchObject({ kind: 'refused_address', address: '127.0.0.1' })
  expect(dns.questions).toContain('AAAA six.test')
  expect(there.connections()).toBe(0)
})

test('an unknown name or a silent name server is a DNS error, before the limit of the attempt', async () => {
  const dns = await dnsServer({ 'silent.test': { silent: true }, 'empty.test': {} })
  const outbound = make({ resolve: createDnsResolve([dns.server]), connectTimeoutMs: 300 })
  for (const name of ['silent.test', 'unknown.test', 'empty.test']) {
    // The limit of the attempt would be another kind of error.
    const error = await failure(outbound, { url: `https://${name}/`, rules: live })
    expect(error.kind, name).toBe('dns')
  }
})

test('a saved URL must be valid, resolve, and lead to public addresses only', async () => {
  const resolve = async (name: string) => (name === 'receiver.test' ? ['93.184.215.14'] : [])
  const check = (url: string) => checkWebhookTarget(url, live, { resolve })
  expect(await check('https://receiver.test/x')).toEqual({
    ok: true,
    url: 'https://receiver.test/x',
  })
  expect(await check('https://nowhere.test/x')).toMatchObject({ ok: false, why: /no address/ })
  expect(await check('http://receiver.test/x')).toMatchObject({ ok: false, why: 'it is not https' })
  expect(await checkWebhookTarget('http://127.0.0.1:9000/x', near)).toMatchObject({ ok: true })
})
