/** The signals whose share of the devices changed most between two periods. Pure. */
import { overviewMoverDevicesMin, overviewMoversMax } from '#shared/core/base/limits/analytics.ts'
import type { Pair } from '#shared/io/analytics/overview-store.ts'

export type Mover = { signal: string; devices: Pair; share: Pair }

/**
 * The shares that changed most, by percentage points.
 * @param all the devices of both periods
 * @returns null where one of them has too few devices to compare
 */
export function toMovers(
  signals: readonly { signal: string; devices: Pair }[],
  all: Pair,
): Mover[] | null {
  if (Math.min(all.now, all.before) < overviewMoverDevicesMin) return null
  // Two sketches may differ by a percent; a share is at most 1.
  const toShare = (part: number, whole: number) =>
    Math.round(Math.min(1, part / whole) * 10_000) / 10_000
  return signals
    .map(({ signal, devices }) => ({
      signal,
      devices,
      share: {
        now: toShare(devices.now, all.now),
        before: toShare(devices.before, all.before),
      },
    }))
    .filter(({ share }) => share.now !== share.before)
    .sort((a, b) => toChange(b) - toChange(a) || (a.signal < b.signal ? -1 : 1))
    .slice(0, overviewMoversMax)
}

const toChange = ({ share }: Mover) => Math.abs(share.now - share.before)
