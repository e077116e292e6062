/**
 * Categories of signals that an event left empty though its SDK version hardly ever does: what a
 * hook that strips detections looks like from here. The baseline is what devices of the same
 * tenant, version and platform sent in 24 hours that were over before the event's own hour and the
 * one before it, so it does not change any more when the event is decided.
 */

import { hourMs } from '#shared/core/base/instants.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import type { Finding } from './correlation.ts'

type MissingRule = NonNullable<Policy['signalsMissing']>

/** How many devices a version was seen on, and on how many of them a category came empty. */
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
 * The hours that make the baseline of an event received at this time, in ms: from the first hour's
 * start to the last one's end. The full hour in between is for edges whose clocks or publishes lag:
 * whatever belongs to the window stands before the event in the stream.
 */
export function toBaselineWindow(atMs: number): { fromMs: number; toMs: number } {
  const toMs = Math.floor(atMs / hourMs) * hourMs - hourMs
  return { fromMs: toMs - baselineHours * hourMs, toMs }
}

/** Places of the bitmaps that devices are counted by, as in `clickhouse/0003-velocity.sql`. */
const places = 65_536

/**
 * How many devices leave so many places taken, some sharing one: linear counting. Within 1 % up to
 * 100,000 devices; it never answers above 730,000, so that a larger fleet's share of empty
 * categories looks larger than it is and the rule keeps quiet rather than guess.
 */
export function estimateDevices(taken: number): number {
  return Math.round(-places * Math.log1p(-Math.min(taken, places - 1) / places))
}

/**
 * The categories with at least one measured signal, known or not: a bit for each, in the order of
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

/**
 * Whether the baseline can matter: most events fill every category, and need not be asked about.
 */
export function needsBaseline(
  filled: number,
  { signalsMissing: rule }: Pick<Policy, 'signalsMissing'>,
): boolean {
  if (rule === null || rule.weight === 0) return false
  return categories.filter((_, index) => !isFilled(filled, index)).length > rule.threshold
}

/**
 * The categories that are empty here though at least the usual share of enough devices never left
 * them empty. Where an SDK leaves a category out of some of its batches it does so on every device,
 * and then nothing is missing.
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
 * What the policy holds of an event's empty categories.
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
