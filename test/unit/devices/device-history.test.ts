// The rows of a device's sessions, merged and paged, against a plain model of the sessions.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  compareRecent,
  joinSessions,
  joinUsers,
  type LatestConnection,
  type SessionRow,
  toRank,
  toRecentPage,
} from '#shared/core/devices/device-history.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { seed } from '../../support/process/seed.ts'

process.stdout.write(`device history seed ${seed}\n`)

const anyRow: fc.Arbitrary<SessionRow> = fc.tuple(
  fc.constantFrom('a', 'b', 'c', 'd', 'e', 'é', '\u{ffee}', '\u{1f600}'),
  fc.integer({ min: 0, max: 12 }),
  fc.integer({ min: 20, max: 30 }),
  fc.integer({ min: 0, max: 3 }),
  fc.constantFrom(...actions),
  fc.array(fc.constantFrom('A', 'B', 'AB'), { maxLength: 2 }),
  fc.integer({ min: 0, max: 8 * 100 + 5 }),
  fc.array(fc.constantFrom('A', 'B', 'AB'), { maxLength: 2 }),
  fc.constantFrom([], ['android', '4.1', '', ''], ['android', '4.1', '9', 'Pixel']),
  fc.array(fc.constantFrom('u1', 'u2', 'u3'), { maxLength: 2 }),
  fc.tuple(
    fc.integer({ min: 0, max: 3 }),
    fc.constantFrom('203.0.113.0/24', '203.0.114.0/24'),
    fc.constantFrom('DE', 'GB'),
    fc.constantFrom(64_500, 64_501),
    fc.constantFrom('', 'Example'),
    fc.subarray(['vpn', 'hosting']),
  ),
)
const none: LatestConnection = [0, '', '', 0, '', []]
const anyRows = fc.array(anyRow, { maxLength: 40 })

describe('the rows of a session', () => {
  it('are the same in any order, once or repeated', () => {
    const shuffled = anyRows.chain((rows) =>
      fc.tuple(
        fc.constant(rows),
        fc.shuffledSubarray([...rows, ...rows], { minLength: rows.length * 2 }),
      ),
    )
    fc.assert(
      fc.property(shuffled, ([rows, again]) => {
        expect(joinSessions(again)).toEqual(joinSessions(rows))
        expect(joinUsers(again)).toEqual(joinUsers(rows))
      }),
      { seed },
    )
  })

  it('give it its earliest start, its latest event and the verdict of its highest score', () => {
    const both = ['EMULATOR', 'ROOTED']
    const client = ['android', '4.1', '9.2', 'Pixel 8']
    const lesser = ['android', '4.1', '', '']
    const early: LatestConnection = [6, '203.0.114.0/24', 'GB', 64_500, 'Example', ['vpn']]
    const late: LatestConnection = [8, '203.0.113.0/24', '', 0, '', []]
    const rows: SessionRow[] = [
      ['s', 5, 6, 40, 'REVIEW', ['ROOTED'], toRank(90, 'BLOCK', false), ['ROOTED'], [], [], early],
      [
        's',
        7,
        9,
        80,
        'BLOCK',
        ['EMULATOR'],
        toRank(90, 'BLOCK', true),
        ['A'],
        client,
        ['u2'],
        none,
      ],
      ['s', 4, 8, 80, 'BLOCK', both, toRank(80, 'BLOCK', true), ['Z'], lesser, ['u1', 'u2'], late],
    ]
    expect(joinSessions(rows)).toEqual([
      {
        sessionId: 's',
        startedAtMs: 4,
        lastSeenAtMs: 9,
        raspScore: 80,
        raspAction: 'BLOCK',
        flags: ['EMULATOR', 'ROOTED'],
        riskScore: 90,
        action: 'BLOCK',
        riskFlags: ['A'],
        platform: 'android',
        sdkVersion: '4.1',
        appVersion: '9.2',
        deviceModel: 'Pixel 8',
        connection: {
          network: '203.0.113.0/24',
          country: null,
          asn: null,
          organization: null,
          kinds: [],
        },
      },
    ])
    expect(joinUsers(rows)).toEqual(['u1', 'u2'])
  })

  it('are sorted by start and then by the bytes of the id, both descending', () => {
    const ids = ['z', '\u{1f600}', '\u{ffee}', 'é']
    const rows = ids.map((id): SessionRow => [id, 1, 2, 0, 'ALLOW', [], 0, [], [], [], none])
    const shown = joinSessions([...rows, ['a', 2, 2, 0, 'ALLOW', [], 0, [], [], [], none]])
    expect(shown.map((one) => one.sessionId)).toEqual(['a', '\u{1f600}', '\u{ffee}', 'é', 'z'])
  })
})

describe('a page of the sessions with the newest rows', () => {
  it('is that of all rows, or reports that it needs more', () => {
    const anyQuestion = fc.record({
      rows: anyRows,
      limit: fc.integer({ min: 1, max: 5 }),
      newest: fc.integer({ min: 1, max: 45 }),
      before: fc.option(
        fc.record({ startedAtMs: fc.integer({ min: 0, max: 13 }), sessionId: fc.constant('c') }),
      ),
    })
    let known = 0
    fc.assert(
      fc.property(anyQuestion, ({ rows, limit, newest, before }) => {
        const older = joinSessions(rows).filter(
          (one) => before === null || compareRecent(before, one) < 0,
        )
        const all = { sessions: older.slice(0, limit), more: older.length > limit }
        expect(toRecentPage(rows, { limit, before, newest: null })).toEqual(all)
        const page = toRecentPage(takeNewest(rows, newest, before), { limit, before, newest })
        if (page !== null) expect(page).toEqual(all)
        if (newest > rows.length) expect(page).not.toBeNull()
        if (page !== null) known++
      }),
      { seed, numRuns: 2_000 },
    )
    expect(known).toBeGreaterThan(500)
  })
})

/** As the engine picks them: in any order among ties at the end. */
function takeNewest(
  rows: readonly SessionRow[],
  newest: number,
  before: { startedAtMs: number } | null,
): SessionRow[] {
  const counted = rows.filter((row) => before === null || row[1] <= before.startedAtMs)
  const picked = counted.sort((a, b) => b[1] - a[1]).slice(0, newest)
  const ids = new Set(picked.map(([id]) => id))
  return rows.filter(([id]) => ids.has(id))
}
