// Times as an operator reads them.
import { expect, it } from 'vitest'
import { toExact, toIso, toRelative } from '../../../services/console/web/components/time/clock.ts'

const atMs = Date.parse('2026-11-25T14:03:09.250Z')

it.each([
  [0, 'now'],
  [-59_000, 'now'],
  [-60_000, '1 min. ago'],
  [-3_599_000, '59 min. ago'],
  [-3_600_000, '1 hr. ago'],
  [-172_800_000, '2 days ago'],
  [7_200_000, 'in 2 hr.'],
])('reads %i ms from now as %s', (distanceMs, text) => {
  expect(toRelative(atMs + distanceMs, atMs)).toBe(text)
})

it.each([
  [0, '2026-11-25 14:03:09 +00:00'],
  [420, '2026-11-25 21:03:09 +07:00'],
  [-210, '2026-11-25 10:33:09 -03:30'],
  [840, '2026-11-26 04:03:09 +14:00'],
])('prints the offset of %i minutes beside the exact time', (offset, text) => {
  expect(toExact(atMs, offset)).toBe(text)
})

it('is ISO in UTC when it is copied', () => {
  expect(toIso(atMs)).toBe('2026-11-25T14:03:09.250Z')
})
