/**
 * A memory of decoded messages, between storing and deciding: a process decides most of what it has
 * stored a moment later, and reading a message costs more than most of what is done with it. What
 * is not remembered is decoded again.
 */
import { type AcceptedEvent, decodeBatch, toPosition } from '#shared/core/messages.ts'
import { PoisonError } from '#shared/core/outcome.ts'
import type { ConsumedMessage } from '#shared/io/consume.ts'
import type { DeadLetter } from '#shared/io/dead-letters.ts'

export type Decoded = { events: AcceptedEvent[]; letters: DeadLetter[] }

export type DecodedMessages = {
  /** Decodes a message and remembers it. */
  decode: (message: ConsumedMessage) => Decoded
  /** What was decoded of a message, which is then forgotten. */
  take: (message: ConsumedMessage) => Decoded
}

/** @param bytesMax of remembered messages; their decoded form takes several times as much */
export function createDecodedMessages(bytesMax: number): DecodedMessages {
  const kept = new Map<number, { data: Uint8Array; decoded: Decoded }>()
  let bytes = 0
  const forget = (sequence: number): void => {
    bytes -= kept.get(sequence)?.data.length ?? 0
    kept.delete(sequence)
  }
  return {
    decode: (message) => {
      const decoded = decode(message)
      forget(message.sequence)
      kept.set(message.sequence, { data: message.data, decoded })
      bytes += message.data.length
      for (const oldest of kept.keys()) {
        if (bytes <= bytesMax) break
        forget(oldest)
      }
      return decoded
    },
    take: (message) => {
      const known = kept.get(message.sequence)
      forget(message.sequence)
      // A stream that is made again counts from 1 again.
      const same = known !== undefined && Buffer.compare(known.data, message.data) === 0
      return same ? known.decoded : decode(message)
    },
  }
}

function decode({ data, sequence, streamCreatedMs }: ConsumedMessage): Decoded {
  try {
    const { events, invalid } = decodeBatch(data, toPosition(streamCreatedMs, sequence))
    const letters = invalid.map(({ index, detail, value }): DeadLetter => {
      const bytes = Buffer.from(JSON.stringify(value))
      return { reason: 'invalid_event', detail, id: `${sequence}-${index}`, data: bytes }
    })
    return { events, letters }
  } catch (error) {
    if (!(error instanceof PoisonError)) throw error
    const { reason, message: detail } = error
    return { events: [], letters: [{ reason, detail, id: `${sequence}`, data }] }
  }
}
