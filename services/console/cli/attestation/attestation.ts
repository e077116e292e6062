/**
 * `di attestation check`: the steps by which evidence of a phone is verified, and the one that
 * fails. It runs the code of the service on a file, without a stack.
 */
import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { Option } from 'commander'
import { checkAppAttest } from '#shared/core/attestation/app-attest.ts'
import { checkAssertion } from '#shared/core/attestation/app-attest-assertion.ts'
import { decodeBase64 } from '#shared/core/attestation/encodings.ts'
import { checkKeyAttestation } from '#shared/core/attestation/key-attestation.ts'
import { checkPlayIntegrity, type PlayKeys } from '#shared/core/attestation/play-integrity.ts'
import { attestationReasons } from '#shared/core/attestation/reasons.ts'
import {
  type EvidenceFile,
  expectEvidence,
  recognizeEvidence,
} from '#shared/core/attestation/recognize.ts'
import { attestationRoots } from '#shared/core/attestation/roots.ts'
import { parseStatusList, type StatusList } from '#shared/core/attestation/status-list.ts'
import { type AttestationCheck, attestationProviders } from '#shared/core/attestation/steps.ts'
import { evidenceFileBytesMax, statusListBytesMax } from '#shared/core/base/limits/attestation.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { command, group } from '../commands.ts'
import { type CliContext, CliError, readInputFile } from '../context.ts'
import { toFields, toTable } from '../tables.ts'

type CheckOptions = {
  provider?: (typeof attestationProviders)[number]
  challenge?: string
  at?: string
  body?: string
  status?: string
  publicKey?: string
  keys?: string
}

export const attestation = group('attestation', 'find out why a phone is refused', [
  command<CheckOptions>(
    'check <file>',
    'verify evidence step by step: a chain in PEM, an App Attest object, a Play token',
    [
      new Option('--provider <provider>', 'instead of recognising it').choices(
        attestationProviders,
      ),
      ['--challenge <base64>', 'the challenge that it must be for; else reported, not judged'],
      ['--body <file>', 'the body that an assertion signs, or that a Play token is for'],
      ['--at <time>', 'the moment to check at, as 2026-01-02T03:04:05Z; now by default'],
      ['--status <file>', 'the list of revoked certificates that Android publishes'],
      [
        '--public-key <file>',
        'the attested key of an assertion: PEM, or DER as it is or in base64',
      ],
      ['--keys <file>', 'Play: {"decryption_key":"BASE64","verification_key":"BASE64"}'],
    ],
    async (context, [file], options) => {
      context.out(await checkFile(context, file!, options), toCheckText)
    },
  ),
])

async function checkFile(
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

function toCheckText({ provider, verdict, reason, level, facts, steps }: AttestationCheck): string {
  const rows = steps.map(({ step, ok, detail }) => [ok ? 'ok' : 'FAILED', step, detail])
  const unjudged = (facts.not_judged as string[]).join(', ')
  const { not_judged: _, ...shown } = facts
  return [
    toFields({
      provider,
      verdict: reason === null ? verdict : `${verdict}: ${reason}`,
      level,
      why: reason === null ? undefined : attestationReasons[reason].meaning,
      'what to do': reason === null ? undefined : attestationReasons[reason].advice,
      'not judged': unjudged === '' ? undefined : unjudged,
    }),
    toTable(['', 'STEP', 'DETAIL'], rows),
    `FACTS\n${toFactLines(shown).join('\n')}`,
  ].join('\n\n')
}

/** Members of members are indented; lists of plain values are on one line. */
function toFactLines(facts: Record<string, unknown>, indent = '  '): string[] {
  return Object.entries(facts).flatMap(([name, value]) => {
    const isNested = typeof value === 'object' && value !== null && !isPlainList(value)
    if (!isNested) return [`${indent}${name}: ${toVisible(toPlain(value))}`]
    return [`${indent}${name}:`, ...toFactLines(value as Record<string, unknown>, `${indent}  `)]
  })
}

const isPlainList = (value: object): boolean =>
  Array.isArray(value) && value.every((entry) => typeof entry !== 'object')

const toPlain = (value: unknown): string =>
  Array.isArray(value) ? value.join(', ') : String(value)
