/**
 * A message whose proof is wrong is read again from the stream. If it arrived other than it is
 * stored, the stored one is handled instead: a fault of a connection must not make a dead letter of
 * an accepted event.
 */
import { batchProofHeader, tracedEventsHeader } from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import { isMessageGone } from '#shared/io/nats/jetstream-errors.ts'

/** What the stream has of a message. */
export type StoredMessage = Pick<ConsumedMessage, 'data' | 'proof' | 'tracedEvents' | 'publishedMs'>

type ReadAgainOptions = {
  isProven: (message: ConsumedMessage) => boolean
  /** Null when the stream has removed the message. @throws when the broker does not answer */
  readStored: (sequence: number) => Promise<StoredMessage | null>
  /** Called for each message that arrived other than it is stored. */
  onGarbled: (message: ConsumedMessage) => void
}

/** Concurrent reads: a flood of forged messages must not become one of requests. */
const readsAtOnce = 16

/**
 * @returns a function that returns a batch with the stored messages in place of garbled ones; it
 *   throws when the broker does not answer
 */
export function createReadAgain({ isProven, readStored, onGarbled }: ReadAgainOptions) {
  const readOne = async (message: ConsumedMessage): Promise<ConsumedMessage> => {
    if (isProven(message)) return message
    const stored = await readStored(message.sequence)
    if (stored === null || isSame(message, stored)) return message
    onGarbled(message)
    return { ...message, ...stored }
  }
  return async (batch: readonly ConsumedMessage[]): Promise<readonly ConsumedMessage[]> => {
    if (batch.every(isProven)) return batch
    const whole: ConsumedMessage[] = []
    for (let at = 0; at < batch.length; at += readsAtOnce) {
      whole.push(...(await Promise.all(batch.slice(at, at + readsAtOnce).map(readOne))))
    }
    return whole
  }
}

const isSame = (message: ConsumedMessage, stored: StoredMessage): boolean =>
  message.proof === stored.proof && Buffer.compare(message.data, stored.data) === 0

/** Reads messages of a stream by their sequences. */
export function createStoredReader(
  nats: Nats,
  stream: string,
): (sequence: number) => Promise<StoredMessage | null> {
  return async (sequence) => {
    try {
      const { data, header, time } = await nats.manager.streams.getMessage(stream, {
        seq: sequence,
      })
      return {
        data,
        proof: header.get(batchProofHeader),
        tracedEvents: header.get(tracedEventsHeader),
        publishedMs: time.getTime(),
      }
    } catch (error) {
      if (isMessageGone(error)) return null
      throw error
    }
  }
}
