// Whether a known user is new on a device, as of each event: like a plain model, for any times.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import { countNewDevice } from '#shared/core/velocity/new-device.ts'
import { toVelocityScreen } from '#shared/core/velocity/velocity-screen.ts'

type Row = Parameters<typeof countNewDevice>[0][number]

const month = 2_592_000
const now = Date.UTC(2026, 5, 1)
const hours = (count: number) => now + (count * dayMs) / 24

/** Rows of one user, one event each, in the order of the stream. */
const rowsOf = (...seen: [device: number, atMs: number][]): Row[] =>
  seen.map(([userDevice, atMs], index) => ({
    userDevice,
    atMs,
    event: index + 1,
    streamOffset: index + 1,
  }))

const _countAll = (rows: readonly Row[], windowSeconds = month) =>
  countNewDevice(rows, windowSeconds, rows)

describe('a known user on a new device', () => {
  it('is as in a plain model, for any times and order', () => {
    const seen = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ max: 80, min: 0 })),
      {
        maxLength: 14,
      },
    )
    fc.assert(
      fc.property(seen, fc.constantFrom(2, 3), (all, days) => {
        const rows = rowsOf(...all.map(([device, at]) => [device, hours(at)] as [number, number]))
        const expected = rows.map(({ userDevice, atMs, streamOffset }) => {
          const before = rows.filter(
            (row) =>
              row.userDevice !== 0 &&
              row.streamOffset <= streamOffset &&
              row.atMs > atMs - days * dayMs,
          )
          const here = before.filter((row) => row.userDevice === userDevice)
          const firstMs = Math.min(...here.map((row) => row.atMs))
          const isNew = here.length > 0 && firstMs > atMs - dayMs
          return isNew && before.some((row) => row.atMs < firstMs) ? 1 : 0
        })
        const repeated = [...rows, ...rows].reverse()
        expect(countNewDevice(repeated, days * 86_400, rows)).toEqual(expected)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('the screen for new devices', () => {
  it('keeps the narrowest window beside the widest', () => {
    const rule = { metric: 'new_device_of_user', threshold: 0, weight: 10 } as const
    const screen = toVelocityScreen([
      [{ ...rule, windowSeconds: month }],
      [{ ...rule, windowSeconds: 3 * 86_400 }],
    ])
    expect(screen.get('new_device_of_user')).toEqual([
      { threshold: 0, windowSeconds: month, narrowestSeconds: 3 * 86_400 },
    ])
  })
})
