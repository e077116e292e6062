/**
 * `node test/generate/attestation-vectors.ts` writes `test/vectors/attestation.json` anew, with new
 * keys: signatures are random, so it is not among the files that `npm run generate` compares.
 */
import { writeFileSync } from 'node:fs'
import { makeAndroidVectors } from '../support/attestation/android-vectors.ts'
import { testSigner, toRootKey } from '../support/attestation/make-android-chain.ts'
import { makeKey, toKeyInfo } from '../support/attestation/make-certificate.ts'
import { makePlayAccount } from '../support/attestation/make-play-token.ts'
import {
  makeAppAttestVectors,
  makeAssertionVectors,
  makePlayVectors,
} from '../support/attestation/other-vectors.ts'
import {
  type AttestationVectors,
  toVectorsFile,
  vectorsPath,
} from '../support/attestation/vectors.ts'

/** @param nowMs the moment at which the vectors are checked */
export async function makeVectors(nowMs: number): Promise<AttestationVectors> {
  const android = { key: makeKey('P-384'), name: 'Test Android root' }
  const apple = { key: makeKey('P-384'), name: 'Test Apple root' }
  const account = makePlayAccount()
  const moment = { challenge: Buffer.from('the challenge of the vectors'), nowMs }
  const signers = [testSigner.toString('hex')]
  return {
    roots: { keyAttestation: [toRootKey(android)], appAttest: [toRootKey(apple)] },
    apps: [
      { platform: 'android', id: 'com.example.bank', signers },
      { platform: 'ios', id: 'com.example.bank', team: 'ABCDE12345', allowsDevelopment: false },
    ],
    play: {
      decryption_key: account.decryptionKey.toString('base64'),
      verification_key: toKeyInfo(account.signing.publicKey).toString('base64'),
    },
    vectors: [
      ...makeAndroidVectors(android, moment),
      ...makeAppAttestVectors(apple, moment),
      ...makeAssertionVectors(moment),
      ...(await makePlayVectors(account, { ...moment, signer: testSigner })),
    ],
  }
}

if (import.meta.main) {
  const vectors = await makeVectors(Date.UTC(2026, 10, 27))
  writeFileSync(vectorsPath, `${JSON.stringify(toVectorsFile(vectors), null, 1)}\n`)
}
