/**
 * `node test/generate/attestation-vectors.ts` writes `test/vectors/attestation` anew, with new keys:
 * signatures are random, so it is not among the files that `npm run generate` compares.
 */
import { makeAndroidVectors } from '../support/attestation/android-vectors.ts'
import { testSigner, toRootKey } from '../support/attestation/make-android-chain.ts'
import { makeKey, toKeyInfo } from '../support/attestation/make-certificate.ts'
import { makePlayAccount } from '../support/attestation/make-play-token.ts'
import {
  makeAppAttestVectors,
  makeAssertionVectors,
  makePlayVectors,
} from '../support/attestation/other-vectors.ts'
import { toStep } from '../support/attestation/vector-steps.ts'
import { type AttestationVectors, writeVectors } from '../support/attestation/vectors.ts'

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
    ].map((vector) => {
      const { kind, reason, step } = vector
      return { ...vector, step: step ?? (reason === null ? null : toStep(kind, reason)) }
    }),
  }
}

if (import.meta.main) {
  writeVectors(await makeVectors(Date.UTC(2026, 10, 27)))
}
