/**
 * Warnings about a valid submission: what is accepted and probably a mistake. An edge sends them to
 * sandbox tenants; `di telemetry check` prints them.
 */
import { envelopeWarningsMax, warningsMax } from '#shared/core/base/limits/telemetry.ts'
import type { Declaring } from '#shared/core/policies/declared-signals.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { findSignalWarnings, type SignalWarning } from '../signal-warnings.ts'
import type { Telemetry } from '../submission.ts'
import { findEnvelopeWarnings, type Judged } from './envelope-warnings.ts'

/**
 * @param policy declares signals that the catalog does not have
 * @returns at most `warningsMax`: those of the envelope first, then those of signals
 */
export function findWarnings(
  telemetry: Telemetry,
  judged: Judged,
  policy: Declaring = {},
): SignalWarning[] {
  const envelope = findEnvelopeWarnings(telemetry, judged).slice(0, envelopeWarningsMax)
  const { platform } = telemetry.sdk_meta
  const signals = findSignalWarnings(telemetry.signals as Signals, policy, platform)
  return [...envelope, ...signals].slice(0, warningsMax)
}
