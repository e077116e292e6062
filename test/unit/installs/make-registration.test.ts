import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { noEvidence, type VerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import { toInstallRoot } from '#shared/core/installs/install-token.ts'
import { makeRegistration } from '../../../services/ingest/installs/make-registration.ts'
import { makeKey, toKeyInfo } from '../../support/attestation/make-certificate.ts'

const root = toInstallRoot(1, randomBytes(32))
const request = {
  tenantId: 'a'.repeat(63),
  deviceId: 'pixel-1',
  challenge: Buffer.alloc(40),
  challengeFault: null,
  app: { platform: 'android' as const, id: 'com.example.bank' },
  deviceModel: '',
  evidence: { provider: 'none' as const },
  receivedAtMs: Date.UTC(2026, 10, 1),
}
const register = (publicKey: Buffer) => {
  const evidence: VerifiedEvidence = {
    ...noEvidence,
    provider: 'key_attestation',
    verdict: 'verified',
    level: 'strongbox',
    publicKey: publicKey.toString('base64'),
    serials: Array.from({ length: 6 }, () => 'a'.repeat(22)),
    signals: { verified: true, hardware_backed: true, os_patch_age_days: 31 },
  }
  const { answer, body } = makeRegistration(request, evidence, root)
  const { install_token: token } = JSON.parse(answer) as { install_token: string }
  const facts = JSON.parse(Buffer.from(token.split('.')[2]!, 'base64url').toString()) as {
    a: string | null
    k: string | null
  }
  return { token, facts, registration: JSON.parse(body.toString()) as { attested_key: string } }
}

it('a phone whose key is RSA is registered: its token leaves out the key, which signs no event', () => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const { token, facts, registration } = register(toKeyInfo(publicKey))
  expect(token.length).toBeLessThanOrEqual(1_024)
  expect(facts).toMatchObject({ k: null, a: 'com.example.bank' })
  // One key on two phones is still found.
  expect(registration.attested_key).toMatch(/^[\w-]{43}$/)
})

it('a key of P-256 is in the token, beside the app', () => {
  const key = toKeyInfo(makeKey().publicKey)
  const { token, facts } = register(key)
  expect(token.length).toBeLessThanOrEqual(1_024)
  expect(facts).toMatchObject({ k: key.toString('base64'), a: 'com.example.bank' })
})
