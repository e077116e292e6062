/**
 * Copies messages of streams to a file of JSON lines, and publishes them again. What a message says
 * of the stream that it came from is left out, so it fits into any.
 */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { AckPolicy, DeliverPolicy, headers, type JsMsg, type MsgHdrs, nanos } from 'nats'
import {
  acceptedBucket,
  deadLetterStream,
  removalsBucket,
  staleSecretBucket,
} from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { nullIfMissing } from '#shared/io/nats/streams/restore-streams.ts'

/**
 * In the order in which they are copied whole, before what waits in the telemetry streams. The
 * directory of tenants and hints come again from Postgres. What edges counted comes before the
 * telemetry, so no event is counted that is missing.
 */
export const streamsToCopy = [
  `KV_${acceptedBucket}`,
  `KV_${staleSecretBucket}`,
  `KV_${removalsBucket}`,
  deadLetterStream,
] as const

type Line = { subject: string; headers: [name: string, value: string][]; data: string }

/** Messages per pull request: the broker ends a connection that has 64 MB waiting. */
const messagesMax = 28
const silenceMaxMs = 10_000

/**
 * Copies the messages of a stream to its present end.
 * @param from the first sequence, which the stream must still have; null for all that it has
 * @param write gets one line for each
 * @returns how many there were; none when there is no such stream
 * @throws when the broker does not answer, and when messages from `from` on are removed already
 */
export async function copyMessages(
  nats: Nats,
  stream: string,
  { from, write }: { from: number | null; write: (line: string) => Promise<unknown> },
): Promise<number> {
  const info = await nats.manager.streams.info(stream).catch(nullIfMissing)
  if (info === null) return 0
  if (from !== null && info.state.first_seq > from) {
    throw new Error(`stream ${stream} removed messages before they were copied: try again`)
  }
  const { name, num_pending: present } = await nats.manager.consumers.add(stream, {
    ack_policy: AckPolicy.None,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: from ?? 1,
    inactive_threshold: nanos(2 * silenceMaxMs),
  })
  let count = 0
  if (present > 0) {
    const consumer = await nats.jetstream.consumers.get(stream, name)
    const messages = await consumer.consume({ max_messages: messagesMax })
    const watch = setTimeout(() => messages.stop(), silenceMaxMs)
    let isComplete = false
    try {
      for await (const message of messages) {
        watch.refresh()
        await write(`${JSON.stringify(toLine(message))}\n`)
        count++
        isComplete = count === present || message.info.pending === 0
        if (isComplete) break
      }
    } finally {
      clearTimeout(watch)
      messages.stop()
    }
    if (!isComplete) throw new Error(`stream ${stream} could not be read to its end`)
  }
  await nats.manager.consumers.delete(stream, name)
  return count
}

function toLine({ subject, headers: all, data }: JsMsg): Line {
  const names = all?.keys() ?? []
  const kept = names.filter((name) => name === 'Nats-Msg-Id' || !name.startsWith('Nats-'))
  return {
    subject,
    headers: kept.flatMap((name) =>
      all!.values(name).map((value): [string, string] => [name, value]),
    ),
    data: Buffer.from(data).toString('base64'),
  }
}

/**
 * Publishes the messages of a file, one after another. Repeating it is harmless: what was published
 * a moment ago is recognised, and everything else is recognised where it is processed.
 * @returns how many there were
 */
export async function publishMessages(nats: Nats, file: string): Promise<number> {
  let count = 0
  for await (const line of createInterface({ input: createReadStream(file) })) {
    await publishMessage(nats, line)
    count++
  }
  return count
}

/** Publishes one message. @param line of `copyMessages` */
export async function publishMessage(nats: Nats, line: string): Promise<void> {
  const { subject, headers: pairs, data } = JSON.parse(line) as Line
  await nats.jetstream.publish(subject, Buffer.from(data, 'base64'), { headers: toHeaders(pairs) })
}

function toHeaders(pairs: Line['headers']): MsgHdrs {
  const kept = headers()
  for (const [name, value] of pairs) kept.append(name, value)
  return kept
}
