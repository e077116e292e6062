// When a stream counts as put back: at once on one server, and on several only if it stays behind.

import { beforeEach, expect, test } from 'vitest'
import { toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import { toTelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createStreamOffsetsReader } from '../../../services/scorer/store/read-stream-offsets.ts'

const stream = toTelemetryStream(1)
const createdMs = 1_700_000_000_000
const recorded = { streamOffset: toStreamOffset(createdMs, 9), publishedMs: createdMs + 500 }

let nowMs: number
let lastSequence: number
let replicas: number
/** The times of its messages, from sequence 1 on. */
let times: number[]
let incarnations: object[]

beforeEach(() => {
  nowMs = 0
  incarnations = []
  times = Array.from({ length: 20 }, (_, n) => createdMs + n + 1)
})

function createReader() {
  const streams = {
    info: async () => ({
      created: new Date(createdMs).toISOString(),
      config: { num_replicas: replicas },
      state: { first_seq: 1, last_seq: lastSequence },
    }),
    getMessage: async (_: string, { seq }: { seq: number }) => {
      if (seq > lastSequence) throw Object.assign(new Error('gone'), { code: '404' })
      return { time: new Date(times[seq - 1]!) }
    },
  }
  const query = async (_: string, values: readonly unknown[]) => {
    if (values.length === 1) return { rows: incarnations }
    const [, number, created, firstSequence, baseMs] = values
    incarnations.push({ number, createdMs: created, firstSequence, baseMs })
    return { rows: [], rowCount: 1 }
  }
  const select = async ({ query_params: { from } }: { query_params: { from: number } }) => ({
    json: async () => (from <= recorded.streamOffset ? [recorded] : []),
  })
  return createStreamOffsetsReader({
    nats: { manager: { streams }, telemetryStreams: [stream] } as unknown as Nats,
    stream,
    clickhouse: { query: select } as unknown as Clickhouse,
    postgres: { query } as unknown as Postgres,
    log: createLog('test', 'silent'),
    metrics: createMetrics('test'),
    wallMs: () => createdMs + 1_000,
    nowMs: () => nowMs,
  })
}

test('one server that is behind was put back', async () => {
  replicas = 1
  lastSequence = 5
  const { of, start } = await createReader()()
  expect(incarnations).toMatchObject([{ number: 1, firstSequence: 6 }])
  expect([of(5), of(6)]).toEqual([toStreamOffset(createdMs, 5), start])
  expect(start).toBeGreaterThan(recorded.streamOffset)
})

test('of several servers one may be behind for some seconds', async () => {
  replicas = 3
  lastSequence = 5
  const read = createReader()
  await expect(read()).rejects.toThrow('lacks messages')
  lastSequence = 9
  times[8] = recorded.publishedMs
  expect((await read()).of(9)).toBe(recorded.streamOffset)
  lastSequence = 5
  nowMs += 60_000
  await expect(read()).rejects.toThrow('lacks messages')
  nowMs += 19_000
  await expect(read()).rejects.toThrow('lacks messages')
  expect(incarnations).toEqual([])
  nowMs += 1_000
  await read()
  expect(incarnations).toHaveLength(1)
})

test('another message in the place of the recorded one needs no doubt', async () => {
  replicas = 3
  lastSequence = 20
  for (let n = 6; n < 20; n++) times[n] = recorded.publishedMs + n
  await createReader()()
  expect(incarnations).toMatchObject([{ firstSequence: 7 }])
})
