/**
 * Finds categories of signals that an event left empty although its SDK version hardly ever does: a
 * hook that strips detections causes this. The baseline is what devices of the same tenant, version
 * and platform sent in 24 hours. They ended a full hour before the event's own hour, so the
 * baseline no longer changes when the event is decided.
 */

import { hourMs } from '#shared/core/base/instants.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import type { Finding } from './correlation.ts'

type MissingRule = NonNullable<Policy['signalsMissing']>

/** How many devices sent a version, and how many of them left a category empty. */
export type SdkBaseline = {
  devices: number
  /** Devices that sent the category empty at least once. */
  emptyOn: Record<Category, number>
}

/** The baseline of a version without any device. */
export const noBaseline: SdkBaseline = {
  devices: 0,
  emptyOn: { root: 0, emulator: 0, debugger: 0, tamper: 0, ecosystem: 0, network: 0 },
}

const baselineHours = 24

/**
 * The window of the baseline of an event received at this time, in ms since 1970. The full hour
 * between window and event allows for edges whose clocks or publishes lag: every event of the
 * window is before the event in the stream.
 */
export function toBaselineWindow(atMs: number): { fromMs: number; toMs: number } {
  const toMs = Math.floor(atMs / hourMs) * hourMs - hourMs
  return { fromMs: toMs - baselineHours * hourMs, toMs }
}

/** Places of the bitmaps that count devices, as in `clickhouse/0003-velocity.sql`. */
const places = 65_536

/**
 * Estimates the number of devices by linear counting: several devices can share a place of the
 * bitmap. It is within 1 % up to 100,000 devices and never above 730,000. For a larger fleet the
 * share of empty categories then looks larger than it is, and the rule does not act.
 * @param taken occupied places
 */
export function estimateDevices(taken: number): number {
  return Math.round(-places * Math.log1p(-Math.min(taken, places - 1) / places))
}

/**
 * The categories with at least one measured signal, known or not, as bits in the order of
 * `categories`.
 */
export function toFilledCategories(signals: Signals): number {
  let filled = 0
  for (let index = 0; index < categories.length; index++) {
    const sent = signals[categories[index]!]
    for (const name in sent) {
      if (sent[name] === null || sent[name] === undefined) continue
      filled |= 1 << index
      break
    }
  }
  return filled
}

const isFilled = (filled: number, index: number): boolean => (filled & (1 << index)) !== 0

/** Whether an event needs its baseline: most events fill every category. */
export function needsBaseline(
  filled: number,
  { signalsMissing: rule }: Pick<Policy, 'signalsMissing'>,
): boolean {
  if (rule === null || rule.weight === 0) return false
  return categories.filter((_, index) => !isFilled(filled, index)).length > rule.threshold
}

/**
 * The categories that this event left empty although the usual share of devices never did. An SDK
 * that omits a category from some of its batches does so on every device, and then it is not
 * missing.
 */
export function findMissingCategories(
  filled: number,
  baseline: SdkBaseline,
  rule: Pick<MissingRule, 'usualShare' | 'devicesMin'>,
): Category[] {
  if (baseline.devices < rule.devicesMin) return []
  return categories.filter((category, index) => {
    const always = baseline.devices - baseline.emptyOn[category]
    return !isFilled(filled, index) && always / baseline.devices >= rule.usualShare
  })
}

/**
 * Applies the policy's rule on missing categories.
 * @returns null when the rule is off or no more than its threshold are missing
 */
export function findSignalsMissing(
  event: { filled: number; baseline: SdkBaseline; sdkVersion: string },
  { signalsMissing: rule }: Pick<Policy, 'signalsMissing'>,
): Finding | null {
  if (rule === null || rule.weight === 0) return null
  const missing = findMissingCategories(event.filled, event.baseline, rule)
  if (missing.length <= rule.threshold) return null
  return {
    code: 'SIGNALS_MISSING',
    weight: rule.weight,
    evidence: {
      metric: 'missing_categories',
      count: missing.length,
      threshold: rule.threshold,
      window: '24h',
      categories: missing,
      // Postgres' jsonb, where the alert's reasons are kept, holds no NUL.
      sdk_version: event.sdkVersion.replaceAll('\0', '\ufffd'),
    },
  }
}
