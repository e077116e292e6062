/**
 * Sets both consumers of the telemetry stream back, so that scorers store and decide again what was
 * accepted since an instant. It repairs a ClickHouse or a Postgres that was put back to an earlier
 * state: every write is idempotent, so what is there already does not change.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConsumerInfo, DeliverPolicy } from 'nats'
import {
  deciderConsumer,
  scorerConsumer,
  telemetryStream,
} from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from './connection.ts'
import { readLowWatermark } from './consume/low-watermark.ts'
import { nullIfMissing } from './streams/restore-streams.ts'
import { consumerConfigs } from './streams/stream-configs.ts'

export type Replay = {
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
export async function replayTelemetry(nats: Nats, sinceMs: number): Promise<Replay> {
  const { state } = await nats.manager.streams.info(telemetryStream)
  // Storing first: nothing is decided before it is stored again.
  const storing = await setBack(nats, scorerConsumer, sinceMs)
  await setBack(nats, deciderConsumer, sinceMs)
  return {
    messages: storing.num_pending,
    oldestAt: state.messages === 0 ? null : new Date(String(state.first_ts)).toISOString(),
    lastSequence: state.last_seq,
  }
}

/** Returns once everything up to a message is stored and decided. */
export async function awaitReplayed(nats: Nats, lastSequence: number): Promise<void> {
  while ((await readLowWatermark(nats)) < lastSequence) await sleep(500)
}

const triesMax = 20

/** A scorer that misses its consumer creates it anew, from the beginning: then it tries again. */
async function setBack(nats: Nats, durable: string, sinceMs: number): Promise<ConsumerInfo> {
  const { consumers } = nats.manager
  const since = new Date(sinceMs).toISOString()
  const config = {
    ...consumerConfigs[durable]!.config,
    deliver_policy: DeliverPolicy.StartTime,
    opt_start_time: since,
  }
  for (let tries = 1; ; tries++) {
    await consumers.delete(telemetryStream, durable).catch(nullIfMissing)
    try {
      return await consumers.add(telemetryStream, config)
    } catch (error) {
      if (tries === triesMax) throw error
    }
  }
}
