/** The form of the files in `test/vectors/attestation`, and how a vector is checked. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { checkAppAttest } from '#shared/core/attestation/app-attest.ts'
import { checkAssertion } from '#shared/core/attestation/app-attest-assertion.ts'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import { checkKeyAttestation } from '#shared/core/attestation/key-attestation.ts'
import { checkPlayIntegrity } from '#shared/core/attestation/play-integrity.ts'
import type { AttestationReason } from '#shared/core/attestation/reasons.ts'
import type { AttestationRoots } from '#shared/core/attestation/roots.ts'
import { parseStatusList } from '#shared/core/attestation/status-list.ts'
import type { AttestationCheck, AttestationLevel } from '#shared/core/attestation/steps.ts'

export const vectorKinds = ['key_attestation', 'app_attest', 'assertion', 'play_integrity'] as const
export type VectorKind = (typeof vectorKinds)[number]

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
  /** Of the tenant; live unless given. */
  environment?: 'sandbox'
  now_ms: number
  verdict: 'verified' | 'rejected'
  reason: AttestationReason | null
  /** The first step that fails; null when verified. Missing: it follows from the reason. */
  step?: string | null
  level: AttestationLevel
}

/** What is said of a vector: `verified LEVEL`, or `REASON`, `REASON LEVEL` or `REASON at STEP`. */
export type Expected =
  | `verified ${AttestationLevel}`
  | AttestationReason
  | `${AttestationReason} ${AttestationLevel}`
  | `${AttestationReason} at ${string}`

export function toExpected(
  text: Expected,
): Pick<AttestationVector, 'verdict' | 'reason' | 'level' | 'step'> {
  const [said, level = 'none', step] = text.split(' ') as [string, AttestationLevel, string?]
  if (said === 'verified') return { verdict: 'verified', reason: null, level }
  const rejected = { verdict: 'rejected', reason: said as AttestationReason } as const
  return step === undefined ? { ...rejected, level } : { ...rejected, level: 'none', step }
}

export type AttestationVectors = {
  roots: AttestationRoots
  apps: AttestedApp[]
  play: { decryption_key: string; verification_key: string }
  vectors: AttestationVector[]
}

const folder = new URL('../../vectors/attestation/', import.meta.url)

/** What all kinds need: root keys, apps, keys of Play. */
type CommonFile = Omit<AttestationVectors, 'vectors'>

/** The vectors of one kind. Most certificates are in many chains, and stand here once. */
type KindFile = {
  certificates?: string[]
  vectors: (Omit<AttestationVector, 'input' | 'kind'> & {
    input?: readonly string[]
    chain?: number[]
  })[]
}

function toKindFile(kind: VectorKind, all: readonly AttestationVector[]): KindFile {
  const vectors = all.filter((vector) => vector.kind === kind).map(({ kind: _, ...rest }) => rest)
  if (kind !== 'key_attestation') return { vectors }
  const certificates = [...new Set(vectors.flatMap(({ input }) => input))]
  const toNumbers = (chain: readonly string[]) => chain.map((one) => certificates.indexOf(one))
  return {
    certificates,
    vectors: vectors.map(({ input, ...rest }) => ({ ...rest, chain: toNumbers(input) })),
  }
}

const write = (name: string, value: unknown): void =>
  writeFileSync(new URL(`${name}.json`, folder), `${JSON.stringify(value, null, 1)}\n`)

const read = <File>(name: string): File =>
  JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')) as File

/** Writes a file for each kind, and `common.json`. */
export function writeVectors({ vectors, ...common }: AttestationVectors): void {
  write('common', common)
  for (const kind of vectorKinds) write(kind, toKindFile(kind, vectors))
}

export function readVectors(): AttestationVectors {
  const vectors = vectorKinds.flatMap((kind) => {
    const { certificates = [], vectors: own } = read<KindFile>(kind)
    return own.map(({ input, chain, ...vector }): AttestationVector => {
      return { ...vector, kind, input: input ?? chain!.map((number) => certificates[number]!) }
    })
  })
  return { ...read<CommonFile>('common'), vectors }
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
      const { environment = 'live' } = vector
      return checkPlayIntegrity({ token, keys, nonce: challenge, apps, environment, nowMs })
    }
  }
}
