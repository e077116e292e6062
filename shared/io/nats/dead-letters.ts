/**
 * What can never be processed: kept on a stream of its own as it came, with the reason beside it,
 * and never tried again. A letter that cannot be stored is a failure of the infrastructure: its
 * batch waits. A full stream is no reason to wait, and neither is a tenant that sends nothing but
 * poison: then the letter is dropped, and that is counted.
 */
import { LRUCache } from 'lru-cache'
import { headers } from 'nats'
import { deadLetterBytes } from '#shared/core/base/limits/stream.ts'
import type { DropReason } from '#shared/core/base/outcome.ts'
import { type Bucket, fullBucket, takeToken } from '#shared/core/http/rate-limit.ts'
import { deadLetterSubject } from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from './connection.ts'
import { isStreamFull, type JetstreamFailure } from './jetstream-errors.ts'

export type DeadLetter = {
  reason: DropReason
  /** What is wrong with it, without any of its content. */
  detail: string
  /** Names the letter: the same poison redelivered is stored once. */
  id: string
  /** Whose it is; left out where that is not known. */
  tenantId?: string
  data: Uint8Array
}

/** Why a letter was dropped: the stream was full, or its tenant had sent more than its share. */
export type DeadLetterLoss = 'stream_full' | 'tenant_share'

export type DeadLettersOptions = {
  nats: Nats
  /** The monotonic clock. */
  nowMs: () => number
  /** Called for each letter that is dropped. */
  onLost: (loss: DeadLetterLoss) => void
}

/** Resolves once every letter is stored, or dropped. @throws when the broker does not answer */
export type StoreDeadLetters = (deadLetters: readonly DeadLetter[]) => Promise<void>

/** Publishes under way: a batch of thousands of letters must not take a sync of the disk each. */
const publishesAtOnce = 32
/** Tenants whose share is remembered, the latest. */
const tenantsMax = 10_000

export function createDeadLetters({ nats, nowMs, onLost }: DeadLettersOptions): StoreDeadLetters {
  const shares = new LRUCache<string, Bucket>({ max: tenantsMax })
  const store = async (letter: DeadLetter) => {
    const tenantId = letter.tenantId ?? ''
    const share = shares.get(tenantId) ?? fullBucket(deadLetterBytes, nowMs())
    shares.set(tenantId, share)
    const { length } = letter.data
    if (!takeToken(share, deadLetterBytes, nowMs(), length).allowed) return onLost('tenant_share')
    try {
      await publish(nats, letter)
    } catch (error) {
      // It is tried again, or was not stored.
      share.tokens += length
      const { api_error: failure } = error as { api_error?: JetstreamFailure }
      if (failure === undefined || !isStreamFull(failure)) throw error
      onLost('stream_full')
    }
  }
  return async (deadLetters) => {
    for (let at = 0; at < deadLetters.length; at += publishesAtOnce) {
      const results = await Promise.allSettled(
        deadLetters.slice(at, at + publishesAtOnce).map(store),
      )
      for (const result of results) if (result.status === 'rejected') throw result.reason
    }
  }
}

async function publish(nats: Nats, { reason, detail, id, data }: DeadLetter): Promise<void> {
  const about = headers()
  about.set('Reason', reason)
  about.set('Detail', detail.replace(/[^\x20-\x7e]+/g, ' '))
  await nats.jetstream.publish(deadLetterSubject, data, { headers: about, msgID: `dead-${id}` })
}
