// One order of the entries of many sources, and paging through them.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  compareEntries,
  isBefore,
  mergeTimeline,
  type TimelineKey,
  type TimelinePosition,
  timelineKinds,
  toTimelineBound,
} from '#shared/core/devices/timeline.ts'
import { seed } from '../../support/process/seed.ts'

/** Few instants and ids, so that many entries share one. */
const anyEntry: fc.Arbitrary<TimelineKey> = fc.record({
  kind: fc.constantFrom(...timelineKinds),
  atMs: fc.integer({ min: 1, max: 6 }),
  id: fc.constantFrom('a', 'b', 'b 1', 'B', '10', '9'),
})
const anyEntries = fc.uniqueArray(anyEntry, {
  maxLength: 60,
  selector: ({ kind, atMs, id }) => `${kind} ${atMs} ${id}`,
})

type PageQuery = { after: TimelinePosition | null; toMs: number; limit: number }

function readPage(all: readonly TimelineKey[], page: PageQuery) {
  const parts = timelineKinds.map((kind) => readSource(all, kind, page))
  return mergeTimeline(parts, page.limit)
}

/** What a store answers: the newest of one kind before the bound. */
function readSource(
  all: readonly TimelineKey[],
  kind: TimelineKey['kind'],
  { after, toMs, limit }: PageQuery,
): TimelineKey[] {
  const bound = toTimelineBound(kind, { after, toMs })
  return all
    .filter((entry) => entry.kind === kind && isBefore(bound, entry))
    .sort(compareEntries)
    .slice(0, limit + 1)
}

describe('a timeline', () => {
  test('shows each entry once and newest first, whatever the size of a page', () => {
    fc.assert(
      fc.property(
        anyEntries,
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 1, max: 8 }),
        (all, limit, toMs) => {
          const seen: TimelineKey[] = []
          let after: TimelinePosition | null = null
          do {
            const { entries, next } = readPage(all, { after, toMs, limit })
            seen.push(...entries)
            if (next !== null) expect(entries).toHaveLength(limit)
            after = next
          } while (after !== null)
          const expected = all.filter(({ atMs }) => atMs < toMs).sort(compareEntries)
          expect(seen).toEqual(expected)
        },
      ),
      { seed, numRuns: 300 },
    )
  })

  test('has what follows from an event above it, at the same instant', () => {
    const of = (kind: TimelineKey['kind']) => ({ kind, atMs: 5, id: 'x' })
    const { entries } = mergeTimeline([[of('event')], [of('disposition')], [of('alert')]], 10)
    expect(entries.map(({ kind }) => kind)).toEqual(['disposition', 'alert', 'event'])
  })
})
