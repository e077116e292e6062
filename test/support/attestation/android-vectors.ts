/** Vectors of Android Key Attestation: one genuine phone of each kind, one for each step's failure. */
import { enumerated, explicit, integer, octets, sequence, boolean as truth } from './der.ts'
import {
  type ChainOptions,
  keyDescriptionOid,
  makeChain,
  makeKeyDescription,
  makePhone,
  type PhoneOptions,
  type TestRoot,
} from './make-android-chain.ts'
import { makeCertificate, makeKey, makeMlDsaKey } from './make-certificate.ts'
import type { AttestationVector } from './vectors.ts'

type Expected = Pick<AttestationVector, 'verdict' | 'reason' | 'level' | 'step'>

const day = 86_400_000
const verified = (level: Expected['level']): Expected => ({
  verdict: 'verified',
  reason: null,
  level,
})
const rejected = (
  reason: NonNullable<Expected['reason']>,
  level: Expected['level'] = 'none',
): Expected => ({ verdict: 'rejected', reason, level })

export function makeAndroidVectors(
  root: TestRoot,
  { challenge, nowMs }: { challenge: Buffer; nowMs: number },
): AttestationVector[] {
  const toVector = (name: string, chain: readonly Buffer[], expected: Expected, more = {}) => {
    const input = chain.map((certificate) => certificate.toString('base64'))
    const common = { challenge: challenge.toString('base64'), now_ms: nowMs }
    const vector = { name: `android: ${name}`, kind: 'key_attestation' as const, input }
    return { ...vector, ...common, ...more, ...expected }
  }
  const device = makePhone(root)
  const describe = (phone: Partial<PhoneOptions> = {}) =>
    makeKeyDescription({ challenge, ...phone })
  const chain = (options: Partial<ChainOptions> = {}) =>
    makeChain(device, { description: describe(), ...options })
  const phone = (name: string, options: Partial<PhoneOptions>, expected: Expected, more = {}) =>
    toVector(name, chain({ description: describe(options) }), expected, more)
  const withChain = (name: string, options: Partial<ChainOptions>, expected: Expected) =>
    toVector(name, chain(options), expected)

  const genuine = chain()
  const [leaf, issuer, intermediate, rootCertificate] = genuine as [Buffer, Buffer, Buffer, Buffer]
  /** The attested key signs a certificate about a key of the attacker's. */
  const extend = (extensions: readonly (readonly [string, Buffer])[]) =>
    makeCertificate({
      subject: 'Android Keystore Key',
      issuer: 'Android Keystore Key',
      key: makeKey().publicKey,
      signer: device.leafKey.privateKey,
      extensions,
    })
  const forged = [keyDescriptionOid, describe()] as const
  const otherKey = makeKey().privateKey
  const remote = (fromMs: number, toMs: number): Partial<ChainOptions> => ({
    isRemote: true,
    issuer: { fromMs, toMs },
  })
  const mlDsa = makeMlDsaKey()
  const malformedRootOfTrust = explicit(
    704,
    sequence([
      octets(Buffer.alloc(32)),
      Buffer.of(1, 1, 1),
      enumerated(0),
      octets(Buffer.alloc(32)),
    ]),
  )
  const noLockedPhone = { hasRootOfTrust: false }

  return [
    toVector('a key in the processor’s secure part', genuine, verified('hardware')),
    phone('a key in a StrongBox', { level: 2 }, verified('strongbox')),
    withChain(
      'a factory’s certificates that have ended',
      {
        issuer: { fromMs: 0, toMs: nowMs - day },
      },
      verified('hardware'),
    ),
    withChain(
      'a factory’s issuer without the CA flag',
      { issuer: { isCa: false } },
      verified('hardware'),
    ),
    withChain('remotely provisioned', remote(nowMs - day, nowMs + day), verified('hardware')),
    withChain(
      'a leaf whose own dates are wrong',
      {
        ...remote(nowMs - day, nowMs + day),
        leaf: { fromMs: nowMs + day, toMs: nowMs + 2 * day },
      },
      verified('hardware'),
    ),
    withChain(
      'a root certificate that has ended',
      { root: { fromMs: 0, toMs: nowMs - day } },
      verified('hardware'),
    ),
    phone(
      'a tag that is not known yet',
      { more: [explicit(799, integer(1))] },
      verified('hardware'),
    ),
    withChain('an ML-DSA key', { leaf: { key: mlDsa.publicKey } }, verified('hardware')),
    withChain(
      'signed with ML-DSA',
      {
        issuer: { key: mlDsa.publicKey },
        leaf: { signer: mlDsa.privateKey },
      },
      verified('hardware'),
    ),
    phone('not on the status list', {}, verified('hardware'), {
      status_list: { entries: { a1b2f: { status: 'REVOKED' } } },
    }),

    toVector(
      'nine certificates',
      [leaf, ...Array.from({ length: 7 }, () => issuer), rootCertificate],
      rejected('chain_too_long'),
    ),
    toVector('one certificate', [leaf], rejected('malformed')),
    toVector(
      'a certificate of more than 8 KiB',
      [Buffer.concat([leaf, Buffer.alloc(8_192)]), issuer, intermediate, rootCertificate],
      rejected('too_large'),
    ),
    toVector(
      'bytes after a certificate',
      [Buffer.concat([leaf, Buffer.of(0)]), issuer, intermediate, rootCertificate],
      rejected('malformed'),
    ),
    toVector(
      'another root',
      makeChain(makePhone({ key: makeKey('P-384'), name: root.name }), {
        description: describe(),
      }),
      rejected('untrusted_root'),
    ),
    withChain(
      'the root’s key in a certificate of another’s',
      { root: { signer: otherKey } },
      rejected('untrusted_root'),
    ),
    withChain(
      'a signature of another key',
      { leaf: { signer: otherKey } },
      rejected('signature_invalid'),
    ),
    withChain(
      'another name of the issuer',
      { leaf: { issuer: 'Another' } },
      rejected('names_do_not_chain'),
    ),
    withChain(
      'an intermediate without the CA flag',
      { intermediate: { isCa: false } },
      rejected('issuer_not_a_ca'),
    ),
    toVector(
      'remotely provisioned by an issuer without the CA flag',
      chain({
        isRemote: true,
        issuer: { isCa: false },
      }),
      rejected('issuer_not_a_ca'),
    ),
    withChain(
      'signed with SHA-1',
      { leaf: { algorithm: 'sha1' } },
      rejected('unsupported_algorithm'),
    ),
    withChain(
      'remotely provisioned, ended',
      remote(nowMs - 2 * day, nowMs - day),
      rejected('certificate_expired'),
    ),
    withChain(
      'remotely provisioned, not begun',
      remote(nowMs + day, nowMs + 2 * day),
      rejected('certificate_not_yet_valid'),
    ),
    withChain(
      'a factory’s certificates that have not begun',
      { issuer: { fromMs: nowMs + day } },
      rejected('certificate_not_yet_valid'),
    ),
    withChain('no description of the key', { description: null }, rejected('attestation_missing')),
    toVector(
      'a genuine chain, extended with a second description',
      [
        extend([forged]),
        ...chain({
          description: null,
          issuer: {
            subject: 'Android Keystore Key',
            isCa: true,
            key: device.leafKey.publicKey,
            extensions: [forged],
          },
        }).slice(1),
      ],
      rejected('attestation_repeated'),
    ),
    toVector(
      'a genuine chain, extended by the attested key',
      [extend([forged]), ...genuine],
      rejected('attestation_repeated'),
    ),
    withChain(
      'a description in the issuer',
      {
        description: null,
        issuer: {
          extensions: [forged],
        },
      },
      rejected('attestation_misplaced'),
    ),
    phone(
      'a lock that is neither true nor false',
      {
        ...noLockedPhone,
        more: [malformedRootOfTrust],
      },
      rejected('key_description_malformed'),
    ),
    phone(
      'a tag twice',
      { more: [explicit(706, integer(202_611))] },
      rejected('key_description_malformed'),
    ),
    phone(
      'another type than the schema’s',
      { more: [explicit(718, truth(true))] },
      rejected('key_description_malformed'),
    ),
    withChain(
      'bytes after the description',
      {
        description: Buffer.concat([describe(), Buffer.of(5, 0)]),
      },
      rejected('key_description_malformed'),
    ),
    phone(
      'another challenge',
      { challenge: Buffer.from('another challenge') },
      rejected('challenge_mismatch'),
    ),
    phone('a key in software', { level: 0 }, rejected('software_key', 'software')),
    phone(
      'a key in software, attested by hardware',
      { level: 1, keyLevel: 0 },
      rejected('software_key', 'software'),
    ),
    phone(
      'key and attestation of different places',
      { level: 2, keyLevel: 1 },
      rejected('security_level_mismatch', 'hardware'),
    ),
    phone('an imported key', { origin: 2 }, rejected('key_not_generated', 'hardware')),
    phone('no root of trust', noLockedPhone, rejected('root_of_trust_missing', 'hardware')),
    phone(
      'an unlocked bootloader',
      { isLocked: false, bootState: 2 },
      rejected('bootloader_unlocked', 'hardware'),
    ),
    phone(
      'a system that its owner signed',
      { bootState: 1 },
      rejected('boot_self_signed', 'hardware'),
    ),
    phone('an unverified system', { bootState: 2 }, rejected('boot_unverified', 'hardware')),
    phone(
      'a failed check of the system',
      { bootState: 3 },
      rejected('boot_unverified', 'hardware'),
    ),
    phone(
      'another package',
      { packageName: 'com.example.other' },
      rejected('app_unknown', 'hardware'),
    ),
    phone(
      'a repackaged app',
      { signer: Buffer.alloc(32, 0xcd) },
      rejected('app_signer_unknown', 'hardware'),
    ),
    phone(
      'a patch level of month 13',
      { patchLevel: 202_613 },
      rejected('patch_level_invalid', 'hardware'),
    ),
    phone('an issuer on the status list', {}, rejected('revoked'), {
      status_list: { entries: { a1b2: { status: 'REVOKED', reason: 'KEY_COMPROMISE' } } },
    }),
    phone('an intermediate on the status list, suspended', {}, rejected('revoked'), {
      status_list: { entries: { c3d4: { status: 'SUSPENDED' } } },
    }),
  ]
}
