/** Evidence of phones of our own making, as apps send it. */
import { hash } from 'node:crypto'
import type { Evidence } from '#shared/core/attestation/recognize.ts'
import type { AttestationRoots } from '#shared/core/attestation/roots.ts'
import {
  makeChain,
  makeKeyDescription,
  makePhone,
  type PhoneOptions,
  testSigner,
  toRootKey,
} from '../attestation/make-android-chain.ts'
import { makeAttestation } from '../attestation/make-app-attest.ts'
import { makeKey, toKeyInfo } from '../attestation/make-certificate.ts'
import { makePlayAccount, makePlayToken } from '../attestation/make-play-token.ts'

const root = { key: makeKey(), name: 'Test Android root' }
const appleRoot = { key: makeKey('P-384'), name: 'Test Apple root' }
const phone = makePhone(root)
const play = makePlayAccount()

export const testRoots: AttestationRoots = {
  keyAttestation: [toRootKey(root)],
  appAttest: [toRootKey(appleRoot)],
}

/** The file that `ATTESTATION_TEST_ROOTS_FILE` names. */
export const testRootsFile = JSON.stringify({
  key_attestation: testRoots.keyAttestation.map(({ name, publicKeyInfo }) => ({
    name,
    public_key: publicKeyInfo,
  })),
  app_attest: testRoots.appAttest.map(({ name, publicKeyInfo }) => ({
    name,
    public_key: publicKeyInfo,
  })),
})

export const playKeys = {
  decryption_key: play.decryptionKey.toString('base64'),
  verification_key: toKeyInfo(play.signing.publicKey).toString('base64'),
}

export const androidApp = {
  platform: 'android' as const,
  id: 'com.example.bank',
  signers: [testSigner.toString('hex')],
}
export const appleApp = {
  platform: 'ios' as const,
  id: 'com.example.bank',
  team: 'ABCDE12345',
}

export function toChainEvidence(challenge: Buffer, options: Partial<PhoneOptions> = {}): Evidence {
  const chain = makeChain(phone, { description: makeKeyDescription({ challenge, ...options }) })
  return { provider: 'key_attestation', chain: chain.map((der) => der.toString('base64')) }
}

export function toAppleEvidence(challenge: Buffer, nowMs: number): Evidence {
  const appId = `${appleApp.team}.${appleApp.id}`
  const made = makeAttestation(appleRoot, { appId, challenge, fromMs: nowMs - 60_000 })
  return {
    provider: 'app_attest',
    key_id: made.keyId.toString('base64'),
    attestation: made.attestation.toString('base64'),
  }
}

/**
 * @param nonce the challenge, or a body's hash
 * @param verdict replaces members of Google's verdict
 */
export const toPlayToken = (
  nonce: Buffer,
  issuedMs: number,
  verdict: Record<string, unknown> = {},
): Promise<string> => makePlayToken(play, { nonce, issuedMs, signer: testSigner, verdict })

export const hashBody = (body: Buffer): Buffer => hash('sha256', body, 'buffer')
