// Real-world receivers: answers that begin with 1xx, large heads, repeated lengths, connections
// that end at their second request, redirects. The final status decides, and an attempt records the
// correct fault.
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import type { Delivery } from '#shared/core/deliveries/delivery-schema.ts'
import { findDeliveries } from '#shared/io/deliveries/list-deliveries.ts'
import { useDeliveryDatabase } from '../../support/deliveries/delivery-database.ts'
import { startTestEngine } from '../../support/deliveries/delivery-engine.ts'
import { startRawReceiver, startReceiver } from '../../support/deliveries/receiver.ts'
import { waitFor } from '../../support/process/wait-for.ts'

const { postgres, fixtures, closers } = await useDeliveryDatabase()

async function rawReceiver(onSocket: (socket: Socket) => void) {
  const started = await startRawReceiver(onSocket)
  closers.push(started.close)
  return started
}
function engine() {
  const started = startTestEngine(postgres)
  closers.push(() => started.stop(0))
  return started
}
/** Delivers to a receiver, one after another, and returns the recorded attempts. */
async function deliver(url: string, count = 1): Promise<Delivery[]> {
  const { tenantId } = await fixtures.addTenant({ url })
  const views: Delivery[] = []
  for (let n = 0; n < count; n++) {
    const [id] = await fixtures.addDeliveries(tenantId, 1)
    await waitFor(async () => expect((await fixtures.read(id!)).attempts).toBe(1))
    views.push(...(await findDeliveries(postgres, tenantId, [id!])))
  }
  return views
}
/** Answers each request of a connection with these bytes. */
const answering = (text: string) => (socket: Socket) => {
  socket.on('data', () => socket.write(text))
}
const byteByByte = (text: string) => (socket: Socket) => {
  socket.on('data', async () => {
    for (const one of text) {
      socket.write(one)
      await new Promise((resolve) => setImmediate(resolve))
    }
  })
}
const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const twice = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok'

test.each([
  ['100 Continue', answering(`HTTP/1.1 100 Continue\r\n\r\n${ok}`)],
  ['103 Early Hints', answering(`HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${ok}`)],
  [
    'several of them',
    answering(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${ok}`),
  ],
  ['100 Continue, byte by byte', byteByByte(`HTTP/1.1 100 Continue\r\n\r\n${ok}`)],
])('200 after %s is a success, over the same connection', async (_what, onSocket) => {
  const there = await rawReceiver(onSocket)
  engine()
  for (const view of await deliver(`http://127.0.0.1:${there.port}/`, 3)) {
    expect(view).toMatchObject({ state: 'delivered', attempts: [{ status: 200, error: null }] })
  }
  expect(there.connections()).toBe(1)
})

test.each([9, 16, 23])('200 with a head of %d KiB is a success', async (kib) => {
  const line = `x-padding: ${'p'.repeat(1_010)}\r\n`
  const there = await rawReceiver(
    answering(`HTTP/1.1 200 OK\r\n${line.repeat(kib)}content-length: 2\r\n\r\nok`),
  )
  engine()
  const [view] = await deliver(`http://127.0.0.1:${there.port}/`)
  expect(view).toMatchObject({ state: 'delivered', attempts: [{ status: 200, answer: 'ok' }] })
})

test.each([
  ['a repeated Content-Length', answering(twice), 'Content-Length'],
  ['a repeated Content-Length after 100', answering(`HTTP/1.1 100 Go\r\n\r\n${twice}`), 'Length'],
  [
    'a list of one Content-Length',
    answering('HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok'),
    'Content-Length',
  ],
  [
    'a length beside chunks',
    answering(
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ),
    'Transfer-Encoding',
  ],
  ['bare line feeds', answering(ok.replaceAll('\r', '')), 'CR'],
])('200 with %s is a success that records the fault', async (_what, onSocket, fault) => {
  const there = await rawReceiver(onSocket)
  engine()
  const [view] = await deliver(`http://127.0.0.1:${there.port}/`)
  expect(view).toMatchObject({
    state: 'delivered',
    attempts: [{ status: 200, error_kind: null, error: expect.stringContaining(fault) }],
  })
})

test.each([
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok', 'Length'],
  ['a list of two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok', 'Length'],
  [
    'a head above 24 KiB',
    `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}\r\ncontent-length: 2\r\n\r\nok`,
    'the head of the answer is above 24 KiB',
  ],
  ['a head that is cut off', twice.slice(0, 53), 'Content-Length'],
  ['an upgrade', 'HTTP/1.1 101 No\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 'upgrade'],
  ['garbage', 'SSH-2.0-OpenSSH_9.2\r\n', 'HTTP'],
  ['folded lines in a refused head', twice.replace('\r\n\r\n', '\r\n  x\r\n\r\n'), 'Length'],
])('%s is a failure with the correct fault', async (_what, text, error) => {
  const there = await rawReceiver(answering(text))
  engine()
  const [view] = await deliver(`http://127.0.0.1:${there.port}/`)
  expect(view).toMatchObject({
    state: 'pending',
    attempts: [
      { status: null, error_kind: 'protocol', error: expect.stringContaining(error), attempt: 1 },
    ],
  })
})

test('bytes after an answer do not count as the next answer', async () => {
  const there = await rawReceiver(answering(ok + ok))
  engine()
  const views = await deliver(`http://127.0.0.1:${there.port}/`, 3)
  expect(views.map(({ state }) => state)).toEqual(['delivered', 'delivered', 'delivered'])
  expect(there.connections()).toBe(3)
})

test.each(['reset', 'end'] as const)(
  'where each connection ends at its second request (%s), one attempt suffices',
  async (how) => {
    let served = 0
    const there = await rawReceiver((socket) => {
      let requests = 0
      socket.on('data', () => {
        requests += 1
        if (requests === 1) {
          served += 1
          socket.write(ok)
        } else if (how === 'reset') socket.resetAndDestroy()
        else socket.end()
      })
    })
    const one = engine()
    const views = await deliver(`http://127.0.0.1:${there.port}/`, 4)
    for (const view of views) {
      expect(view).toMatchObject({ state: 'delivered', attempts: [{ attempt: 1, status: 200 }] })
    }
    expect([served, there.connections()]).toEqual([4, 4])
    expect(await one.count('di_delivery_redials_total')).toBe(3)
  },
)

test('a reset of a fresh connection is a failed attempt', async () => {
  const there = await rawReceiver((socket) => socket.on('data', () => socket.resetAndDestroy()))
  const one = engine()
  const [view] = await deliver(`http://127.0.0.1:${there.port}/`)
  expect(view).toMatchObject({ state: 'pending', attempts: [{ error_kind: 'reset' }] })
  expect(there.connections()).toBe(1)
  expect(await one.count('di_delivery_redials_total')).toBe(0)
})

test('an answer that breaks off on a reused connection is a failed attempt', async () => {
  let requests = 0
  const there = await rawReceiver((socket) =>
    socket.on('data', () => {
      requests += 1
      socket.write(requests === 1 ? ok : 'HTTP/1.1 20')
      if (requests > 1) setTimeout(() => socket.resetAndDestroy(), 20)
    }),
  )
  engine()
  const views = await deliver(`http://127.0.0.1:${there.port}/`, 2)
  expect(views.map(({ state }) => state)).toEqual(['delivered', 'pending'])
  expect(there.connections()).toBe(1)
})

test('the Location of a redirect is recorded, within bounds, and not followed', async () => {
  const trap = await startReceiver()
  let location = trap.url
  const there = await startReceiver((response) => response.writeHead(308, { location }).end())
  closers.push(trap.close, there.close)
  engine()
  const recorded = async () => (await deliver(there.url))[0]!.attempts[0]!
  expect(await recorded()).toMatchObject({
    status: 308,
    error_kind: 'status',
    error: `redirects are not followed: ${trap.url}`,
  })
  location = `https://receiver.example/${'x'.repeat(5_000)}`
  expect((await recorded()).error).toBe(`redirects are not followed: ${location.slice(0, 500)}`)
  expect(trap.connections()).toBe(0)
})
