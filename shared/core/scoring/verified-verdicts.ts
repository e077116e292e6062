/**
 * Verdicts of platforms that the service verified itself, beside what the client says of them. The
 * client's word then scores nothing, since the service knows better. A word that claims more than
 * was verified is a signal of its own, `attestation.claim_contradicted`.
 */
import type { ServerSignals, Signals } from '#shared/core/signals/signal-definition.ts'
import { toMeaning } from '#shared/core/signals/vocabulary.ts'
import { isMeasured } from './required-signals.ts'

/** `evidence`: key attestation, App Attest or a token as a whole. `play_integrity`: its verdicts. */
export type VerdictKind = 'evidence' | 'play_integrity'

/** Server signals of `attestation` whose presence says that a token of Play Integrity was read. */
export const playVerdicts = [
  'pi_device',
  'pi_app',
  'pi_licensing',
  'play_protect',
  'app_access_risk',
] as const

/** Server signals of `attestation` of which each is true only when evidence was checked. */
export const evidenceVerdicts = ['verified', 'rejected'] as const

/** The kind of verdict that a signal of the client is its word of; null for any other signal. */
export function findVerdictKind(path: string): VerdictKind | null {
  if (path.startsWith('tamper.pi_')) return 'play_integrity'
  return path === 'tamper.app_attest_valid' || path.startsWith('tamper.attestation_')
    ? 'evidence'
    : null
}

/** Whether the service verified a verdict of this kind itself. */
export function isVerifiedHere(kind: VerdictKind, { attestation }: ServerSignals): boolean {
  if (attestation === undefined) return false
  if (kind === 'evidence') return evidenceVerdicts.some((name) => attestation[name] === true)
  return playVerdicts.some((name) => isMeasured(attestation[name]))
}

/** Why the client's word scores nothing; explanations show it. */
export const verifiedHereText = 'The service verified this itself.'

/** Levels of Play Integrity, which a device has with all those below it. */
const deviceLevels = [
  'MEETS_VIRTUAL_INTEGRITY',
  'MEETS_BASIC_INTEGRITY',
  'MEETS_DEVICE_INTEGRITY',
  'MEETS_STRONG_INTEGRITY',
]

/**
 * Whether the client claims a better verdict than the one that was verified: the value of
 * `attestation.claim_contradicted`. A worse claim harms its sender alone, and verdicts that change
 * within hours, such as Play Protect's, are not compared.
 * @param verified the server signals of the same event, without `claim_contradicted`
 */
export function contradictsVerified(signals: Signals, verified: ServerSignals): boolean {
  const { attestation } = verified
  if (attestation === undefined) return false
  const { tamper } = signals
  if (attestation.rejected === true && tamper.app_attest_valid === true) return true
  const { pi_app: app, pi_licensing: licence, pi_device: device } = attestation
  const claimsApp = isText('pi_app_verdict', tamper.pi_app_verdict, 'PLAY_RECOGNIZED')
  const claimsLicence = isText('pi_licensing', tamper.pi_licensing, 'LICENSED')
  return (
    (claimsApp && isOther(app, 'PLAY_RECOGNIZED')) ||
    (claimsLicence && isOther(licence, 'LICENSED')) ||
    (toLevel(device) >= 0 && toLevel(tamper.pi_device_verdict) > toLevel(device))
  )
}

const isText = (name: string, value: unknown, wanted: string): boolean =>
  typeof value === 'string' && toMeaning('tamper', name, value) === wanted

/** Another verdict than the claimed one. Google does not evaluate every app and licence. */
const isOther = (value: unknown, claimed: string): boolean =>
  typeof value === 'string' && value !== claimed && value !== 'UNEVALUATED'

/** The highest level of a list; -1 for none. Genuine phones have none when Google is unsure. */
function toLevel(value: unknown): number {
  let highest = -1
  if (!Array.isArray(value)) return highest
  for (const one of value) {
    const level = typeof one === 'string' ? toMeaning('tamper', 'pi_device_verdict', one) : ''
    highest = Math.max(highest, deviceLevels.indexOf(level))
  }
  return highest
}
