/**
 * Android Key Attestation: whether a key was made in the secure hardware of a genuine phone, for
 * this challenge, by an app of the tenant, on a system that its maker signed.
 */
import type { X509Certificate } from 'node:crypto'
import { type AttestedApp, findAndroidApp } from './apps.ts'
import { toListedSerial } from './certificate.ts'
import {
  anchorIncluded,
  checkPath,
  checkValidity,
  type PathCertificate,
  type PathRules,
} from './certificate-path.ts'
import { toBase64 } from './encodings.ts'
import {
  type AuthorizationList,
  type KeyDescription,
  keyDescriptionOid,
  readKeyDescription,
  securityLevels,
} from './key-description.ts'
import { Refusal } from './reasons.ts'
import type { RootKey } from './roots.ts'
import type { StatusList } from './status-list.ts'
import { type AttestationCheck, type AttestationLevel, type StepLog, startSteps } from './steps.ts'

export type KeyAttestationInput = {
  /** Certificates in DER, leaf first, root last. */
  chain: readonly Uint8Array[]
  /** Null reports the challenge and does not judge it: for finding faults, never for a decision. */
  challenge: Uint8Array | null
  /** Null reports the app and does not judge it. */
  apps: readonly AttestedApp[] | null
  /** Null judges no revocation. */
  statusList: StatusList | null
  roots: readonly RootKey[]
  nowMs: number
}

/** Steps without which the evidence proves nothing. */
const proof = ['validity', 'key_description', 'challenge', 'revocation']

/** As `securityLevels` of the description, from the weakest. */
const levels: readonly AttestationLevel[] = ['software', 'hardware', 'strongbox']

/** The weaker of where the key lies and where its attestation was made. */
function toLevel(description: KeyDescription): AttestationLevel {
  const { attestation_security_level: level, key_mint_security_level: keyLevel } = description
  return levels[Math.min(securityLevels.indexOf(level), securityLevels.indexOf(keyLevel))]!
}

/**
 * Verifies a chain.
 * @returns the steps until one that the next ones need fails. It never throws for what was sent.
 */
export function checkKeyAttestation(input: KeyAttestationInput): AttestationCheck {
  const log = startSteps('key_attestation')
  const facts: Record<string, unknown> = { not_judged: listUnjudged(input) }
  const path = checkPath(input, pathRules, log, facts)
  if (path === null) return log.end(facts, 'none')
  const isRemote = isRemotelyProvisioned(path)
  facts.provisioning = isRemote ? 'remote' : 'factory'
  facts.public_key = toBase64(path[0]!.publicKeyInfo)
  facts.key_algorithm = describeKey(path[0]!.certificate)
  checkDates(path, { isRemote, nowMs: input.nowMs }, log)
  const description = checkDescription(path, log)
  if (description !== null) {
    Object.assign(facts, description)
    checkKey(description, input, log)
    checkBoot(description.hardware_enforced, log)
    if (input.apps !== null) checkApp(description, input.apps, log)
    facts.os_patch_age_days = findPatchAge(description.hardware_enforced, input.nowMs)
  }
  if (input.statusList !== null) checkRevocation(facts, input.statusList, log)
  const proven = description !== null && !log.hasFailed(proof)
  return log.end(facts, proven ? toLevel(description) : 'none')
}

function listUnjudged({ challenge, apps, statusList }: KeyAttestationInput): string[] {
  return [
    ...(challenge === null ? ['challenge'] : []),
    ...(apps === null ? ['app'] : []),
    ...(statusList === null ? ['revocation'] : []),
  ]
}

/**
 * Phones of some makers (Sony's Xperia 10 III is one) have factory certificates without the CA
 * flag. That such a certificate did not come from an attested key is checked by `checkDescription`:
 * the leaf alone describes a key.
 */
function mayFactoryIssue(above: readonly PathCertificate[]): boolean {
  return !isRemotelyProvisioned(above)
}

/** Android's chains end with a certificate of the root key. */
const pathRules: PathRules = {
  findAnchor: anchorIncluded,
  isRootIncluded: true,
  mayIssue: mayFactoryIssue,
}

const provisioningOid = '1.3.6.1.4.1.11129.2.1.30'

/** Remote provisioning: short-lived certificates from Google's servers, instead of the factory's. */
const isRemotelyProvisioned = (path: readonly PathCertificate[]): boolean =>
  path.some(
    ({ certificate, extensions }) =>
      extensions.has(provisioningOid) || /^CN=Droid CA\d+$/m.test(certificate.subject),
  )

function describeKey({ publicKey }: X509Certificate): string {
  try {
    const details = publicKey.asymmetricKeyDetails
    const size = details?.namedCurve ?? details?.modulusLength
    return [publicKey.asymmetricKeyType, size].filter((part) => part !== undefined).join(' ')
  } catch {
    return 'unknown'
  }
}

/**
 * Dates of the leaf are the phone's own, those of the root certificate are one copy's. A factory's
 * certificates cannot be renewed, so their end is ignored.
 */
function checkDates(
  path: readonly PathCertificate[],
  { isRemote, nowMs }: { isRemote: boolean; nowMs: number },
  log: StepLog,
): void {
  log.attempt(
    'validity',
    () => checkValidity(path.slice(1), nowMs, { isEndIgnored: !isRemote }),
    () => (isRemote ? 'valid at that time' : 'begun; the end of a factory’s is ignored'),
  )
}

/**
 * The leaf alone may describe a key. An attested key can sign further certificates, so a second
 * description is what an attacker wrote below a genuine one.
 */
function checkDescription(path: readonly PathCertificate[], log: StepLog): KeyDescription | null {
  return log.attempt(
    'key_description',
    () => {
      const places = path.flatMap(({ extensions }, index) =>
        extensions.has(keyDescriptionOid) ? [index] : [],
      )
      if (places.length === 0) throw new Refusal('attestation_missing', 'in no certificate')
      if (places.length > 1) {
        const found = places.map((place) => place + 1).join(' and ')
        throw new Refusal('attestation_repeated', `in certificates ${found}`)
      }
      if (places[0] !== 0) {
        throw new Refusal('attestation_misplaced', `in certificate ${places[0]! + 1}`)
      }
      return readKeyDescription(path[0]!.extensions.get(keyDescriptionOid)!)
    },
    ({ attestation_version: version }) => `version ${version ?? 'unknown'}, in the leaf alone`,
  )
}

function checkKey(description: KeyDescription, input: KeyAttestationInput, log: StepLog): void {
  if (input.challenge !== null) {
    const wanted = toBase64(input.challenge)
    log.judge('challenge', description.attestation_challenge === wanted, 'challenge_mismatch', {
      held: 'equal',
      failed: `the key was made for ${description.attestation_challenge}, not for ${wanted}`,
    })
  }
  const { attestation_security_level: level, key_mint_security_level: keyLevel } = description
  const isSoftware = level === 'SOFTWARE' || keyLevel === 'SOFTWARE'
  const holds = !isSoftware && level === keyLevel
  log.judge('security_level', holds, isSoftware ? 'software_key' : 'security_level_mismatch', {
    held: level,
    failed: `attestation by ${level}, key in ${keyLevel}`,
  })
  const { origin } = description.hardware_enforced
  log.judge('origin', origin === 'GENERATED', 'key_not_generated', {
    held: 'generated in the secure hardware',
    failed: `the secure hardware says ${origin ?? 'nothing'}`,
  })
}

/** What the secure hardware says; the software's word of it counts nothing. */
function checkBoot({ root_of_trust: root }: AuthorizationList, log: StepLog): void {
  if (root === undefined) {
    log.fail('bootloader', new Refusal('root_of_trust_missing', 'no root of trust'))
    return
  }
  log.judge('bootloader', root.device_locked, 'bootloader_unlocked', {
    held: 'locked',
    failed: 'unlocked',
  })
  const { verified_boot_state: state } = root
  const reason = state === 'SELF_SIGNED' ? 'boot_self_signed' : 'boot_unverified'
  log.judge('boot_state', state === 'VERIFIED', reason, { held: state, failed: state })
}

/** The system writes it into what is enforced by software; KeyMint attests what it was given. */
function checkApp(
  { software_enforced: enforced }: KeyDescription,
  apps: readonly AttestedApp[],
  log: StepLog,
): void {
  const given = enforced.attestation_application_id
  log.attempt(
    'app',
    () => {
      const packages = given?.packages.map(({ name }) => name) ?? []
      const signers = given?.signatures.map((digest) => Buffer.from(digest, 'base64')) ?? []
      return findAndroidApp(apps, packages, signers)
    },
    ({ id }) => id,
  )
}

/** Year and month, or with the day, which some phones leave at 00. */
const patchLevelPattern = /^(20\d\d)(0[1-9]|1[0-2])([0-2]\d|3[01])?$/

/**
 * @returns the age of the system's patch level in days; null when none is stated, or none that is a
 *   month of a calendar, as some phones have
 */
function findPatchAge({ os_patch_level: level }: AuthorizationList, nowMs: number): number | null {
  const system = patchLevelPattern.exec(String(level))
  if (system === null) return null
  const [, year, month, day] = system
  const patchedMs = Date.UTC(Number(year), Number(month) - 1, Math.max(1, Number(day ?? 1)))
  return Math.floor((nowMs - patchedMs) / 86_400_000)
}

function checkRevocation(
  { certificates }: Record<string, unknown>,
  list: StatusList,
  log: StepLog,
): void {
  const serials = (certificates as { serial: string }[]).map(({ serial }) => serial)
  const revoked = serials.find((serial) => list.has(toListedSerial(serial)))
  log.judge('revocation', revoked === undefined, 'revoked', {
    held: `none of ${serials.length} is among ${list.size} entries`,
    failed: `${revoked}: ${revoked === undefined ? '' : list.get(revoked)}`,
  })
}
