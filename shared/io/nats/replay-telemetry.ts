/**
 * Sets both consumers of every telemetry stream back, so that scorers store and decide again what
 * was accepted since an instant. It repairs a ClickHouse or a Postgres that was put back to an
 * earlier state: every write is idempotent, so what is there already does not change.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConsumerInfo, DeliverPolicy } from 'nats'
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Nats } from './connection.ts'
import { readLowWatermark } from './consume/low-watermark.ts'
import { nullIfMissing } from './streams/restore-streams.ts'
import { consumerConfigs } from './streams/stream-configs.ts'

/** What is replayed of one stream. */
export type Replay = {
  stream: TelemetryStream
  /** Messages that are handled again; each has up to 256 events. */
  messages: number
  /** When the oldest message that the stream still has was stored; null when it has none. */
  oldestAt: string | null
  /** The last message of the stream at this moment. */
  lastSequence: number
}

/**
 * Needs the rights of the operator `di`: no process may delete these consumers.
 * @throws when the broker does not answer, or does not allow it
 */
export async function replayTelemetry(nats: Nats, sinceMs: number): Promise<Replay[]> {
  const replays: Replay[] = []
  for (const stream of nats.telemetryStreams) {
    replays.push(await replayStream(nats, stream, sinceMs))
  }
  return replays
}

async function replayStream(nats: Nats, stream: TelemetryStream, sinceMs: number): Promise<Replay> {
  const { state } = await nats.manager.streams.info(stream.stream)
  // Storing first: nothing is decided before it is stored again.
  const storing = await setBack(nats, stream.scorer, sinceMs)
  await setBack(nats, stream.decider, sinceMs)
  return {
    stream,
    messages: storing.num_pending,
    oldestAt: state.messages === 0 ? null : new Date(String(state.first_ts)).toISOString(),
    lastSequence: state.last_seq,
  }
}

/** Returns once everything that is replayed is stored and decided. */
export async function awaitReplayed(nats: Nats, replays: readonly Replay[]): Promise<void> {
  for (const { stream, lastSequence } of replays) {
    while ((await readLowWatermark(nats, stream)) < lastSequence) await sleep(500)
  }
}

const triesMax = 20

/** A scorer that misses its consumer creates it anew, from the beginning: then it tries again. */
async function setBack(nats: Nats, durable: string, sinceMs: number): Promise<ConsumerInfo> {
  const { consumers } = nats.manager
  const since = new Date(sinceMs).toISOString()
  const { stream, config: usual } = consumerConfigs[durable]!
  const config = {
    ...usual,
    deliver_policy: DeliverPolicy.StartTime,
    opt_start_time: since,
  }
  for (let tries = 1; ; tries++) {
    await consumers.delete(stream, durable).catch(nullIfMissing)
    try {
      return await consumers.add(stream, config)
    } catch (error) {
      if (tries === triesMax) throw error
    }
  }
}
