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
import { type AttestationVector, type Expected, toExpected } from './vectors.ts'

const day = 86_400_000
export function makeAndroidVectors(
  root: TestRoot,
  { challenge, nowMs }: { challenge: Buffer; nowMs: number },
): AttestationVector[] {
  const toVector = (name: string, chain: readonly Buffer[], expected: Expected, more = {}) => {
    const input = chain.map((certificate) => certificate.toString('base64'))
    const common = { challenge: challenge.toString('base64'), now_ms: nowMs }
    const vector = { name: `android: ${name}`, kind: 'key_attestation' as const, input }
    return { ...vector, ...common, ...more, ...toExpected(expected) }
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
    toVector('a key in the processor’s secure part', genuine, 'verified hardware'),
    phone('a key in a StrongBox', { level: 2 }, 'verified strongbox'),
    withChain(
      'a factory’s certificates that have ended',
      { issuer: { fromMs: 0, toMs: nowMs - day } },
      'verified hardware',
    ),
    withChain(
      'a factory’s issuer without the CA flag',
      { issuer: { isCa: false } },
      'verified hardware',
    ),
    withChain('remotely provisioned', remote(nowMs - day, nowMs + day), 'verified hardware'),
    withChain(
      'a leaf whose own dates are wrong',
      {
        ...remote(nowMs - day, nowMs + day),
        leaf: { fromMs: nowMs + day, toMs: nowMs + 2 * day },
      },
      'verified hardware',
    ),
    withChain(
      'a root certificate that has ended',
      { root: { fromMs: 0, toMs: nowMs - day } },
      'verified hardware',
    ),
    phone('a patch level of month 13', { patchLevel: 202_613 }, 'verified hardware'),
    phone(
      'a tag twice, and one of another type, that nobody reads',
      { more: [explicit(706, integer(202_611)), explicit(718, truth(true))] },
      'verified hardware',
    ),
    phone(
      'a tag that is not known yet',
      { more: [explicit(799, integer(1))] },
      'verified hardware',
    ),
    withChain('an ML-DSA key', { leaf: { key: mlDsa.publicKey } }, 'verified hardware'),
    withChain(
      'signed with ML-DSA',
      {
        issuer: { key: mlDsa.publicKey },
        leaf: { signer: mlDsa.privateKey },
      },
      'verified hardware',
    ),
    phone('not on the status list', {}, 'verified hardware', {
      status_list: { entries: { a1b2f: { status: 'REVOKED' } } },
    }),

    toVector(
      'nine certificates',
      [leaf, ...Array.from({ length: 7 }, () => issuer), rootCertificate],
      'chain_too_long',
    ),
    toVector('one certificate', [leaf], 'malformed'),
    toVector(
      'a certificate of more than 8 KiB',
      [Buffer.concat([leaf, Buffer.alloc(8_192)]), issuer, intermediate, rootCertificate],
      'too_large',
    ),
    toVector(
      'bytes after a certificate',
      [Buffer.concat([leaf, Buffer.of(0)]), issuer, intermediate, rootCertificate],
      'malformed',
    ),
    toVector(
      'another root',
      makeChain(makePhone({ key: makeKey('P-384'), name: root.name }), {
        description: describe(),
      }),
      'untrusted_root',
    ),
    withChain(
      'the root’s key in a certificate of another’s',
      { root: { signer: otherKey } },
      'untrusted_root',
    ),
    withChain('a signature of another key', { leaf: { signer: otherKey } }, 'signature_invalid'),
    withChain('another name of the issuer', { leaf: { issuer: 'Another' } }, 'names_do_not_chain'),
    withChain(
      'an intermediate without the CA flag',
      { intermediate: { isCa: false } },
      'issuer_not_a_ca',
    ),
    toVector(
      'remotely provisioned by an issuer without the CA flag',
      chain({
        isRemote: true,
        issuer: { isCa: false },
      }),
      'issuer_not_a_ca',
    ),
    withChain('signed with SHA-1', { leaf: { algorithm: 'sha1' } }, 'unsupported_algorithm'),
    withChain(
      'remotely provisioned, ended',
      remote(nowMs - 2 * day, nowMs - day),
      'certificate_expired',
    ),
    withChain(
      'remotely provisioned, not begun',
      remote(nowMs + day, nowMs + 2 * day),
      'certificate_not_yet_valid',
    ),
    withChain(
      'a factory’s certificates that have not begun',
      { issuer: { fromMs: nowMs + day } },
      'certificate_not_yet_valid',
    ),
    withChain('no description of the key', { description: null }, 'attestation_missing'),
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
      'attestation_repeated',
    ),
    toVector(
      'a genuine chain, extended by the attested key',
      [extend([forged]), ...genuine],
      'attestation_repeated',
    ),
    withChain(
      'a description in the issuer',
      {
        description: null,
        issuer: {
          extensions: [forged],
        },
      },
      'attestation_misplaced',
    ),
    phone(
      'a lock that is neither true nor false',
      {
        ...noLockedPhone,
        more: [malformedRootOfTrust],
      },
      'key_description_malformed',
    ),
    phone(
      'a tag twice that is judged',
      { more: [explicit(702, integer(0))] },
      'key_description_malformed',
    ),
    phone(
      'another type than the schema’s of what is judged',
      { ...noLockedPhone, more: [explicit(704, truth(true))] },
      'key_description_malformed',
    ),
    withChain(
      'bytes after the description',
      { description: Buffer.concat([describe(), Buffer.of(5, 0)]) },
      'key_description_malformed',
    ),
    phone(
      'another challenge',
      { challenge: Buffer.from('another challenge') },
      'challenge_mismatch',
    ),
    phone('a key in software', { level: 0 }, 'software_key software'),
    phone(
      'a key in software, attested by hardware',
      { level: 1, keyLevel: 0 },
      'software_key software',
    ),
    phone(
      'key and attestation of different places',
      { level: 2, keyLevel: 1 },
      'security_level_mismatch hardware',
    ),
    phone('an imported key', { origin: 2 }, 'key_not_generated hardware'),
    phone('no root of trust', noLockedPhone, 'root_of_trust_missing hardware'),
    phone(
      'an unlocked bootloader',
      { isLocked: false, bootState: 2 },
      'bootloader_unlocked hardware',
    ),
    phone('a system that its owner signed', { bootState: 1 }, 'boot_self_signed hardware'),
    phone('an unverified system', { bootState: 2 }, 'boot_unverified hardware'),
    phone('a failed check of the system', { bootState: 3 }, 'boot_unverified hardware'),
    phone('another package', { packageName: 'com.example.other' }, 'app_unknown hardware'),
    phone('a repackaged app', { signer: Buffer.alloc(32, 0xcd) }, 'app_signer_unknown hardware'),
    phone('an issuer on the status list', {}, 'revoked', {
      status_list: { entries: { a1b2: { status: 'REVOKED', reason: 'KEY_COMPROMISE' } } },
    }),
    phone('an intermediate on the status list, suspended', {}, 'revoked', {
      status_list: { entries: { c3d4: { status: 'SUSPENDED' } } },
    }),
  ]
}
