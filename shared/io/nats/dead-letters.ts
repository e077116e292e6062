/**
 * Stores data that can never be processed in the dead-letter stream: the received bytes with a
 * reason. A failure of the broker fails the batch, which is retried. When the stream is full, or a
 * tenant exceeds its share of it, the letter is dropped and counted instead.
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
  /** What is wrong with it, without its content. */
  detail: string
  /**
   * Identifies the letter, so that a redelivered one is stored once. By the offset of its message:
   * a stream that was put back repeats its sequences.
   */
  id: string
  /** Absent when the tenant is unknown. */
  tenantId?: string
  data: Uint8Array
}

/** Why a letter was dropped: the stream is full, or the tenant exceeds its share. */
export const deadLetterLosses = ['stream_full', 'tenant_share'] as const
export type DeadLetterLoss = (typeof deadLetterLosses)[number]

type DeadLettersOptions = {
  nats: Nats
  /** The monotonic clock. */
  nowMs: () => number
  /** Called for each letter that is dropped. */
  onLost: (loss: DeadLetterLoss) => void
}

/** Resolves when every letter is stored or dropped. @throws when the broker does not answer */
type StoreDeadLetters = (deadLetters: readonly DeadLetter[]) => Promise<void>

/** Concurrent publishes: letters published together share syncs of the broker's disk. */
const publishesAtOnce = 32
/** Tenants whose share is in memory; the least recently used is evicted. */
const tenantsMax = 10_000

/** @returns a function that stores letters, each tenant within its share */
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
      // Not stored, or retried: give the tokens back.
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
  const meta = headers()
  meta.set('Reason', reason)
  meta.set('Detail', detail.replace(/[^\x20-\x7e]+/g, ' '))
  await nats.jetstream.publish(deadLetterSubject, data, { headers: meta, msgID: `dead-${id}` })
}
