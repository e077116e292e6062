/**
 * The path from a root key down to the leaf. It is walked from the root, so a key verifies only
 * after it was itself verified: keys and signatures of an attacker's making cost nothing but their
 * size, whatever their algorithm.
 */
import { createPublicKey, type KeyObject, type X509Certificate } from 'node:crypto'
import { chainCertificatesMax } from '../base/limits/attestation.ts'
import {
  type CertificateParts,
  describeCertificate,
  readCertificate,
  readCertificateParts,
  toOneLine,
} from './certificate.ts'
import { Refusal } from './reasons.ts'
import { findRoot, type RootKey } from './roots.ts'
import type { StepLog } from './steps.ts'

/** Signature algorithms of certificates: ECDSA and RSA with SHA-2, and ML-DSA. */
const signatureAlgorithms: ReadonlySet<string> = new Set([
  ...['1.2.840.10045.4.3.2', '1.2.840.10045.4.3.3', '1.2.840.10045.4.3.4'],
  ...['1.2.840.113549.1.1.11', '1.2.840.113549.1.1.12', '1.2.840.113549.1.1.13'],
  ...['2.16.840.1.101.3.4.3.17', '2.16.840.1.101.3.4.3.18', '2.16.840.1.101.3.4.3.19'],
])

/** A certificate of a verified path. */
export type PathCertificate = CertificateParts & { certificate: X509Certificate }

/**
 * Reads the certificates of a chain.
 * @param chain DER of each, leaf first
 * @throws Refusal by their number before any is read
 */
function readChain(chain: readonly Uint8Array[]): X509Certificate[] {
  if (chain.length > chainCertificatesMax) {
    const found = `${chain.length} certificates, at most ${chainCertificatesMax} are genuine`
    throw new Refusal('chain_too_long', found)
  }
  if (chain.length < 2) throw new Refusal('malformed', `${chain.length} certificates`)
  return chain.map(readCertificate)
}

type Anchor = { root: RootKey; issuer: string | null; key: KeyObject }

/**
 * The root of a chain whose last certificate has a root key, as Android's.
 * @throws Refusal `untrusted_root`
 */
export function anchorIncluded(last: X509Certificate, roots: readonly RootKey[]): Anchor {
  const root = findRoot(roots, readCertificateParts(last).publicKeyInfo)
  if (root === null) throw untrusted(`the last certificate is of ${toOneLine(last.subject)}`)
  const key = toKey(root)
  // Trust is in the key; the certificate around it is refused when it was changed.
  if (!isSignedBy(last, key)) throw untrusted('its certificate is not signed by the root key')
  return { root, issuer: last.subject, key }
}

/**
 * The root of a chain whose last certificate was issued by a root key, as Apple's.
 * @throws Refusal `untrusted_root`
 */
export function anchorOmitted(last: X509Certificate, roots: readonly RootKey[]): Anchor {
  for (const root of roots) {
    const key = toKey(root)
    if (isSignedBy(last, key)) return { root, issuer: null, key }
  }
  throw untrusted(`no root has signed the certificate of ${toOneLine(last.subject)}`)
}

/** How the chains of a platform end, and who may sign in them. */
export type PathRules = {
  /** The root that a chain ends at: `anchorIncluded` or `anchorOmitted`. */
  findAnchor: (last: X509Certificate, roots: readonly RootKey[]) => Anchor
  /** Whether the last certificate is the root itself. */
  isRootIncluded: boolean
  /** As of `verifyPath`. */
  mayIssue: (above: readonly PathCertificate[]) => boolean
}

/**
 * The steps `certificates`, `root` and `path` of a chain, and what they find as facts.
 * @param chain DER of each, leaf first
 * @returns the verified path, leaf first and without an included root; null when a step failed
 */
export function checkPath(
  { chain, roots }: { chain: readonly Uint8Array[]; roots: readonly RootKey[] },
  { findAnchor, isRootIncluded, mayIssue }: PathRules,
  log: StepLog,
  facts: Record<string, unknown>,
): PathCertificate[] | null {
  const certificates = log.attempt(
    'certificates',
    () => readChain(chain),
    ({ length }) => `${length} certificates`,
  )
  if (certificates === null) return null
  facts.certificates = certificates.map(describeCertificate)
  const anchor = log.attempt(
    'root',
    () => findAnchor(certificates.at(-1)!, roots),
    ({ root }) => root.name,
  )
  if (anchor === null) return null
  facts.root = anchor.root.name
  return log.attempt(
    'path',
    () => verifyPath(isRootIncluded ? certificates.slice(0, -1) : certificates, anchor, mayIssue),
    () => 'each certificate is signed by the next one, which may sign it',
  )
}

const toKey = ({ publicKeyInfo }: RootKey): KeyObject =>
  createPublicKey({ key: Buffer.from(publicKeyInfo, 'base64'), format: 'der', type: 'spki' })

const untrusted = (detail: string) => new Refusal('untrusted_root', detail)

/**
 * Verifies certificates from the one below the root down to the leaf: signature, name of the
 * issuer, and that each but the leaf may sign others.
 * @param certificates leaf first, without a root that is the anchor itself
 * @param mayIssue decides of a certificate without the CA flag whether it may have signed the leaf;
 *   it is called with what was verified above it, leaf first
 * @throws Refusal that counts certificates from 1, the leaf
 */
function verifyPath(
  certificates: readonly X509Certificate[],
  anchor: Anchor,
  mayIssue: (above: readonly PathCertificate[]) => boolean,
): PathCertificate[] {
  let { issuer, key } = anchor
  const verified: PathCertificate[] = []
  for (let index = certificates.length - 1; index >= 0; index--) {
    const certificate = certificates[index]!
    const place = `certificate ${index + 1}`
    if (!isSignedBy(certificate, key)) {
      throw new Refusal('signature_invalid', `${place} is not signed by the next one`)
    }
    if (issuer !== null && certificate.issuer !== issuer) {
      const names = `${toOneLine(certificate.issuer)}, not ${toOneLine(issuer)}`
      throw new Refusal('names_do_not_chain', `${place} names as its issuer ${names}`)
    }
    verified.unshift({ certificate, ...readCertificateParts(certificate) })
    if (index === 0) break
    if (!certificate.ca && !(index === 1 && mayIssue(verified))) {
      throw new Refusal('issuer_not_a_ca', `${place} may not sign certificates`)
    }
    issuer = certificate.subject
    key = readKey(certificate, place)
  }
  return verified
}

/** @throws Refusal `unsupported_algorithm` */
function isSignedBy(certificate: X509Certificate, key: KeyObject): boolean {
  const { signatureAlgorithmOid: algorithm } = certificate
  if (!signatureAlgorithms.has(algorithm)) {
    throw new Refusal('unsupported_algorithm', `a signature with ${algorithm}`)
  }
  try {
    return certificate.verify(key)
  } catch {
    // OpenSSL throws where the key is of another kind than the signature.
    return false
  }
}

/** @throws Refusal `unsupported_algorithm` where Node does not know the key's algorithm */
export function readKey(certificate: X509Certificate, place: string): KeyObject {
  try {
    return certificate.publicKey
  } catch {
    throw new Refusal('unsupported_algorithm', `the key of ${place} is of an unknown kind`)
  }
}

/**
 * The moment lies in the validity of each certificate, or with `isEndIgnored` not before it.
 * @throws Refusal with the first that it does not lie in
 */
export function checkValidity(
  certificates: readonly { certificate: X509Certificate }[],
  nowMs: number,
  { isEndIgnored }: { isEndIgnored: boolean } = { isEndIgnored: false },
): void {
  for (const { certificate } of certificates) {
    const { subject, validFromDate, validToDate } = certificate
    // An instant that is none compares false, and does not hold.
    if (!(nowMs >= validFromDate.getTime())) {
      const detail = `${toOneLine(subject)} is valid from ${certificate.validFrom}`
      throw new Refusal('certificate_not_yet_valid', detail)
    }
    if (!isEndIgnored && !(nowMs <= validToDate.getTime())) {
      const detail = `${toOneLine(subject)} was valid until ${certificate.validTo}`
      throw new Refusal('certificate_expired', detail)
    }
  }
}
