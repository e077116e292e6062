// Streams and consumers with the service's settings, on a real nats-server.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { scorerConsumer, telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { ackWaitMs } from '#shared/io/nats/streams/telemetry-stream.ts'
import { readConfig, variables } from '#shared/io/process/config.ts'
import { createLog } from '#shared/io/process/log.ts'
import { startNats, type TestNats } from '../../support/servers/nats-server.ts'

let server: TestNats
let nats: Nats

beforeAll(async () => {
  server = await startNats()
  nats = await connectNats(server.url, 'test', createLog('test', 'silent'))
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
    const wanting = await connectNats(server.url, 'test', createLog('test', 'silent'), 3)
    await expect(ensureStreams(wanting)).rejects.toThrow(/replicas/i)
    await wanting.close()
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
