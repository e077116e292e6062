/**
 * What the service knows of an install from its verified evidence: server signals, and the few
 * facts that the token and the registration keep. Facts of evidence that proves nothing are the
 * sender's words, so none of them becomes a signal. Ids of a phone (IMEI, serial number, Android's
 * unique id) are never read here: nothing that leaves this file has them.
 */

import { sha256 } from '#shared/core/attestation/encodings.ts'
import type { AttestationCheck, AttestationLevel } from '#shared/core/attestation/steps.ts'
import {
  deviceModelCharactersMax,
  playLabelCharactersMax,
  playLabelsMax,
} from '#shared/core/base/limits/attestation.ts'
import type { ProblemDetail } from '#shared/core/http/problem.ts'
import type { CategorySignals } from '#shared/core/signals/signal-definition.ts'
import type { InstallProvider } from './registration.ts'

export type VerifiedEvidence = {
  provider: InstallProvider
  verdict: 'verified' | 'rejected' | 'none'
  /** A code of `reasons.ts`; null unless rejected. */
  reason: string | null
  /** The member of the registration that cannot be read; null when all can. */
  unreadable: ProblemDetail | null
  /** The platform signed it for this request, whatever it says: see `isProven`. */
  proven: boolean
  level: AttestationLevel
  /** SubjectPublicKeyInfo in base64; null without a key that was proven to be of this request. */
  publicKey: string | null
  /**
   * Of an Android chain, from the leaf's issuer up without the root: the hash of issuer and serial.
   */
  issuers: string[]
  /** The hashes of the serials of the same certificates, as the status list is searched. */
  serials: string[]
  remotelyProvisioned: boolean
  /** As the secure hardware says; empty where it does not. */
  deviceModel: string
  /** Of category `attestation`; they hold for the token's life. */
  signals: CategorySignals
}

/** Of an install that proves nothing of its platform. */
export const noEvidence: VerifiedEvidence = {
  provider: 'none',
  verdict: 'none',
  reason: null,
  unreadable: null,
  proven: false,
  level: 'none',
  publicKey: null,
  issuers: [],
  serials: [],
  remotelyProvisioned: false,
  deviceModel: '',
  signals: {},
}

/** 16 bytes of a SHA-256: as short as a token wants it, and no two certificates share one. */
const toShortHash = (text: string): string =>
  sha256(Buffer.from(text)).subarray(0, 16).toString('base64url')

/**
 * The hash of a certificate's serial, in 22 characters of base64url.
 * @param serial lower-case hex without leading zeros, as the status list writes it
 */
export const hashSerial = (serial: string): string => toShortHash(serial)

type CertificateFacts = { issuer: string; serial: string }

/** The hash of issuer and serial, which name a certificate. */
const hashIssuer = ({ issuer, serial }: CertificateFacts): string =>
  toShortHash(`${issuer}\n${serial}`)

/**
 * Whether the evidence was made for this request in what it claims to be: then its facts are those
 * of the phone. A chain that is revoked since is such evidence, though its level is `none`.
 */
function isProven({ provider, level, steps }: AttestationCheck): boolean {
  const holds = (names: readonly string[]) =>
    names.every((name) => steps.some(({ step, ok }) => step === name && ok))
  switch (provider) {
    case 'key_attestation':
      return holds(['path', 'validity', 'key_description', 'challenge'])
    case 'app_attest':
      return level !== 'none'
    case 'play_integrity':
      return holds(['verdict', 'nonce', 'package', 'age'])
  }
}

/** @returns what a registration with this evidence is worth */
export function toVerifiedEvidence(check: AttestationCheck): VerifiedEvidence {
  const { provider, verdict, reason, level, facts } = check
  const proven = isProven(check)
  const isChain = provider === 'key_attestation' && proven
  const certificates = isChain ? listAboveLeaf(facts) : []
  return {
    provider,
    verdict,
    reason,
    unreadable: null,
    proven,
    level,
    publicKey: proven && typeof facts.public_key === 'string' ? facts.public_key : null,
    issuers: certificates.map(hashIssuer),
    serials: certificates.map(({ serial }) => hashSerial(serial)),
    remotelyProvisioned: isChain && facts.provisioning === 'remote',
    deviceModel: isChain ? readModel(facts) : '',
    signals: toEvidenceSignals(check),
  }
}

function listAboveLeaf({ certificates }: Record<string, unknown>): CertificateFacts[] {
  return Array.isArray(certificates) ? (certificates as CertificateFacts[]).slice(1, -1) : []
}

function readModel(facts: Record<string, unknown>): string {
  const { attestation_id_model: model } = toObject(facts.hardware_enforced)
  return typeof model === 'string' && /^[\x20-\x7e]+$/.test(model)
    ? model.slice(0, deviceModelCharactersMax)
    : ''
}

const toObject = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

const hasFailed = ({ steps }: AttestationCheck, name: string): boolean =>
  steps.some(({ step, ok }) => step === name && !ok)

/**
 * The server signals of one check. `verified` needs a phone that the evidence says something of: a
 * Play token without any verdict of the device is genuine, and says that Google is unsure.
 */
function toEvidenceSignals(check: AttestationCheck): CategorySignals {
  const { provider, verdict, level } = check
  const isVerified = verdict === 'verified' && level !== 'none'
  const hasKey = provider !== 'play_integrity'
  return {
    ...flag('verified', isVerified),
    ...flag('rejected', verdict === 'rejected'),
    // False, not absent, where a key was to be proven: that is what a forged chain shows.
    ...(hasKey ? { hardware_backed: level === 'hardware' || level === 'strongbox' } : {}),
    ...(isProven(check) ? toFactSignals(check) : {}),
  }
}

const flag = (name: string, holds: boolean): CategorySignals => (holds ? { [name]: true } : {})

function toFactSignals(check: AttestationCheck): CategorySignals {
  const { provider, facts } = check
  const app = flag('app_unknown', hasFailed(check, 'app'))
  switch (provider) {
    case 'key_attestation':
      return { ...app, ...toAndroidSignals(check) }
    case 'app_attest':
      return { ...app, ...flag('debug_build', facts.environment === 'development') }
    case 'play_integrity':
      return {
        ...app,
        ...flag('debug_build', facts.is_testing === true),
        // Where the verdict was chosen, it says nothing of phone, app and account.
        ...(hasFailed(check, 'testing') ? {} : toPlaySignals(facts)),
      }
  }
}

function toAndroidSignals(check: AttestationCheck): CategorySignals {
  const { facts } = check
  const root = toObject(toObject(facts.hardware_enforced).root_of_trust)
  const { os_patch_age_days: age } = facts
  return {
    ...flag('bootloader_unlocked', root.device_locked === false),
    // A system that its owner signed is one that its maker has not verified.
    ...flag('boot_unverified', hasFailed(check, 'boot_state')),
    ...(typeof age === 'number' ? { os_patch_age_days: Math.max(0, age) } : {}),
    ...flag('revoked', hasFailed(check, 'revocation')),
  }
}

function toPlaySignals(facts: Record<string, unknown>): CategorySignals {
  const one = (name: string, value: unknown): CategorySignals =>
    isLabel(value) ? { [name]: value } : {}
  return {
    // An empty list is a value: Google is unsure of the phone.
    pi_device: toLabels(facts.device_recognition),
    ...one('pi_app', facts.app_recognition),
    ...one('pi_licensing', facts.app_licensing),
    ...one('play_protect', facts.play_protect),
    app_access_risk: toLabels(facts.app_access_risk),
  }
}

/** Google's values are upper-case words; a later one is kept as it is, within the bounds. */
const isLabel = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= playLabelCharactersMax && /^[A-Z0-9_]+$/.test(value)

const toLabels = (values: unknown): string[] =>
  Array.isArray(values) ? values.filter(isLabel).slice(0, playLabelsMax) : []
