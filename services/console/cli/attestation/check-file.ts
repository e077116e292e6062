/** What `di attestation check` does with a file: it is recognised, and checked as evidence. */
import { hash, type KeyObject } from 'node:crypto'
import { checkAssertion } from '#shared/core/attestation/app-attest-assertion.ts'
import { decodeBase64, readKeyFile } from '#shared/core/attestation/encodings.ts'
import {
  type PlayKeys,
  type PlayKeyTexts,
  readPlayKeys,
} from '#shared/core/attestation/play-keys.ts'
import { type EvidenceFile, recognizeFile } from '#shared/core/attestation/recognize.ts'
import { attestationRoots } from '#shared/core/attestation/roots.ts'
import { parseStatusList, type StatusList } from '#shared/core/attestation/status-list.ts'
import type { AttestationCheck, AttestationProvider } from '#shared/core/attestation/steps.ts'
import { evidenceFileBytesMax, statusListBytesMax } from '#shared/core/base/limits/attestation.ts'
import { checkEvidence } from '#shared/core/installs/check-evidence.ts'
import { type CliContext, CliError, readInputFile, toTenantPath } from '../context.ts'

export type CheckOptions = {
  provider?: AttestationProvider
  tenant?: string
  challenge?: string
  at?: string
  body?: string
  status?: string
  publicKey?: string
  keys?: string
}

type Recognized = { evidence: EvidenceFile; challenge: Buffer | null }

/** @throws CliError when the file or an option cannot be read */
export async function checkFile(
  context: CliContext,
  file: string,
  options: CheckOptions,
): Promise<AttestationCheck> {
  const bytes = readInputFile(context, file)
  if (bytes.length > evidenceFileBytesMax) throw new CliError(`${file} is larger than 16 MiB`)
  const { provider, tenant } = options
  if (tenant !== undefined) return checkAtConsole(context, bytes, { ...options, tenant })
  const recognized = recognizeFile(bytes, provider)
  if (recognized === null) {
    throw new CliError(
      `${file} is no chain in PEM, no App Attest object (CBOR, or its base64), no Play token and ` +
        'no evidence of a registration in JSON',
    )
  }
  const { kind } = recognized.evidence
  const found = kind === 'assertion' ? 'app_attest' : kind
  if (provider !== undefined && provider !== found) {
    throw new CliError(`${file} is evidence of ${found}, not of ${provider}`)
  }
  return checkRecognized(context, recognized, options)
}

/** The console has the tenant's apps, its Play keys and the status list. */
async function checkAtConsole(
  context: CliContext,
  bytes: Buffer,
  options: CheckOptions & { tenant: string },
): Promise<AttestationCheck> {
  for (const name of ['status', 'keys'] as const) {
    if (options[name] === undefined) continue
    throw new CliError(`With --tenant the console uses its own: leave --${name} out`)
  }
  const { provider, challenge, at, body, publicKey } = options
  const toFile = (file: string | undefined) =>
    file === undefined ? undefined : readInputFile(context, file).toString('base64')
  const answer = await context.adminFetch(
    'POST',
    `${toTenantPath(options.tenant)}/attestation-check`,
    {
      evidence_base64: bytes.toString('base64'),
      provider,
      challenge,
      at: at === undefined ? undefined : new Date(readMoment(at)).toISOString(),
      body_base64: toFile(body),
      public_key_base64: toFile(publicKey),
    },
  )
  const { tenant_id: _, ...check } = answer as AttestationCheck & { tenant_id: string }
  return check
}

async function checkRecognized(
  context: CliContext,
  { evidence, challenge: given }: Recognized,
  options: CheckOptions,
): Promise<AttestationCheck> {
  const nowMs = readMoment(options.at)
  const challenge = readChallenge(options.challenge) ?? given
  const body = options.body === undefined ? null : readInputFile(context, options.body)
  // Apps of a tenant are not judged here, they are among the facts.
  const apps = null
  if (evidence.kind === 'assertion') {
    const clientData = body ?? challenge
    if (clientData === null || options.publicKey === undefined) {
      throw new CliError(
        'An assertion is checked with --public-key, and with --body or --challenge for what it signs',
      )
    }
    const publicKey = readPublicKey(context, options.publicKey)
    return checkAssertion({ assertion: evidence.object, publicKey, clientData, apps })
  }
  if (evidence.kind === 'play_integrity' && options.keys === undefined) {
    throw new CliError('A Play token is checked with --keys, the two keys of the Play Console')
  }
  const isForBody = evidence.kind === 'play_integrity' && body !== null
  return checkEvidence(
    evidence,
    { challenge: isForBody ? hash('sha256', body, 'buffer') : challenge },
    {
      apps,
      environment: null,
      playKeys: options.keys === undefined ? null : readKeysFile(context, options.keys),
      statusList: readStatusList(context, options.status),
      roots: attestationRoots,
      nowMs,
    },
  )
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

function readPublicKey(context: CliContext, file: string): KeyObject {
  const key = readKeyFile(readInputFile(context, file))
  if (key === null) throw new CliError(`${file} is no public key`)
  return key
}

/** @throws CliError that repeats nothing of the file: what it holds are keys */
export function readKeyTexts(context: CliContext, file: string): PlayKeyTexts {
  const text = readInputFile(context, file).toString('utf8')
  const wanted = `${file} needs decryption_key (32 bytes) and verification_key, both in base64`
  let given: Record<string, unknown>
  try {
    given = JSON.parse(text) as Record<string, unknown>
  } catch {
    throw new CliError(wanted)
  }
  const texts = {
    decryption_key: String(given?.decryption_key),
    verification_key: String(given?.verification_key),
  }
  if (readPlayKeys(texts) === null) throw new CliError(wanted)
  return texts
}

const readKeysFile = (context: CliContext, file: string): PlayKeys =>
  readPlayKeys(readKeyTexts(context, file))!
