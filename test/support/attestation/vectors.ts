/** The form of `test/vectors/attestation.json`, and how a vector is checked. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { checkAppAttest } from '#shared/core/attestation/app-attest.ts'
import { checkAssertion } from '#shared/core/attestation/app-attest-assertion.ts'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import { checkKeyAttestation } from '#shared/core/attestation/key-attestation.ts'
import { checkPlayIntegrity } from '#shared/core/attestation/play-integrity.ts'
import type { AttestationReason } from '#shared/core/attestation/reasons.ts'
import type { AttestationRoots } from '#shared/core/attestation/roots.ts'
import { parseStatusList } from '#shared/core/attestation/status-list.ts'
import type { AttestationCheck, AttestationLevel } from '#shared/core/attestation/steps.ts'

export type VectorKind = 'key_attestation' | 'app_attest' | 'assertion' | 'play_integrity'

export type AttestationVector = {
  name: string
  kind: VectorKind
  /** Base64: the certificates of a chain, one CBOR object, or the characters of one token. */
  input: readonly string[]
  /** Base64: the challenge, what an assertion signs, or the nonce of a token. */
  challenge: string
  key_id?: string
  public_key?: string
  status_list?: unknown
  /** Instead of `apps` of the file. */
  apps?: AttestedApp[]
  now_ms: number
  verdict: 'verified' | 'rejected'
  reason: AttestationReason | null
  level: AttestationLevel
}

export type AttestationVectors = {
  roots: AttestationRoots
  apps: AttestedApp[]
  play: { decryption_key: string; verification_key: string }
  vectors: AttestationVector[]
}

export const vectorsPath = new URL('../../vectors/attestation.json', import.meta.url)

type VectorsFile = Omit<AttestationVectors, 'vectors'> & {
  /** Certificates, most of which are in many chains. */
  certificates: string[]
  vectors: (Omit<AttestationVector, 'input'> & { input?: readonly string[]; chain?: number[] })[]
}

/** The file has each certificate once; a chain has their numbers instead of `input`. */
export function toVectorsFile({ vectors, ...common }: AttestationVectors): VectorsFile {
  const chains = vectors.filter(({ kind }) => kind === 'key_attestation')
  const certificates = [...new Set(chains.flatMap(({ input }) => input))]
  const written = vectors.map((vector) => {
    if (vector.kind !== 'key_attestation') return vector
    const { input, ...rest } = vector
    return { ...rest, chain: input.map((certificate) => certificates.indexOf(certificate)) }
  })
  return { ...common, certificates, vectors: written }
}

export function readVectors(): AttestationVectors {
  const { certificates, ...file } = JSON.parse(readFileSync(vectorsPath, 'utf8')) as VectorsFile
  const vectors = file.vectors.map(({ input, chain, ...vector }) => {
    return { ...vector, input: input ?? chain!.map((number) => certificates[number]!) }
  })
  return { ...file, vectors }
}

const bytes = (base64: string): Buffer => Buffer.from(base64, 'base64')

export const toPublicKey = (base64: string): KeyObject =>
  createPublicKey({ key: bytes(base64), format: 'der', type: 'spki' })

/** Checks a vector, or other bytes in place of its input. */
export async function checkVector(
  file: AttestationVectors,
  vector: AttestationVector,
  input: readonly Buffer[] = vector.input.map(bytes),
): Promise<AttestationCheck> {
  const apps = vector.apps ?? file.apps
  const challenge = bytes(vector.challenge)
  const nowMs = vector.now_ms
  const { roots } = file
  switch (vector.kind) {
    case 'key_attestation': {
      const list = vector.status_list
      const statusList = list === undefined ? null : parseStatusList(JSON.stringify(list))
      const common = { challenge, apps, statusList, nowMs }
      return checkKeyAttestation({ chain: input, roots: roots.keyAttestation, ...common })
    }
    case 'app_attest': {
      const keyId = bytes(vector.key_id!)
      const common = { challenge, apps, keyId, nowMs }
      return checkAppAttest({ attestation: input[0]!, roots: roots.appAttest, ...common })
    }
    case 'assertion': {
      const publicKey = toPublicKey(vector.public_key!)
      return checkAssertion({ assertion: input[0]!, publicKey, clientData: challenge, apps })
    }
    case 'play_integrity': {
      const keys = {
        decryptionKey: bytes(file.play.decryption_key),
        verificationKey: toPublicKey(file.play.verification_key),
      }
      const token = input[0]!.toString('latin1')
      return checkPlayIntegrity({ token, keys, nonce: challenge, apps, nowMs })
    }
  }
}
