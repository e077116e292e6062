/**
 * The key that signs verdicts on an edge: opened when its entry arrives, and in memory alone. An
 * entry that cannot be used leaves the edge without a key: it never signs with an earlier one.
 */
import { createPrivateKey } from 'node:crypto'
import { toVerdictJwk, verdictKeyEntrySchema } from '#shared/core/verdicts/verdict-keys.ts'
import { createVerdictSigner, type VerdictSigner } from '#shared/core/verdicts/verdict-token.ts'
import type { Opener } from './sealed-secrets.ts'

/** Why an edge has no key although there is an entry. */
export type VerdictKeyFault = 'unreadable_verdict_key' | 'unsealable_verdict_key'

export type VerdictKeyCopy = {
  signer: () => VerdictSigner | null
  /** @param entry its value; undefined when there is none, or none that a console wrote */
  set: (entry: unknown) => void
}

/** @param onFault called for an entry that cannot be used, with the id of its key */
export function createVerdictKeyCopy(
  opener: Opener,
  onFault: (fault: VerdictKeyFault, kid: string) => void,
): VerdictKeyCopy {
  let signer: VerdictSigner | null = null
  return {
    signer: () => signer,
    set: (value) => {
      signer = null
      if (value === undefined) return
      const parsed = verdictKeyEntrySchema.safeParse(value)
      if (!parsed.success) {
        onFault('unreadable_verdict_key', '')
        return
      }
      const { kid, private_key_sealed: sealed } = parsed.data
      try {
        const text = opener.unseal(sealed, { verdictKeyId: kid, kind: 'verdict' })
        const bytes = Buffer.from(text, 'base64')
        const key = createPrivateKey({ key: bytes, format: 'der', type: 'pkcs8' })
        // What it signs must verify with the published key of this id.
        if (toVerdictJwk(key).kid === kid) signer = createVerdictSigner(kid, key)
        else onFault('unreadable_verdict_key', kid)
      } catch {
        onFault('unsealable_verdict_key', kid)
      }
    },
  }
}
