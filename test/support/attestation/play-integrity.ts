/** A simulated Play Integrity: tokens as Google's servers make them for an app with keys of its own. */
import { createHash } from 'node:crypto'
import { testSigner } from './make-android-chain.ts'
import { toKeyInfo } from './make-certificate.ts'
import { makePlayToken, type PlayAccount } from './make-play-token.ts'

export type PlayIntegrityOptions = {
  account: PlayAccount
  packageName: string
  /** SHA-256 of the certificate that signed the app. */
  signer?: Buffer
  /** What Google says of the phone. */
  device?: readonly string[]
  nowMs: () => number
}

export type PlayIntegrity = {
  /** A token of a classic request whose nonce is the challenge. */
  attest: (challenge: Uint8Array) => Promise<string>
  /** A token whose nonce is SHA-256 of a body. */
  prove: (body: Uint8Array) => Promise<string>
}

/** The two keys as the Play Console shows them: base64. */
export const toConsoleKeys = ({ decryptionKey, signing }: PlayAccount) => ({
  decryption_key: decryptionKey.toString('base64'),
  verification_key: toKeyInfo(signing.publicKey).toString('base64'),
})

export function createPlayIntegrity(options: PlayIntegrityOptions): PlayIntegrity {
  const { account, packageName, signer = testSigner, device, nowMs } = options
  const verdict =
    device === undefined ? {} : { deviceIntegrity: { deviceRecognitionVerdict: device } }
  const attest = (nonce: Uint8Array) =>
    makePlayToken(account, {
      nonce: Buffer.from(nonce),
      issuedMs: nowMs(),
      packageName,
      signer,
      verdict,
    })
  return { attest, prove: (body) => attest(createHash('sha256').update(body).digest()) }
}
