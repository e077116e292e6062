/**
 * The keys that sign verdict tokens. There is always a `next` key beside the `current` one: it is
 * published long before it signs, so a verifier that keeps a copy of the keys has it by then. A
 * `previous` key stays published until its last token has expired.
 */
import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { verdictKeyPublishedMsMin } from '#shared/core/base/limits/tenants.ts'

export const verdictKeyStates = ['next', 'current', 'previous'] as const
export type VerdictKeyState = (typeof verdictKeyStates)[number]

/** The public half as it is published (RFC 7517). */
export const verdictJwkSchema = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string(),
  y: z.string(),
  kid: z.string().meta({ description: 'The thumbprint of the key (RFC 7638).' }),
  use: z.literal('sig'),
  alg: z.literal('ES256'),
})
export type VerdictJwk = z.infer<typeof verdictJwkSchema>

export const verdictKeySetSchema = z
  .object({ keys: z.array(verdictJwkSchema) })
  .meta({ id: 'VerdictKeys', description: 'A JSON Web Key Set.' })
export type VerdictKeySet = z.infer<typeof verdictKeySetSchema>

/** The KV key of the entry with the key that edges sign with. No tenant's key begins so. */
export const verdictKeyEntryKey = 'verdict-key'

/** The entry; JSON `null` in its place means that there is no key. */
export const verdictKeyEntrySchema = z.object({
  kid: z.string(),
  /** PKCS #8 in base64, sealed for edges. */
  private_key_sealed: z.string(),
})
export type VerdictKeyEntry = z.infer<typeof verdictKeyEntrySchema>

/** The public half of a key on P-256, with its thumbprint as its id. */
export function toVerdictJwk(key: KeyObject): VerdictJwk {
  const { x, y } = createPublicKey(key).export({ format: 'jwk' }) as { x: string; y: string }
  // The members that RFC 7638 names, in their order.
  const kid = hash('sha256', JSON.stringify({ crv: 'P-256', kty: 'EC', x, y }), 'base64url')
  return { kty: 'EC', crv: 'P-256', x, y, kid, use: 'sig', alg: 'ES256' }
}

/**
 * When the next key may sign, in ms since 1970: by then every copy of the keys that was made before
 * it was published has expired.
 */
export const mayRotateAtMs = (next: { createdAtMs: number }): number =>
  next.createdAtMs + verdictKeyPublishedMsMin
