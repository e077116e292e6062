/** Certificates and roots of our own making. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { bits, boolean, explicit, integer, octets, oid, sequence, set, time, utf8 } from './der.ts'

export type KeyPair = { publicKey: KeyObject; privateKey: KeyObject }

export const makeKey = (namedCurve: 'P-256' | 'P-384' = 'P-256'): KeyPair =>
  generateKeyPairSync('ec', { namedCurve })

/** ML-DSA, which Node knows and the reader of certificates must not refuse. */
export const makeMlDsaKey = (): KeyPair => generateKeyPairSync('ml-dsa-65')

export const toKeyInfo = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' })

export type CertificateOptions = {
  subject: string
  issuer: string
  key: KeyObject
  signer: KeyObject
  serial?: bigint | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
  isCa?: boolean | undefined
  /** Object identifiers and contents. */
  extensions?: readonly (readonly [id: string, content: Buffer])[] | undefined
  /** Instead of ECDSA with SHA-256, or ML-DSA. */
  algorithm?: 'sha1' | undefined
}

const algorithmIds = {
  sha1: '1.2.840.10045.4.1',
  sha256: '1.2.840.10045.4.3.2',
  mlDsa: '2.16.840.1.101.3.4.3.18',
} as const

const toName = (commonName: string): Buffer =>
  sequence(set(sequence([oid('2.5.4.3'), utf8(commonName)])))

const year = 365 * 86_400_000

/** @returns DER */
export function makeCertificate(options: CertificateOptions): Buffer {
  const { key, signer, fromMs = 0, toMs = fromMs + 60 * year, isCa = false } = options
  const isMlDsa = signer.asymmetricKeyType === 'ml-dsa-65'
  const hash = isMlDsa ? null : (options.algorithm ?? 'sha256')
  const algorithm = sequence(oid(algorithmIds[hash ?? 'mlDsa']))
  const constraints = ['2.5.29.19', sequence(isCa ? boolean(true) : [])] as const
  const extensions = [constraints, ...(options.extensions ?? [])]
  const signed = sequence([
    explicit(0, integer(2)),
    integer(options.serial ?? 1n),
    algorithm,
    toName(options.issuer),
    sequence([time(fromMs), time(toMs)]),
    toName(options.subject),
    toKeyInfo(key),
    explicit(3, sequence(extensions.map(([id, content]) => sequence([oid(id), octets(content)])))),
  ])
  return sequence([signed, algorithm, bits(sign(hash, signed, signer))])
}
