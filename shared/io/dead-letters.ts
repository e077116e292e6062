/**
 * What can never be processed: kept on a stream of its own as it came, with the reason beside it,
 * and never tried again. A letter that cannot be stored is a failure of the infrastructure: its
 * batch waits. Only a full stream is no reason to wait: then the letter is given up, and that is
 * counted.
 */
import { headers } from 'nats'
import { deadLetterSubject } from '#shared/core/messages.ts'
import type { DropReason } from '#shared/core/outcome.ts'
import { isJetstreamError, jetstreamCodes } from './jetstream-errors.ts'
import type { Nats } from './nats.ts'

export type DeadLetter = {
  reason: DropReason
  /** What is wrong with it, without any of its content. */
  detail: string
  /** Names the letter: the same poison redelivered is stored once. */
  id: string
  data: Uint8Array
}

/**
 * Resolves once every letter is stored.
 * @param onLost told of each letter for which the stream had no room
 */
export async function storeDeadLetters(
  nats: Nats,
  letters: readonly DeadLetter[],
  onLost: (letter: DeadLetter) => void,
): Promise<void> {
  for (const letter of letters) {
    const about = headers()
    about.set('Reason', letter.reason)
    about.set('Detail', letter.detail.replace(/[^\x20-\x7e]+/g, ' '))
    try {
      await nats.jetstream.publish(deadLetterSubject, letter.data, {
        headers: about,
        msgID: `dead-${letter.id}`,
      })
    } catch (error) {
      if (!isJetstreamError(error, jetstreamCodes.streamStoreFailed)) throw error
      onLost(letter)
    }
  }
}
