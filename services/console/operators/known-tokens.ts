/**
 * Tokens that are no guesses: this process issued them, or found a session by them. They are looked
 * up without waiting for guesses. Whether a session is still valid is read from Postgres each time.
 */
import { LRUCache } from 'lru-cache'

export type KnownTokens = {
  has: (tokenHash: Buffer) => boolean
  add: (tokenHash: Buffer) => void
}

/** At some 100 bytes each. */
const tokensMax = 10_000

export function createKnownTokens(): KnownTokens {
  const known = new LRUCache<string, true>({ max: tokensMax })
  return {
    has: (tokenHash) => known.has(tokenHash.toString('base64url')),
    add: (tokenHash) => void known.set(tokenHash.toString('base64url'), true),
  }
}
