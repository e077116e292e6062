/** Input that costs each verifier the most before it is refused, within the bounds. */
import { encode } from 'cbor2'
import type { AttestationCheck } from '#shared/core/attestation/steps.ts'
import {
  asn1NodesMax,
  cborBytesMax,
  certificateBytesMax,
  chainCertificatesMax,
  playHeaderCharactersMax,
  playTokenCharactersMax,
} from '#shared/core/base/limits/attestation.ts'
import { nothing, octets, sequence } from './der.ts'
import { toCborBytes } from './make-app-attest.ts'
import { makeCertificate, makeKey } from './make-certificate.ts'
import { type AttestationVectors, checkVector, type VectorKind } from './vectors.ts'

export type CostlyInput = { name: string; check: () => Promise<AttestationCheck> }

/** An extension as large as a certificate may be, with as many values as are read of it. */
const fillExtension = (bytes: number): Buffer => {
  const values = Array.from({ length: asn1NodesMax - 100 }, () => nothing)
  const filled = sequence(values)
  return sequence([filled, octets(Buffer.alloc(bytes - filled.length))])
}

function makeLargeCertificate(): Buffer {
  const key = makeKey('P-384')
  const fill = fillExtension(certificateBytesMax - 600)
  const extensions = [['1.2.3.4', fill]] as const
  const names = { subject: 'Intermediate', issuer: 'Test Android root' }
  const signing = { key: key.publicKey, signer: key.privateKey, isCa: true }
  return makeCertificate({ ...names, ...signing, extensions })
}

/** A last certificate whose extensions alone are more values than are read. */
function makeBushyCertificate(): Buffer {
  const key = makeKey('P-384')
  const extensions = Array.from({ length: 400 }, (_, index) => {
    return [`1.2.3.${index}`, Buffer.of(5, 0)] as const
  })
  const names = { subject: 'Root', issuer: 'Root' }
  return makeCertificate({ ...names, key: key.publicKey, signer: key.privateKey, extensions })
}

export function makeCostlyInputs(file: AttestationVectors): CostlyInput[] {
  const prototype = (kind: VectorKind) => file.vectors.find((vector) => vector.kind === kind)!
  const costly = (name: string, kind: VectorKind, input: readonly Buffer[]): CostlyInput => {
    return { name, check: () => checkVector(file, prototype(kind), input) }
  }
  const chain = prototype('key_attestation').input.map((part) => Buffer.from(part, 'base64'))
  const object = Buffer.from(prototype('app_attest').input[0]!, 'base64')
  const large = makeLargeCertificate()
  const fillers = Array.from({ length: chainCertificatesMax - 2 }, () => large)
  const token = prototype('play_integrity').input[0]!
  const parts = Buffer.from(token, 'base64').toString('latin1').split('.')
  const header = Buffer.from(JSON.stringify({ alg: 'A256KW', enc: 'A256GCM' })).toString(
    'base64url',
  )
  const rest = playTokenCharactersMax - parts.join('.').length - playHeaderCharactersMax
  const longToken = [header, parts[1], parts[2], 'A'.repeat(rest & ~3), parts[4]].join('.')
  const x5c = Array.from({ length: chainCertificatesMax }, () =>
    toCborBytes(large.subarray(0, 100)),
  )
  return [
    costly('chain: genuine', 'key_attestation', chain),
    costly('chain: six of 8 KiB under the genuine root', 'key_attestation', [
      chain[0]!,
      ...fillers,
      chain.at(-1)!,
    ]),
    costly('chain: a root of 400 extensions', 'key_attestation', [
      chain[0]!,
      makeBushyCertificate(),
    ]),
    costly('chain: 10,000 certificates', 'key_attestation', Array(10_000).fill(chain[1]!)),
    costly('app attest: genuine', 'app_attest', [object]),
    costly('app attest: 16 KiB of arrays', 'app_attest', [Buffer.alloc(cborBytesMax, 0x81)]),
    costly('app attest: 16 KiB of small values', 'app_attest', [
      Buffer.concat([Buffer.of(0x99, 0x3f, 0xf0), Buffer.alloc(cborBytesMax - 3)]),
    ]),
    costly('app attest: eight certificates that are none', 'app_attest', [
      Buffer.from(encode({ fmt: 'apple-appattest', attStmt: { x5c }, authData: x5c[0] })),
    ]),
    costly('assertion: genuine', 'assertion', [
      Buffer.from(prototype('assertion').input[0]!, 'base64'),
    ]),
    costly('token: genuine', 'play_integrity', [Buffer.from(token, 'base64')]),
    costly('token: 16 KiB', 'play_integrity', [Buffer.from(longToken)]),
  ]
}
