/**
 * The telemetry stream has space as long as scorers keep up: stored and decided messages are
 * trimmed when space is needed, no others are, and several scorers do not conflict.
 */

import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import {
  scorerConsumer,
  telemetryStream,
  telemetrySubject,
} from '#shared/core/telemetry/nats-names.ts'
import { toTelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { readLowWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { until } from '../../support/process/until.ts'
import { makeMessage, signalsOf } from '../../support/telemetry/accepted-events.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'
import { proveBatch } from '../../support/telemetry/telemetry-proof.ts'

const mb = 1024 ** 2
const bytesMax = 2 * mb
let rig: ScorerRig

beforeAll(async () => {
  rig = await createScorerRig()
  await ensureStreams({ ...rig.nats, telemetryBytesMax: bytesMax })
  await rig.addTenant('acme')
})
afterAll(() => rig?.close())
afterEach(() => rig.endScorers())

const readStream = async () => (await rig.nats.manager.streams.info(telemetryStream)).state

let sent = 0
/** Some 60 KB of eight events, each in its own session. */
const nextMessage = (signals: Record<string, unknown> = {}) => {
  const events = Array.from({ length: 8 }, () => {
    sent++
    const [deviceId, sessionId] = [`d-${sent}`, `s-${sent}`]
    return { deviceId, sessionId, signals, more: { padding: 'x'.repeat(7_000) } }
  })
  return makeMessage(events)
}
const messageBytes = nextMessage().length
const publish = (signals?: Record<string, unknown>) => {
  const message = nextMessage(signals)
  return rig.nats.jetstream.publish(telemetrySubject, message, { headers: proveBatch(message) })
}

const countStored = async () => {
  const result = await rig.clickhouse.query({
    query: "select uniqExact(event_id) from telemetry where tenant_id = 'acme'",
    format: 'JSONCompactEachRow',
  })
  const [[count] = ['0']] = await result.json<[string]>()
  return Number(count)
}

it('five times its size passes through it and is stored, without a rejection', async () => {
  const scorers = [await rig.startScorer(), await rig.startScorer()]
  await until('both consume', async () => {
    const answers = await Promise.all(scorers.map(({ url }) => fetch(`${url}/readyz`)))
    return answers.every(({ ok }) => ok)
  })
  const total = Math.ceil((5 * bytesMax) / messageBytes)
  for (let n = 0; n < total; n++) {
    await publish()
    // At most a quarter of the stream is in flight: scorers keep up.
    await until('less than a quarter of the room waits', async () => {
      const { last_seq } = await readStream()
      return (
        (last_seq - (await readLowWatermark(rig.nats, toTelemetryStream(1)))) * messageBytes <
        bytesMax / 4
      )
    })
  }
  await rig.drained()
  expect(await countStored()).toBe(8 * total)
  const state = await readStream()
  expect(state.bytes).toBeLessThan(bytesMax)
  // It keeps as much as fits.
  expect(state.bytes).toBeGreaterThan(bytesMax / 2)
  const counts = await Promise.all(
    scorers.map((scorer) => scorer.readMetric('di_stream_trimmed_messages_total')),
  )
  expect(counts[0]! + counts[1]!).toBe(state.first_seq - 1)
  expect(await scorers[0]!.readMetric('di_stream_max_bytes', 'stream="TELEMETRY"')).toBe(bytesMax)
  expect(await scorers[0]!.readMetric('di_stream_bytes', 'stream="TELEMETRY"')).toBe(state.bytes)
  expect(await scorers[0]!.readMetric('di_stream_undecided_bytes')).toBe(0)
})

it('undecided messages are never removed, and cause a warning', async () => {
  const before = await readStream()
  // Stored by a consumer that does not decide.
  const consumer = await rig.nats.jetstream.consumers.get(telemetryStream, scorerConsumer)
  await rig.postgresServer.kill('SIGKILL')
  try {
    const scorer = await rig.startScorer()
    const first = before.last_seq + 1
    await until('what is decided has made room, and that is taken', async () => {
      // An alert cannot be raised without Postgres.
      const taken = await publish(signalsOf.BLOCK).then(ok, () => false)
      return !taken && (await readStream()).first_seq === first
    })
    await until('all of it is stored', async () => {
      const info = await consumer.info()
      return info.num_pending === 0 && info.num_ack_pending === 0
    })
    const state = await readStream()
    expect(state.first_seq).toBe(first)
    const ready = (await (await fetch(`${scorer.url}/readyz`)).json()) as {
      warnings: Record<string, string>
    }
    expect(ready.warnings.stream).toMatch(/^is \d+ % full of undecided events$/)
    expect(await scorer.readMetric('di_stream_undecided_bytes')).toBe(state.bytes)
  } finally {
    await rig.postgresServer.restart()
  }
  await rig.drained()
  await until('there is room again', () => publish().then(ok, () => false))
})

const ok = () => true
