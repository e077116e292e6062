/** Key attestations of phones of our own making. */
import { boolean, enumerated, explicit, integer, nothing, octets, sequence, set } from './der.ts'
import {
  type CertificateOptions,
  type KeyPair,
  makeCertificate,
  makeKey,
  toKeyInfo,
} from './make-certificate.ts'

export type PhoneOptions = {
  challenge: Buffer
  /** 0 software, 1 the processor's secure part, 2 a chip of its own. */
  level?: number
  keyLevel?: number
  origin?: number
  isLocked?: boolean
  /** 0 verified, 1 signed by the owner, 2 unverified, 3 failed. */
  bootState?: number
  hasRootOfTrust?: boolean
  packageName?: string
  signer?: Buffer
  patchLevel?: number
  /** Further values of the hardware's list. */
  more?: readonly Buffer[]
  /** Further values of the software's list. */
  moreSoftware?: readonly Buffer[]
}

/** The content of the extension. */
export function makeKeyDescription(options: PhoneOptions): Buffer {
  const { level = 1, keyLevel = level, origin = 0, isLocked = true, bootState = 0 } = options
  const { hasRootOfTrust = true, packageName = 'com.example.bank', patchLevel = 202_610 } = options
  const { signer = testSigner, more = [], moreSoftware = [] } = options
  const bootHash = Buffer.alloc(32, 2)
  const rootOfTrust = sequence([
    octets(Buffer.alloc(32, 1)),
    boolean(isLocked),
    enumerated(bootState),
    octets(bootHash),
  ])
  const applicationId = sequence([
    set(sequence([octets(Buffer.from(packageName)), integer(7)])),
    set(octets(signer)),
  ])
  return sequence([
    integer(300),
    enumerated(level),
    integer(300),
    enumerated(keyLevel),
    octets(options.challenge),
    octets([]),
    sequence([
      explicit(701, integer(1_790_000_000_000)),
      explicit(709, octets(applicationId)),
      ...moreSoftware,
    ]),
    sequence([
      explicit(1, set([integer(2), integer(3)])),
      explicit(2, integer(3)),
      explicit(3, integer(256)),
      explicit(503, nothing),
      explicit(702, integer(origin)),
      ...(hasRootOfTrust ? [explicit(704, rootOfTrust)] : []),
      explicit(705, integer(160_000)),
      explicit(706, integer(patchLevel)),
      ...more,
    ]),
  ])
}

/** The digest of the certificate that signs the app of these phones. */
export const testSigner = Buffer.alloc(32, 0xab)

export const keyDescriptionOid = '1.3.6.1.4.1.11129.2.1.17'
const provisioningOid = '1.3.6.1.4.1.11129.2.1.30'

export type ChainOptions = {
  description: Buffer | null
  leaf?: Partial<CertificateOptions>
  issuer?: Partial<CertificateOptions>
  intermediate?: Partial<CertificateOptions>
  /** The root certificate itself, around the root key. */
  root?: Partial<CertificateOptions>
  /** Short-lived certificates of a server: the issuer says so. */
  isRemote?: boolean
}

export type TestRoot = { key: KeyPair; name: string }

/** Names and serials of the certificates between leaf and root. */
export type Batch = {
  issuer: { name: string; serial: bigint }
  intermediate: { name: string; serial: bigint }
}

/** Of phones for which it does not matter. */
const anyBatch: Batch = {
  issuer: { name: 'TEE issuer', serial: 0xa1b2n },
  intermediate: { name: 'Intermediate', serial: 0x0c3d4n },
}

/** What signs attestations: phones of one factory share it, and each that is provisioned has its own. */
export type Issuing = {
  root: TestRoot
  batch: Batch
  issuerKey: KeyPair
  middleKey: KeyPair
  /** Issuer, intermediate and root, in DER. */
  above: readonly [Buffer, Buffer, Buffer]
}

/** An issuer and a key that it attests. */
export type Phone = Issuing & { leafKey: KeyPair }

type Unsigned = Omit<Issuing, 'above'>

const issuerOf = ({ batch, issuerKey, middleKey }: Unsigned) => ({
  subject: batch.issuer.name,
  issuer: batch.intermediate.name,
  key: issuerKey.publicKey,
  signer: middleKey.privateKey,
  serial: batch.issuer.serial,
  isCa: true,
})

const intermediateOf = ({ batch, middleKey, root }: Unsigned) => ({
  subject: batch.intermediate.name,
  issuer: root.name,
  key: middleKey.publicKey,
  signer: root.key.privateKey,
  serial: batch.intermediate.serial,
  isCa: true,
})

const rootOf = ({ root: { key, name } }: Unsigned) => ({
  subject: name,
  issuer: name,
  key: key.publicKey,
  signer: key.privateKey,
  isCa: true,
})

/**
 * Makes what signs attestations.
 * @param issuer changes of the issuer's certificate
 * @param newKey makes its keys
 */
export function makeIssuing(
  root: TestRoot,
  batch: Batch = anyBatch,
  issuer: Partial<CertificateOptions> = {},
  newKey: () => KeyPair = makeKey,
): Issuing {
  const unsigned = { root, batch, issuerKey: newKey(), middleKey: newKey() }
  const above = [
    makeCertificate({ ...issuerOf(unsigned), ...issuer }),
    makeCertificate(intermediateOf(unsigned)),
    makeCertificate(rootOf(unsigned)),
  ] as const
  return { ...unsigned, above }
}

export const makePhone = (root: TestRoot): Phone => ({ ...makeIssuing(root), leafKey: makeKey() })

/** Of a certificate that a server issued: "this one was provisioned remotely". */
export const provisioned = [provisioningOid, Buffer.from('a10101', 'hex')] as const

/** Leaf, issuer, intermediate, root, in DER: those of the phone where no option differs. */
export function makeChain(phone: Phone, options: ChainOptions): Buffer[] {
  const remote = options.isRemote ? { extensions: [provisioned] } : null
  const described =
    options.description === null ? [] : [[keyDescriptionOid, options.description] as const]
  const leaf = makeCertificate({
    subject: 'Android Keystore Key',
    issuer: phone.batch.issuer.name,
    key: phone.leafKey.publicKey,
    signer: phone.issuerKey.privateKey,
    extensions: described,
    ...options.leaf,
  })
  const issuer =
    options.issuer || remote
      ? makeCertificate({ ...issuerOf(phone), ...remote, ...options.issuer })
      : phone.above[0]
  const intermediate = options.intermediate
    ? makeCertificate({ ...intermediateOf(phone), ...options.intermediate })
    : phone.above[1]
  const root = options.root
    ? makeCertificate({ ...rootOf(phone), ...options.root })
    : phone.above[2]
  return [leaf, issuer, intermediate, root]
}

export const toRootKey = ({ key, name }: TestRoot) => ({
  name,
  publicKeyInfo: toKeyInfo(key.publicKey).toString('base64'),
})
