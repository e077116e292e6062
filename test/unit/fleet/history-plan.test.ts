// The plan of a history: equal for equal seeds, by day and night, up to its end, with a bad
// release that the hourly search for prevalence spikes finds.
import { describe, expect, it } from 'vitest'
import {
  findPrevalenceSpike,
  type PrevalenceSample,
} from '#shared/core/analytics/prevalence-spike.ts'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { makeHistory, type Visit } from '../../../deploy/fleet/history/history-plan.ts'

const startMs = Date.UTC(2026, 2, 2)
const endMs = startMs + 7 * dayMs + 9 * hourMs
const badReleaseMs = endMs - 22 * hourMs
const span = { startMs, days: 7, visitDays: 8, badReleaseMs }
const { visits, stories } = makeHistory(1, 300, span)
const batches = visits.flatMap((visit: Visit) => visit.batches).filter(({ atMs }) => atMs < endMs)

describe('a history of a week', () => {
  it('is equal for equal seeds and differs for others', () => {
    expect(makeHistory(1, 300, span).visits).toEqual(visits)
    expect(makeHistory(2, 300, span).visits).not.toEqual(visits)
  })

  it('begins on its first day, covers every day, and has more traffic by day', () => {
    expect(Math.min(...batches.map(({ atMs }) => atMs))).toBeGreaterThanOrEqual(startMs)
    const days = new Set(batches.map(({ atMs }) => Math.floor((atMs - startMs) / dayMs)))
    expect([...days].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    const between = (from: number, to: number) =>
      batches.filter(({ atMs }) => {
        const hour = new Date(atMs).getUTCHours()
        return hour >= from && hour < to
      }).length
    expect(between(9, 21)).toBeGreaterThan(4 * between(0, 6))
  })

  it('has a bad release that the search for spikes finds, and none before it', () => {
    const sample = (isOfRelease: boolean, fromMs: number, toMs: number): PrevalenceSample => {
      const seen = batches.filter(
        ({ phone, atMs }) =>
          phone.kind.platform === stories.release.platform &&
          (phone.sdk.version === stories.release.sdkVersion) === isOfRelease &&
          atMs >= fromMs &&
          atMs < toMs,
      )
      const devices = (some: typeof seen) => new Set(some.map(({ phone }) => phone.deviceId)).size
      const hit = seen.filter(({ phone }) => phone.signals.debugger.xposed_detected === true)
      return { devices: devices(hit), fleet: devices(seen) }
    }
    const find = (atMs: number) =>
      findPrevalenceSpike({
        current: sample(true, atMs - dayMs, atMs),
        earlier: [1, 2, 3].map((n) => sample(true, atMs - (n + 1) * dayMs, atMs - n * dayMs)),
        elsewhere: sample(false, atMs - dayMs, atMs),
      })
    expect(find(badReleaseMs)).toBeNull()
    expect(find(endMs)).not.toBeNull()
    // An hourly check runs within its first hour.
    expect(find(endMs + hourMs)).not.toBeNull()
  })
})
