/** The answer about a fleet, from what its queries found: every list has one number per step. Pure. */
import { toIso } from '#shared/core/base/instants.ts'
import {
  fleetLinesMax,
  fleetPlatformsMax,
  fleetSignalsMax,
} from '#shared/core/base/limits/analytics.ts'
import type {
  FleetCounts,
  FleetPoint,
  FleetSignal,
  FleetSpan,
  FleetVersion,
} from '#shared/io/analytics/fleet-store.ts'
import type { FleetBody } from './fleet-schemas.ts'

type Found = {
  span: FleetSpan
  totals: FleetCounts
  versions: FleetVersion[]
  all: FleetPoint[]
  newDevices: { atMs: number; devices: number }[]
  byPlatform: FleetPoint[]
  byVersion: FleetPoint[]
  signals: FleetSignal[]
}

export function toFleetBody(found: Found): FleetBody {
  const { span, totals, versions, all, newDevices, byPlatform, byVersion } = found
  const times = toTimes(span)
  const spread = <Point extends { atMs: number }>(
    points: Point[],
    toValue: (point: Point) => number,
  ): number[] => {
    const values = new Map(points.map((point) => [point.atMs, toValue(point)]))
    return times.map((at) => values.get(at) ?? 0)
  }
  const platforms = new Set(byPlatform.map(({ platform }) => platform))
  const devicesOf = spread(newDevices, ({ devices }) => devices)
  return {
    from: toIso(span.fromMs),
    to: toIso(span.toMs),
    step_seconds: span.stepSeconds,
    times: times.map(toIso),
    totals: { ...totals, new_devices: devicesOf.reduce((sum, one) => sum + one, 0) },
    over_time: {
      events: spread(all, ({ events }) => events),
      devices: spread(all, ({ devices }) => devices),
      sessions: spread(all, ({ sessions }) => sessions),
      new_devices: devicesOf,
    },
    platforms: [...platforms.values().take(fleetPlatformsMax)].sort().map((platform) => {
      const own = byPlatform.filter((point) => point.platform === platform)
      return {
        platform,
        devices: spread(own, ({ devices }) => devices),
        events: spread(own, ({ events }) => events),
      }
    }),
    versions: versions.map((version, at) => ({
      platform: version.platform,
      sdk_version: version.sdkVersion,
      events: version.events,
      devices: version.devices,
      sessions: version.sessions,
      first_seen_at: toIso(version.firstSeenMs),
      last_seen_at: toIso(version.lastSeenMs),
      devices_over_time:
        at < fleetLinesMax
          ? spread(
              byVersion.filter((point) => isOf(point, version)),
              ({ devices }) => devices,
            )
          : null,
    })),
    signals: toSignals(found),
  }
}

function toSignals({ totals, versions, signals }: Found): FleetBody['signals'] {
  const largest = versions.slice(0, fleetLinesMax)
  const ofAll = signals.filter(({ platform }) => platform === null)
  return ofAll.slice(0, fleetSignalsMax).map(({ signal, devices }) => ({
    signal,
    devices,
    share: toShare(devices, totals.devices),
    by_version: largest.map((version) => {
      const own = signals.find((one) => one.signal === signal && isOf(one, version))
      return version.devices === 0 ? null : toShare(own?.devices ?? 0, version.devices)
    }),
  }))
}

type OfVersion = { platform: string | null; sdkVersion: string }

const isOf = (one: OfVersion, other: OfVersion): boolean =>
  one.platform === other.platform && one.sdkVersion === other.sdkVersion

/** Two sketches may disagree by a percent, a share is at most 1. */
const toShare = (part: number, whole: number): number =>
  whole === 0 ? 0 : Math.round(Math.min(1, part / whole) * 10_000) / 10_000

function toTimes({ fromMs, toMs, stepSeconds }: FleetSpan): number[] {
  const stepMs = stepSeconds * 1_000
  const times: number[] = []
  for (let at = Math.floor(fromMs / stepMs) * stepMs; at < toMs; at += stepMs) times.push(at)
  return times
}
