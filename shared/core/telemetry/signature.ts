/**
 * Telemetry signatures: base64 of HMAC-SHA256 over the raw body, keyed with the tenant's private
 * HMAC secret. Verification accepts one canonical spelling and compares in constant time.
 */
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

/**
 * Signs a body as SDKs do.
 * @param secret the tenant's HMAC secret, its characters as UTF-8 bytes
 * @returns 44 base64 characters for `X-Service-Signature`
 */
export function signBody(body: Uint8Array | string, secret: string | KeyObject): string {
  return createHmac('sha256', secret).update(body).digest('base64')
}

/**
 * Whether a header is the signature of these bytes. It does the same work for any header, so the
 * response time does not distinguish a wrong signature from a malformed one.
 * @param header the value of `X-Service-Signature`
 * @param key the tenant's secret as a key object (`createSecretKey`), made once per secret; the
 *   text of a key that is used once, for which a key object would cost more than the HMAC
 */
export function verifySignature(
  body: Uint8Array,
  header: string,
  key: KeyObject | string,
): boolean {
  const expected = Buffer.from(signBody(body, key), 'latin1')
  // `signBody` writes the canonical spelling, so comparing the texts refuses every other spelling.
  const possible = header.length === expected.length
  const given = Buffer.alloc(expected.length)
  given.write(possible ? header : noSignature, 'utf8')
  return timingSafeEqual(expected, given) && possible
}

const noSignature = '='.repeat(44)
