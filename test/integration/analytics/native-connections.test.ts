// Connections of the native protocol whose engine does not answer, or whose client does not read.
import { once } from 'node:events'
import { connect, Socket } from 'node:net'
import { afterEach, expect, it, vi } from 'vitest'
import { createTenantSemaphore } from '#shared/io/process/tenant-semaphore.ts'
import type { AnalystEngine } from '../../../deploy/local/clickhouse/analyst-engine.ts'
import {
  clientPackets,
  newestRevision,
} from '../../../deploy/local/clickhouse/native/native-packets.ts'
import {
  type NativeProxyDeps,
  openNativeProxy,
} from '../../../deploy/local/clickhouse/native/native-proxy.ts'
import { toText, toVarint } from '../../../deploy/local/clickhouse/native/native-reader.ts'
import { until } from '../../support/process/until.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of closing.splice(0)) await close()
})

const engine: AnalystEngine = {
  judge: async () => null,
  run: (_, signal) => {
    const answer = once(signal, 'abort').then(() => Promise.reject(new Error('aborted')))
    return { answer, ended: Promise.resolve() }
  },
  close: () => undefined,
}

/** A proxy without an engine behind it. */
async function open(own: Partial<NativeProxyDeps>) {
  const failures: string[] = []
  const proxy = await openNativeProxy(
    {
      semaphore: createTenantSemaphore({
        perTenant: 1,
        total: 1,
        queuePerTenant: 1,
        waitMs: 1_000,
      }),
      engine,
      queryMaxMs: 30_000,
      sendMaxMs: 1_000,
      answerBytesMax: 1_000,
      countFailure: (reason) => failures.push(reason),
      findTenant: async () => 'acme',
      notSignedIn: { status: 403, code: 516, name: 'AUTHENTICATION_FAILED', text: 'no' },
      ...own,
    },
    0,
  )
  const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined)
  closing.push(async () => {
    socket.destroy()
    await proxy.close()
  })
  return { failures, socket }
}

const greeting = Buffer.concat([
  toVarint(clientPackets.hello),
  toText('test'),
  ...[26, 7, newestRevision].map(toVarint),
  ...['', 'analyst.acme.own', 'password', ''].map(toText),
])
/** `select 1` without settings and parameters, and the empty block after it. */
const query = Buffer.concat([
  ...[toVarint(clientPackets.query), toText(''), toVarint(0), toText(''), toText('')],
  ...[toVarint(2), toVarint(0), toText('select 1'), toText('')],
  ...[toVarint(clientPackets.data), toText(''), ...[0, 0, 0].map(toVarint)],
])

async function readToEnd(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

const refused = Object.assign(new Error('no engine'), { code: 'ECONNREFUSED' })

it('end with an error that is counted, while the engine does not run', async () => {
  const judge = () => Promise.reject(refused)
  const { socket, failures } = await open({ engine: { ...engine, judge } })
  socket.write(Buffer.concat([greeting, query]))
  expect(await readToEnd(socket)).toContain('The engine cannot be reached now (ECONNREFUSED)')
  expect(failures).toEqual(['engine_unreachable'])
})

it('end with an error that is counted, while passwords cannot be read', async () => {
  const { socket, failures } = await open({ findTenant: () => Promise.reject(refused) })
  socket.write(greeting)
  expect(await readToEnd(socket)).toContain('NETWORK_ERROR')
  expect(failures).toEqual(['engine_unreachable'])
})

it('count a query that the client cancels as one whose client left', async () => {
  const { socket, failures } = await open({})
  socket.write(Buffer.concat([greeting, query]))
  await once(socket, 'data')
  socket.write(toVarint(clientPackets.cancel))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString('latin1')).toContain('QUERY_WAS_CANCELLED')
  expect(failures).toEqual(['client_left'])
})

it('are read no faster than they read: pongs without a reader do not fill the memory', async () => {
  const write = vi.spyOn(Socket.prototype, 'write')
  const { socket } = await open({})
  socket.write(greeting)
  await until('it is greeted', () => write.mock.contexts.some((one) => one !== socket))
  const server = write.mock.contexts.find((one) => one !== socket) as Socket
  const pongs: unknown[] = []
  write.mockImplementation((bytes) => {
    pongs.push(bytes)
    return false
  })
  server.push(Buffer.alloc(1_000, clientPackets.ping))
  await until('it answers one', () => pongs.length > 0)
  server.emit('drain')
  await until('it answers another', () => pongs.length > 1)
  expect(pongs.length).toBe(2)
})
