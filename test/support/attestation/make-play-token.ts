/** Play Integrity tokens as Google makes them, with keys of our own. */
import { randomBytes } from 'node:crypto'
import { CompactEncrypt, CompactSign } from 'jose'
import { type KeyPair, makeKey } from './make-certificate.ts'

export type PlayAccount = { decryptionKey: Buffer; signing: KeyPair }

export const makePlayAccount = (): PlayAccount => ({
  decryptionKey: randomBytes(32),
  signing: makeKey(),
})

export type TokenOptions = {
  nonce: Buffer
  issuedMs: number
  packageName?: string
  signer: Buffer
  /** Replaces members of the verdict. */
  verdict?: Record<string, unknown>
  /** The header's `alg` of the encryption. */
  encryption?: { alg: string; enc: string; zip?: string }
  signature?: { alg: string; key: Parameters<CompactSign['sign']>[0] }
}

const makeVerdict = (options: TokenOptions): Record<string, unknown> => {
  const { nonce, issuedMs, packageName = 'com.example.bank', signer } = options
  return {
    requestDetails: {
      requestPackageName: packageName,
      nonce: nonce.toString('base64url'),
      timestampMillis: String(issuedMs),
    },
    appIntegrity: {
      appRecognitionVerdict: 'PLAY_RECOGNIZED',
      packageName,
      certificateSha256Digest: [signer.toString('base64url')],
      versionCode: '42',
    },
    deviceIntegrity: {
      deviceRecognitionVerdict: ['MEETS_DEVICE_INTEGRITY', 'MEETS_STRONG_INTEGRITY'],
    },
    accountDetails: { appLicensingVerdict: 'LICENSED' },
    environmentDetails: { playProtectVerdict: 'NO_ISSUES' },
    ...options.verdict,
  }
}

export async function makePlayToken(
  { decryptionKey, signing }: PlayAccount,
  options: TokenOptions,
): Promise<string> {
  const { alg, key } = options.signature ?? { alg: 'ES256', key: signing.privateKey }
  const payload = Buffer.from(JSON.stringify(makeVerdict(options)))
  const signed = await new CompactSign(payload).setProtectedHeader({ alg }).sign(key)
  const header = options.encryption ?? { alg: 'A256KW', enc: 'A256GCM' }
  return new CompactEncrypt(Buffer.from(signed)).setProtectedHeader(header).encrypt(decryptionKey)
}
