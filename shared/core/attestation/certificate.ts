/** Certificates: read by Node's X.509, and their public key and extensions by the ASN.1 reader. */
import { X509Certificate } from 'node:crypto'
import { certificateBytesMax } from '../base/limits/attestation.ts'
import { parseAsn1, readOctets, readSequence } from './asn1.ts'
import { Refusal } from './reasons.ts'

export type CertificateParts = {
  /** SubjectPublicKeyInfo in DER. */
  publicKeyInfo: Buffer
  /** The contents of extensions by object identifier. */
  extensions: ReadonlyMap<string, Buffer>
}

/**
 * @param bytes DER
 * @throws Refusal when they are not exactly one certificate
 */
export function readCertificate(bytes: Uint8Array): X509Certificate {
  if (bytes.length > certificateBytesMax) {
    throw new Refusal('too_large', `a certificate of more than ${certificateBytesMax} bytes`)
  }
  // It reads PEM too, and the first certificate of a longer text.
  if (bytes[0] !== 0x30) throw new Refusal('malformed', 'no certificate in DER')
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(bytes)
  } catch {
    throw new Refusal('malformed', 'no certificate in DER')
  }
  if (certificate.raw.equals(bytes)) return certificate
  throw new Refusal('malformed', 'bytes after a certificate')
}

/**
 * The parts of a certificate that Node does not give.
 * @throws Refusal when a part is missing, or an extension is there twice
 */
export function readCertificateParts({ raw }: X509Certificate): CertificateParts {
  const [signed] = readSequence(parseAsn1(raw), 3, 3)
  // Version, serial, algorithm, issuer, validity, subject, public key, and tagged values.
  const values = readSequence(signed, 7, 10)
  const extensions = values.find(({ tagClass, tag }) => tagClass === 'context' && tag === 3)
  const isKeyInfo = values[6]!.tagClass === 'universal'
  if (!isKeyInfo) throw new Refusal('malformed', 'a certificate without a version')
  return {
    publicKeyInfo: values[6]!.raw,
    extensions: readExtensions(
      extensions === undefined ? [] : readSequence(extensions.children[0]),
    ),
  }
}

function readExtensions(values: ReturnType<typeof readSequence>): Map<string, Buffer> {
  const extensions = new Map<string, Buffer>()
  for (const value of values) {
    const parts = readSequence(value, 2, 3)
    const oid = parts[0]!.oid
    if (oid === null || extensions.has(oid)) throw new Refusal('malformed', 'an extension twice')
    extensions.set(oid, readOctets(parts.at(-1)))
  }
  return extensions
}

/** A serial as Android's status list writes it: lower-case hex without leading zeros. */
export const toListedSerial = (serial: string): string =>
  serial.toLowerCase().replace(/^0+/, '') || '0'

/** How a certificate is shown among the facts. */
export function describeCertificate(certificate: X509Certificate): Record<string, unknown> {
  return {
    subject: toOneLine(certificate.subject),
    issuer: toOneLine(certificate.issuer),
    serial: toListedSerial(certificate.serialNumber),
    not_before: toInstant(certificate.validFromDate),
    not_after: toInstant(certificate.validToDate),
  }
}

const toInstant = (date: Date): string | null =>
  Number.isNaN(date.getTime()) ? null : date.toISOString()

export const toOneLine = (name: string): string => name.split('\n').join(', ')
