/** Challenges: any edge takes what any edge gave, for two minutes, and nothing else. */
import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { challengeAheadMs, challengeMs } from '#shared/core/base/limits/installs.ts'
import {
  challengeBytes,
  decodeChallenge,
  findChallengeFault,
  makeChallenge,
} from '#shared/core/installs/challenge.ts'

const key = Buffer.alloc(32, 1)
const previous = Buffer.alloc(32, 2)
const atMs = 1_790_000_000_000
const { challenge, expiresAtMs } = makeChallenge(key, randomBytes(16), atMs)
const bytes = decodeChallenge(challenge)!
const judge = (nowMs: number, keys = [key], text = challenge) =>
  findChallengeFault(decodeChallenge(text)!, keys, nowMs)

describe('a challenge', () => {
  it('counts for two minutes', () => {
    expect(expiresAtMs).toBe(atMs + challengeMs)
    expect(bytes).toHaveLength(challengeBytes)
    expect(judge(atMs)).toBeNull()
    expect(judge(expiresAtMs - 1)).toBeNull()
    expect(judge(expiresAtMs)).toBe('challenge_expired')
    expect(judge(atMs + 1e12)).toBe('challenge_expired')
  })

  it('may come from an edge whose clock is a little ahead', () => {
    expect(judge(atMs - challengeAheadMs)).toBeNull()
    expect(judge(atMs - challengeAheadMs - 1)).toBe('challenge_expired')
  })

  it('counts under the previous key as well, while keys are replaced', () => {
    expect(judge(atMs, [previous, key])).toBeNull()
    expect(judge(atMs, [previous])).toBe('challenge_foreign')
  })

  it('is another one each time', () => {
    const made = Array.from({ length: 100 }, () => makeChallenge(key, randomBytes(16), atMs))
    expect(new Set(made.map((one) => one.challenge)).size).toBe(100)
  })

  it('with any bit changed is not of this service', () => {
    for (let bit = 0; bit < 8 * challengeBytes; bit++) {
      const changed = Buffer.from(bytes)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      expect(findChallengeFault(changed, [key], atMs)).toBe('challenge_foreign')
    }
  })

  it.each([
    ['empty', ''],
    ['of 39 bytes', bytes.subarray(1).toString('base64url')],
    ['of 41 bytes', Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64url')],
    ['padded', `${challenge}==`],
    ['in the other alphabet', `+/${challenge.slice(2)}`],
    ['with spare bits', challenge.slice(0, -1) + spareBitsOf(challenge.at(-1)!)],
    ['with a newline', `${challenge}\n`],
  ])('%s has no bytes', (_, text) => {
    expect(decodeChallenge(text)).toBeNull()
  })
})

/** A last character with the same upper bits and other spare ones. */
function spareBitsOf(letter: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return alphabet[alphabet.indexOf(letter) + 1]!
}
