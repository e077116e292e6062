/** Makes the keys that sign verdicts. */
import { generateKeyPairSync } from 'node:crypto'
import { toVerdictJwk, type VerdictJwk } from '#shared/core/verdicts/verdict-keys.ts'

/** A new pair. The private half is PKCS #8 in base64. */
export function makeVerdictKey(): { jwk: VerdictJwk; privateKey: string } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const text = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
  return { jwk: toVerdictJwk(privateKey), privateKey: text }
}
