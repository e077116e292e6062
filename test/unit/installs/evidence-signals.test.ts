import { describe, expect, it } from 'vitest'
import { sha256 } from '#shared/core/attestation/encodings.ts'
import { hashSerial, toVerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import { explicit, octets } from '../../support/attestation/der.ts'
import {
  makeChain,
  makeKeyDescription,
  makePhone,
  type PhoneOptions,
  toRootKey,
} from '../../support/attestation/make-android-chain.ts'
import { makeKey } from '../../support/attestation/make-certificate.ts'
import { checkVector, readVectors } from '../../support/attestation/vectors.ts'

const file = readVectors()
const verify = async (name: string) => {
  const vector = file.vectors.find((one) => one.name === name)
  if (vector === undefined) throw new Error(`there is no vector ${name}`)
  return toVerifiedEvidence(await checkVector(file, vector))
}

const root = { key: makeKey(), name: 'Test Android root' }
const phone = makePhone(root)
const challenge = Buffer.alloc(40, 7)
const nowMs = Date.UTC(2026, 10, 1)

/** A chain of a phone of our own. */
async function verifyPhone(
  options: Partial<PhoneOptions> = {},
  more: { statusList?: unknown; asked?: Buffer; isRemote?: boolean } = {},
) {
  const description = makeKeyDescription({ challenge, ...options })
  const chain = makeChain(phone, { description, isRemote: more.isRemote ?? false })
  const roots = { keyAttestation: [toRootKey(root)], appAttest: [] }
  const vector = {
    name: 'own',
    kind: 'key_attestation' as const,
    input: [],
    challenge: (more.asked ?? challenge).toString('base64'),
    now_ms: nowMs,
    verdict: 'verified' as const,
    reason: null,
    level: 'hardware' as const,
    step: null,
    ...(more.statusList === undefined ? {} : { status_list: more.statusList }),
  }
  return toVerifiedEvidence(await checkVector({ ...file, roots }, vector, chain))
}

describe('server signals of evidence', () => {
  it('says of a genuine phone that it is verified, in hardware, and how old its patch is', async () => {
    expect(await verifyPhone()).toEqual({
      provider: 'key_attestation',
      verdict: 'verified',
      reason: null,
      unreadable: null,
      proven: true,
      level: 'hardware',
      publicKey: expect.stringMatching(/^MFkw/),
      issuers: [expect.stringMatching(/^[\w-]{22}$/), expect.stringMatching(/^[\w-]{22}$/)],
      serials: [hashSerial('a1b2'), hashSerial('c3d4')],
      remotelyProvisioned: false,
      deviceModel: '',
      signals: { verified: true, hardware_backed: true, os_patch_age_days: 31 },
    })
  })

  it('keeps what is proven of an unlocked phone, which is rejected', async () => {
    const { verdict, reason, signals } = await verifyPhone({ isLocked: false, bootState: 2 })
    expect([verdict, reason]).toEqual(['rejected', 'bootloader_unlocked'])
    expect(signals).toEqual({
      rejected: true,
      hardware_backed: true,
      bootloader_unlocked: true,
      boot_unverified: true,
      os_patch_age_days: 31,
    })
  })

  it('believes nothing of a chain that was made for another challenge', async () => {
    const asked = Buffer.alloc(40, 8)
    const replayed = await verifyPhone({ isLocked: false }, { asked })
    expect(replayed).toMatchObject({ reason: 'challenge_mismatch', level: 'none' })
    // Nor does it name the key of the phone that it was copied from.
    expect(replayed).toMatchObject({ publicKey: null, issuers: [], serials: [] })
    expect(replayed.signals).toEqual({ rejected: true, hardware_backed: false })
  })

  it('says that a chain is revoked, keeps who issued it, and credits it with no hardware', async () => {
    const statusList = { entries: { a1b2: { status: 'REVOKED', reason: 'KEY_COMPROMISE' } } }
    const revoked = await verifyPhone({}, { statusList })
    expect(revoked).toMatchObject({ verdict: 'rejected', reason: 'revoked', level: 'none' })
    expect(revoked.signals).toEqual({
      rejected: true,
      revoked: true,
      hardware_backed: false,
      os_patch_age_days: 31,
    })
    expect(revoked.serials).toContain(hashSerial('a1b2'))
  })

  it('names the app of someone else, and a phone that was provisioned remotely', async () => {
    const { signals } = await verifyPhone({ packageName: 'com.example.other' })
    expect(signals).toMatchObject({ rejected: true, app_unknown: true })
    expect(await verifyPhone({}, { isRemote: true })).toMatchObject({ remotelyProvisioned: true })
  })

  it('reads the model that the hardware states, and no id of a phone', async () => {
    const ids = ['serial-4711', 'imei-358240051111110', 'meid-1', 'imei-2-358240051111111']
    const more = [
      explicit(713, octets(Buffer.from(ids[0]!))),
      explicit(714, octets(Buffer.from(ids[1]!))),
      explicit(715, octets(Buffer.from(ids[2]!))),
      explicit(717, octets(Buffer.from('Pixel 10 Pro'))),
      explicit(723, octets(Buffer.from(ids[3]!))),
    ]
    const verified = await verifyPhone({ more })
    expect(verified).toMatchObject({ verdict: 'verified', deviceModel: 'Pixel 10 Pro' })
    const text = JSON.stringify(verified)
    for (const id of ids) {
      expect(text).not.toContain(id)
      expect(text).not.toContain(Buffer.from(id).toString('base64'))
    }
  })

  it('reads a software key as one, which no hardware backs', async () => {
    const { level, signals } = await verifyPhone({ level: 0 })
    expect(level).toBe('software')
    expect(signals.hardware_backed).toBe(false)
    expect(signals).not.toHaveProperty('verified')
  })

  it('says of a development key of Apple that its build is one for developers', async () => {
    const { signals, issuers } = await verify('app attest: development, which the app allows')
    expect(signals).toEqual({ verified: true, hardware_backed: true, debug_build: true })
    // Apple's intermediate is that of every phone: nothing can be told from it.
    expect(issuers).toEqual([])
  })

  it('says of a testing response of Play that it is one, and takes it in a sandbox alone', async () => {
    const inSandbox = await verify('play: a testing response, in a sandbox')
    expect(inSandbox.signals).toMatchObject({
      verified: true,
      debug_build: true,
      pi_licensing: 'LICENSED',
    })
    const live = await verify('play: a testing response')
    expect(live.signals).toEqual({ rejected: true, debug_build: true })
    expect(live).toMatchObject({ level: 'none', reason: 'testing_response' })
  })

  it('gives no one of the vectors a credit that its verdict does not have', async () => {
    for (const vector of file.vectors.filter(({ kind }) => kind !== 'assertion')) {
      const { signals, verdict, level } = toVerifiedEvidence(await checkVector(file, vector))
      const isVerified = vector.verdict === 'verified' && vector.level !== 'none'
      expect([vector.name, signals.verified === true]).toEqual([vector.name, isVerified])
      expect([vector.name, signals.rejected === true]).toEqual([
        vector.name,
        verdict === 'rejected',
      ])
      if (level === 'none') expect(signals.hardware_backed).not.toBe(true)
    }
  })
})

describe('the hash of a serial', () => {
  it('is the start of the SHA-256 of its lower-case hex, in base64url', () => {
    const expected = sha256(Buffer.from('c3d4')).toString('base64url').slice(0, 22)
    expect(hashSerial('c3d4').slice(0, 21)).toBe(expected.slice(0, 21))
    expect(Buffer.from(hashSerial('c3d4'), 'base64url')).toEqual(
      sha256(Buffer.from('c3d4')).subarray(0, 16),
    )
  })
})
