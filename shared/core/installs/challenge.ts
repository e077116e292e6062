/**
 * Challenges of registrations: 8 bytes of time, 16 random bytes and 16 bytes of MAC under a key
 * that every edge derives. None is stored, so every edge takes what any of them gave.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { challengeAheadMs, challengeMs } from '#shared/core/base/limits/installs.ts'

export const challengeBytes = 40
export const challengeRandomBytes = 16
/** Forty bytes in base64url, without padding. */
const challengePattern = /^[A-Za-z0-9_-]{54}$/

const timeBytes = 8
const signedBytes = timeBytes + challengeRandomBytes

/** Why a challenge does not count. */
export type ChallengeFault = 'challenge_foreign' | 'challenge_expired'

/**
 * @param key 32 bytes
 * @param random 16 random bytes
 * @param atMs the wall clock, in ms since 1970
 */
export function makeChallenge(
  key: Uint8Array,
  random: Uint8Array,
  atMs: number,
): { challenge: string; expiresAtMs: number } {
  const head = Buffer.alloc(signedBytes)
  head.writeBigUInt64BE(BigInt(atMs))
  head.set(random.subarray(0, challengeRandomBytes), timeBytes)
  const challenge = Buffer.concat([head, macOf(key, head)]).toString('base64url')
  return { challenge, expiresAtMs: atMs + challengeMs }
}

/**
 * Decodes a challenge without judging it.
 * @returns its 40 bytes; null when the text has another form
 */
export function decodeChallenge(text: string): Buffer | null {
  if (!challengePattern.test(text)) return null
  const bytes = Buffer.from(text, 'base64url')
  // One value has one spelling: its spare bits are zero.
  return bytes.length === challengeBytes && bytes.toString('base64url') === text ? bytes : null
}

/**
 * Judges the bytes of a challenge.
 * @param keys the present key, and the previous one while keys are replaced
 * @param nowMs the wall clock, in ms since 1970
 * @returns null when this service made it and it may still be answered
 */
export function findChallengeFault(
  bytes: Buffer,
  keys: readonly Uint8Array[],
  nowMs: number,
): ChallengeFault | null {
  const head = bytes.subarray(0, signedBytes)
  const mac = bytes.subarray(signedBytes)
  let isOurs = false
  for (const key of keys) isOurs = timingSafeEqual(mac, macOf(key, head)) || isOurs
  if (!isOurs) return 'challenge_foreign'
  const atMs = Number(head.readBigUInt64BE())
  const isInTime = nowMs < atMs + challengeMs && nowMs >= atMs - challengeAheadMs
  return isInTime ? null : 'challenge_expired'
}

const macOf = (key: Uint8Array, head: Uint8Array): Buffer =>
  createHmac('sha256', key)
    .update(head)
    .digest()
    .subarray(0, challengeBytes - signedBytes)
