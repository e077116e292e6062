// Dead letters on a real nats-server: a tenant's flood of poison, and a full stream, block nothing
// and take no space from others.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { deadLetterBytes } from '#shared/core/base/limits/stream.ts'
import { deadLetterStream } from '#shared/core/telemetry/nats-names.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import {
  createDeadLetters,
  type DeadLetter,
  type DeadLetterLoss,
} from '#shared/io/nats/dead-letters.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'

let server: TestNats
let nats: Nats

beforeAll(async () => {
  server = await startNats()
  nats = await connectNats(server.url, 'test', quietLog)
  await ensureStreams(nats)
})
afterAll(async () => {
  await nats?.close()
  await server?.stop()
})

let ids = 0
const letterOf = (tenantId: string): DeadLetter => ({
  reason: 'refused_by_store',
  detail: 'a test',
  id: `letter-${++ids}`,
  tenantId,
  data: Buffer.alloc(10_000, 'x'),
})

const countLetters = async () => (await nats.manager.streams.info(deadLetterStream)).state.messages

it('a tenant’s dead letters are bounded to its share, independently of others', async () => {
  const lost: DeadLetterLoss[] = []
  const store = createDeadLetters({ nats, nowMs: () => 0, onLost: (loss) => lost.push(loss) })
  const most = Math.floor(deadLetterBytes.burst / 10_000)
  await store(Array.from({ length: 2 * most }, () => letterOf('flood')))
  expect(await countLetters()).toBe(most)
  expect(lost).toEqual(Array(most).fill('tenant_share'))
  await store([letterOf('other')])
  expect(await countLetters()).toBe(most + 1)
})

it('dead letters are dropped and counted when the stream is full, and cost no share', async () => {
  const lost: DeadLetterLoss[] = []
  const store = createDeadLetters({ nats, nowMs: () => 0, onLost: (loss) => lost.push(loss) })
  const { config, state } = await nats.manager.streams.info(deadLetterStream)
  const setBytes = (max_bytes: number) =>
    nats.manager.streams.update(deadLetterStream, { ...config, max_bytes })
  await setBytes(state.bytes + 10)
  const deadLetters = Array.from({ length: 600 }, () => letterOf('acme'))
  await store(deadLetters)
  expect(lost).toEqual(Array(600).fill('stream_full'))
  await setBytes(config.max_bytes)
  await store(deadLetters.slice(0, 100))
  expect(lost).toHaveLength(600)
  expect(await countLetters()).toBe(state.messages + 100)
})

it('a broker that does not answer is an error, and costs a tenant no share', async () => {
  const lost: DeadLetterLoss[] = []
  const store = createDeadLetters({ nats, nowMs: () => 0, onLost: (loss) => lost.push(loss) })
  const before = await countLetters()
  await nats.manager.streams.delete(deadLetterStream)
  const deadLetters = Array.from({ length: 400 }, () => letterOf('acme'))
  for (let n = 0; n < 3; n++) await expect(store(deadLetters)).rejects.toThrow()
  await ensureStreams(nats)
  await store(deadLetters)
  expect([await countLetters(), lost, before > 0]).toEqual([400, [], true])
})
