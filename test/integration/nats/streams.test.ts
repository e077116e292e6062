// Streams and consumers with the service's settings, on a real nats-server.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AckPolicy, StorageType } from 'nats'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import {
  acceptedBucket,
  scorerConsumer,
  telemetryStream,
  telemetrySubject,
  tenantsBucket,
} from '#shared/core/telemetry/nats-names.ts'
import { copyMessages, publishMessages } from '#shared/io/backup/stream-backup.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { startStreamKeeper } from '#shared/io/nats/streams/stream-keeper.ts'
import { ackWaitMs } from '#shared/io/nats/streams/telemetry-stream.ts'
import { readConfig, variables } from '#shared/io/process/config.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { until } from '../../support/process/until.ts'
import { makeFolder, startConfigured } from '../../support/servers/nats/nats-configured.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'

const silent = createLog('test', 'silent')

let server: TestNats
let nats: Nats

beforeAll(async () => {
  server = await startNats()
  nats = await connectNats(server.url, 'test', silent)
})
afterAll(async () => {
  await nats?.close()
  await server?.stop()
})

describe('ensureStreams', () => {
  it('may run in several processes at once, and again', async () => {
    await Promise.all([ensureStreams(nats), ensureStreams(nats), ensureStreams(nats)])
    await ensureStreams(nats)
    const { config } = await nats.manager.streams.info(telemetryStream)
    expect(config).toMatchObject({ discard: 'new', retention: 'limits', storage: 'file' })
  })

  it('keeps the size that an operator gave a stream', async () => {
    const { config } = await nats.manager.streams.info(telemetryStream)
    const max_bytes = 3 * 1024 ** 3
    await nats.manager.streams.update(telemetryStream, { ...config, max_bytes })
    await ensureStreams(nats)
    const after = await nats.manager.streams.info(telemetryStream)
    expect(after.config.max_bytes).toBe(max_bytes)
  })

  it('gives the telemetry stream the configured size, over an operator’s setting', async () => {
    const telemetryBytesMax = 2 * 1024 ** 3
    await ensureStreams({ ...nats, telemetryBytesMax })
    const after = await nats.manager.streams.info(telemetryStream)
    expect(after.config.max_bytes).toBe(telemetryBytesMax)
  })

  it('uses the server’s limit where no size is configured, and reports it', async () => {
    await nats.manager.streams.delete(telemetryStream)
    // Of the 64 GiB that may be reserved ten are left.
    await nats.manager.streams.add({ name: 'OTHER', subjects: ['other'], max_bytes: 57e9 })
    const telemetryBytesMax = 16 * 1024 ** 3
    await expect(ensureStreams({ ...nats, telemetryBytesMax })).rejects.toThrow(/storage/)
    await ensureStreams(nats)
    const { config } = await nats.manager.streams.info(telemetryStream)
    expect(config.max_bytes).toBe(8 * 1024 ** 3)
    await nats.manager.streams.delete('OTHER')
  })

  it('restores the changed settings of a stream and a consumer', async () => {
    const { config } = await nats.manager.streams.info(telemetryStream)
    await nats.manager.streams.update(telemetryStream, { ...config, max_age: 1_000_000_000_000 })
    await nats.manager.consumers.update(telemetryStream, scorerConsumer, { ack_wait: 99e9 })
    await ensureStreams(nats)
    const stream = await nats.manager.streams.info(telemetryStream)
    expect(stream.config.max_age).toBe(config.max_age)
    const consumer = await nats.manager.consumers.info(telemetryStream, scorerConsumer)
    expect(consumer.config.ack_wait).toBe(ackWaitMs * 1_000_000)
  })

  it('does not start on fewer servers than NATS_REPLICAS', async () => {
    const wanting = await connectNats(server.url, 'test', silent, 3)
    await expect(ensureStreams(wanting)).rejects.toThrow(/replicas/i)
    await wanting.close()
  })
})

/** Streams and buckets as the release before made them, in the account of a server without any. */
async function makeEarlierData(dir: string): Promise<void> {
  const store = `jetstream { store_dir: ${JSON.stringify(dir)} }`
  const earlier = await startConfigured(dir, [store])
  const own = await connectNats(`nats://127.0.0.1:${earlier.port}`, 'test', silent)
  const { manager, jetstream, connection } = own
  await manager.streams.add({ name: telemetryStream, subjects: ['telemetry.>'] })
  const durable = { durable_name: scorerConsumer, filter_subject: telemetrySubject }
  await manager.consumers.add(telemetryStream, { ...durable, ack_policy: AckPolicy.Explicit })
  for (const text of ['one', 'two', 'three']) await jetstream.publish(telemetrySubject, text)
  const pull = await jetstream.consumers.get(telemetryStream, scorerConsumer)
  for await (const message of await pull.fetch({ max_messages: 2, expires: 2_000 })) {
    // The second one is with a scorer that ends.
    if (message.seq === 1) expect(await message.ackAck()).toBe(true)
  }
  const bucket = await jetstream.views.kv(tenantsBucket, { history: 1, storage: StorageType.File })
  await bucket.put('tenant.acme', 'sealed')
  await connection.flush()
  await own.close()
  await earlier.stop()
}

describe('the data of the release before', () => {
  it('is in the account of JetStream after a start, with its consumers, and new settings', async () => {
    const { dir, remove } = makeFolder()
    onTestFinished(remove)
    await makeEarlierData(dir)
    const later = await startNats({ dir })
    onTestFinished(later.stop)
    const own = await connectNats(later.url, 'test', silent)
    onTestFinished(own.close)
    await ensureStreams(own)
    const { manager } = own
    expect((await manager.streams.info(telemetryStream)).state.messages).toBe(3)
    const consumer = await manager.consumers.info(telemetryStream, scorerConsumer)
    expect(consumer).toMatchObject({ num_pending: 1, num_ack_pending: 1 })
    expect(consumer.ack_floor.stream_seq).toBe(1)
    const bucket = await openTenantsBucket(own)
    expect((await bucket.get('tenant.acme'))?.string()).toBe('sealed')
    const { config } = await manager.streams.info(`KV_${tenantsBucket}`)
    expect(config).toMatchObject({ allow_rollup_hdrs: false, republish: { headers_only: true } })
  })
})

describe('startStreamKeeper', () => {
  it('creates at once what is deleted, and what it finds missing at the start', async () => {
    await ensureStreams(nats)
    await nats.manager.streams.delete(`KV_${acceptedBucket}`)
    const metrics = createMetrics('console')
    const keeper = startStreamKeeper({ findNats: () => nats, log: silent, metrics })
    onTestFinished(keeper.stop)
    const exists = (stream: string) => async () =>
      (await nats.manager.streams.info(stream).catch(() => null)) !== null
    await until('the bucket is there', exists(`KV_${acceptedBucket}`))
    await nats.manager.streams.delete(telemetryStream)
    await until('the stream is there', exists(telemetryStream))
    const consumerExists = async () =>
      (await nats.manager.consumers.info(telemetryStream, scorerConsumer).catch(() => null)) !==
      null
    await until('the consumer is there', consumerExists)
    await nats.manager.consumers.delete(telemetryStream, scorerConsumer)
    await until('the consumer is back', consumerExists)
  })
})

describe('copyMessages', () => {
  const copy = async (from: number | null) => {
    const lines: string[] = []
    const write = async (line: string) => lines.push(line)
    return { count: await copyMessages(nats, telemetryStream, { from, write }), lines }
  }

  it('copies to the present end what publishMessages puts back', async () => {
    const first = await nats.jetstream.publish(telemetrySubject, 'one')
    await nats.jetstream.publish(telemetrySubject, 'two')
    const { count, lines } = await copy(first.seq + 1)
    expect(count).toBe(1)
    const folder = mkdtempSync(join(tmpdir(), 'di-copy-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'TELEMETRY.jsonl')
    writeFileSync(file, lines.join(''))
    expect(await publishMessages(nats, file)).toBe(1)
    const last = await nats.manager.streams.getMessage(telemetryStream, {
      last_by_subj: telemetrySubject,
    })
    expect({ seq: last.seq, text: last.string() }).toEqual({ seq: first.seq + 2, text: 'two' })
  })

  it('fails when messages that it must copy are removed already', async () => {
    const { state } = await nats.manager.streams.info(telemetryStream)
    await nats.manager.streams.purge(telemetryStream, { seq: state.last_seq })
    await expect(copy(state.first_seq)).rejects.toThrow('removed messages before they were copied')
    expect((await copy(state.last_seq)).count).toBe(1)
    expect((await copy(null)).count).toBe(1)
  })
})

describe('TELEMETRY_STREAM_MAX_BYTES', () => {
  const { TELEMETRY_STREAM_MAX_BYTES } = variables
  const read = (text?: string) =>
    readConfig({ TELEMETRY_STREAM_MAX_BYTES }, { TELEMETRY_STREAM_MAX_BYTES: text })

  it('is a whole number of bytes, at least a megabyte, or absent', () => {
    expect(read('67108864')).toEqual({ TELEMETRY_STREAM_MAX_BYTES: 67_108_864 })
    expect([read(''), read()]).toEqual([{}, {}])
    for (const text of ['64 MB', '1048575', '1e400', '2000000.5', '-1'])
      expect(() => read(text)).toThrow(/TELEMETRY_STREAM_MAX_BYTES must be/)
  })
})

describe('NATS_REPLICAS', () => {
  const read = (NATS_REPLICAS?: string) =>
    readConfig({ NATS_REPLICAS: variables.NATS_REPLICAS }, { NATS_REPLICAS }).NATS_REPLICAS

  it('is a number of servers that can have a majority, or absent', () => {
    expect([read('3'), read('1'), read(''), read()]).toEqual([3, 1, undefined, undefined])
    for (const text of ['2', '0', 'many', '3.5', '-1'])
      expect(() => read(text)).toThrow(/1, 3 or 5/)
  })
})
