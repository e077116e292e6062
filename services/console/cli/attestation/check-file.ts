/** What `di attestation check` does with a file: it is recognised, and checked as evidence. */
import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { checkAppAttest } from '#shared/core/attestation/app-attest.ts'
import { checkAssertion } from '#shared/core/attestation/app-attest-assertion.ts'
import { decodeBase64 } from '#shared/core/attestation/encodings.ts'
import { checkKeyAttestation } from '#shared/core/attestation/key-attestation.ts'
import { checkPlayIntegrity, type PlayKeys } from '#shared/core/attestation/play-integrity.ts'
import {
  type EvidenceFile,
  expectEvidence,
  recognizeEvidence,
} from '#shared/core/attestation/recognize.ts'
import { attestationRoots } from '#shared/core/attestation/roots.ts'
import { parseStatusList, type StatusList } from '#shared/core/attestation/status-list.ts'
import type { AttestationCheck, AttestationProvider } from '#shared/core/attestation/steps.ts'
import { evidenceFileBytesMax, statusListBytesMax } from '#shared/core/base/limits/attestation.ts'
import { type CliContext, CliError, readInputFile } from '../context.ts'

export type CheckOptions = {
  provider?: AttestationProvider
  challenge?: string
  at?: string
  body?: string
  status?: string
  publicKey?: string
  keys?: string
}

/** @throws CliError when the file or an option cannot be read */
export async function checkFile(
  context: CliContext,
  file: string,
  options: CheckOptions,
): Promise<AttestationCheck> {
  const bytes = readInputFile(context, file)
  if (bytes.length > evidenceFileBytesMax) throw new CliError(`${file} is larger than 16 MiB`)
  const { provider } = options
  const evidence =
    recognizeEvidence(bytes) ?? (provider === undefined ? null : expectEvidence(provider, bytes))
  if (evidence === null) {
    throw new CliError(
      `${file} is no chain in PEM, no App Attest object (CBOR, or its base64) and no Play token`,
    )
  }
  const recognized = evidence.kind === 'assertion' ? 'app_attest' : evidence.kind
  if (provider !== undefined && provider !== recognized) {
    throw new CliError(`${file} is evidence of ${recognized}, not of ${provider}`)
  }
  return checkEvidence(context, evidence, options)
}

async function checkEvidence(
  context: CliContext,
  evidence: EvidenceFile,
  options: CheckOptions,
): Promise<AttestationCheck> {
  const nowMs = readMoment(options.at)
  const challenge = readChallenge(options.challenge)
  const body = options.body === undefined ? null : readInputFile(context, options.body)
  // Apps of a tenant are not judged here, they are among the facts.
  const apps = null
  switch (evidence.kind) {
    case 'key_attestation': {
      const statusList = readStatusList(context, options.status)
      const roots = attestationRoots.keyAttestation
      return checkKeyAttestation({
        chain: evidence.chain,
        challenge,
        apps,
        statusList,
        roots,
        nowMs,
      })
    }
    case 'app_attest': {
      const roots = attestationRoots.appAttest
      const { object: attestation } = evidence
      return checkAppAttest({ attestation, challenge, keyId: null, apps, roots, nowMs })
    }
    case 'assertion': {
      const clientData = body ?? challenge
      if (clientData === null || options.publicKey === undefined) {
        throw new CliError(
          'An assertion is checked with --public-key, and with --body or --challenge for what it signs',
        )
      }
      const publicKey = readPublicKey(context, options.publicKey)
      return checkAssertion({ assertion: evidence.object, publicKey, clientData, apps })
    }
    case 'play_integrity': {
      if (options.keys === undefined) {
        throw new CliError('A Play token is checked with --keys, the two keys of the Play Console')
      }
      const nonce = body === null ? challenge : hash('sha256', body, 'buffer')
      const keys = readPlayKeys(context, options.keys)
      return checkPlayIntegrity({ token: evidence.token, keys, nonce, apps, nowMs })
    }
  }
}

function readMoment(text: string | undefined): number {
  if (text === undefined) return Date.now()
  const atMs = Date.parse(text)
  if (Number.isNaN(atMs)) throw new CliError('--at is no time: use the form 2026-01-02T03:04:05Z')
  return atMs
}

function readChallenge(text: string | undefined): Buffer | null {
  if (text === undefined) return null
  const challenge = decodeBase64(text)
  if (challenge === null) throw new CliError('--challenge is no base64, of either alphabet')
  return challenge
}

function readStatusList(context: CliContext, file: string | undefined): StatusList | null {
  if (file === undefined) return null
  const bytes = readInputFile(context, file)
  const list = bytes.length > statusListBytesMax ? null : parseStatusList(bytes.toString('utf8'))
  if (list === null) throw new CliError(`${file} is not the status list that Android publishes`)
  return list
}

/** PEM, SubjectPublicKeyInfo in DER, or that in base64. */
function readPublicKey(context: CliContext, file: string): KeyObject {
  const bytes = readInputFile(context, file)
  const isPem = bytes.includes('-----BEGIN')
  const text = decodeBase64(bytes.toString('latin1').trim())
  try {
    return isPem ? createPublicKey(bytes) : toPublicKey(text ?? bytes)
  } catch (error) {
    throw new CliError(`${file} is no public key`, { cause: error })
  }
}

const toPublicKey = (der: Buffer): KeyObject =>
  createPublicKey({ key: der, format: 'der', type: 'spki' })

function readPlayKeys(context: CliContext, file: string): PlayKeys {
  const wanted = 'needs decryption_key (32 bytes) and verification_key, both in base64'
  try {
    const given = JSON.parse(readInputFile(context, file).toString('utf8')) as Record<
      string,
      unknown
    >
    const [decryptionKey, verificationKey] = ['decryption_key', 'verification_key'].map((name) =>
      decodeBase64(String(given[name])),
    )
    if (decryptionKey?.length !== 32) throw new CliError(`${file} ${wanted}`)
    return { decryptionKey, verificationKey: toPublicKey(verificationKey!) }
  } catch (error) {
    // What was read are keys: no error repeats them.
    if (error instanceof CliError) throw error
    throw new CliError(`${file} ${wanted}`)
  }
}
