/**
 * Telemetry signatures: base64 of HMAC-SHA256 over the raw body, keyed with the tenant's private
 * HMAC secret. Verification accepts one canonical spelling and compares in constant time.
 */
import { createHmac, hash, type KeyObject, timingSafeEqual } from 'node:crypto'
import { bodyBytesMax } from './limits.ts'

/**
 * The only spelling of 32 bytes that we accept: 43 characters of the standard alphabet, the last
 * with zero spare bits, and one pad. Node's decoder alone accepts at least eight others.
 */
export const signaturePattern = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/**
 * Signs a body as SDKs do.
 * @param secret the tenant's HMAC secret, its characters as UTF-8 bytes
 * @returns 44 base64 characters for `X-Service-Signature`
 */
export function signBody(body: Uint8Array | string, secret: string | KeyObject): string {
  return createHmac('sha256', secret).update(body).digest('base64')
}

/** HMAC's two keyed blocks, which are the same for every body under one key. */
type Pads = { inner: Buffer; outer: Buffer }

const blockBytes = 64
const digestBytes = 32
const padsOf = new WeakMap<KeyObject, Pads>()

function toPads(key: KeyObject): Pads {
  const secret = key.export()
  const block = Buffer.alloc(blockBytes)
  block.set(secret.length > blockBytes ? hash('sha256', secret, 'buffer') : secret)
  const mix = (mask: number) => Buffer.from(block.map((byte) => byte ^ mask))
  return { inner: mix(0x36), outer: mix(0x5c) }
}

// Nothing of these outlives a call: bodies and digests are put side by side here to be hashed.
let inner = Buffer.alloc(blockBytes + bodyBytesMax)
const outer = Buffer.alloc(blockBytes + digestBytes)
const expected = Buffer.alloc(44)
const given = Buffer.alloc(44)

/**
 * Whether a header is the signature of these bytes. The work is the same whatever the header is, so
 * that the time of an answer does not tell a wrong signature from a malformed one. HMAC is written
 * out as its two hashes, since that costs half of what an HMAC object does.
 * @param header the value of `X-Service-Signature`
 * @param key the tenant's secret as a key object (`createSecretKey`), made once per secret
 */
export function verifySignature(body: Uint8Array, header: string, key: KeyObject): boolean {
  let pads = padsOf.get(key)
  if (pads === undefined) {
    pads = toPads(key)
    padsOf.set(key, pads)
  }
  const bytes = blockBytes + body.length
  if (inner.length < bytes) inner = Buffer.alloc(bytes)
  inner.set(pads.inner)
  inner.set(body, blockBytes)
  outer.set(pads.outer)
  outer.write(hash('sha256', inner.subarray(0, bytes), 'binary'), blockBytes, 'latin1')
  expected.write(hash('sha256', outer, 'base64'), 'latin1')
  // What Node writes is the one spelling, so comparing the text refuses every other.
  const possible = header.length === given.length
  // A character that does not fit is not written: nothing of an earlier header may stand there.
  given.fill(0)
  given.write(possible ? header : noSignature, 'utf8')
  return timingSafeEqual(expected, given) && possible
}

const noSignature = '='.repeat(44)
