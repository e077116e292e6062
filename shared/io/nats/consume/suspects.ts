/**
 * Messages that failed by a defect, which are retried alone. One is forgotten when this process
 * acknowledges it, or when it is the oldest of too many: another process may have taken it.
 */
import { LRUCache } from 'lru-cache'
import { pendingMax } from '../streams/telemetry-stream.ts'
import type { DeliveredMessage } from './fetcher.ts'

/** By offset: a stream that was put back repeats its sequences. */
type Message = Pick<DeliveredMessage, 'streamOffset'>

export type Suspects = {
  has: (message: Message) => boolean
  /**
   * Notes a failure.
   * @param acknowledgedCount messages that this process has acknowledged so far
   * @returns that number at its first failure; undefined when this is the first
   */
  note: (message: Message, acknowledgedCount: number) => number | undefined
  forget: (message: Message) => void
}

/** @param max as many as can be unacknowledged at a time, by default */
export function createSuspects(max = pendingMax): Suspects {
  const counts = new LRUCache<number, number>({ max })
  return {
    has: ({ streamOffset }) => counts.has(streamOffset),
    note: ({ streamOffset }, acknowledgedCount) => {
      const before = counts.get(streamOffset)
      if (before === undefined) counts.set(streamOffset, acknowledgedCount)
      return before
    },
    forget: ({ streamOffset }) => counts.delete(streamOffset),
  }
}
