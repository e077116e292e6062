/** What a client says that it computed is read in whatever form it comes. */
import { expect, it } from 'vitest'
import { clientFlagsMax, metaCharactersMax } from '#shared/core/base/limits/telemetry.ts'
import { readClientVerdict } from '#shared/core/telemetry/submission.ts'

const nothing = { rasp_score: -1, rasp_action: '', rasp_flags: [] }

it.each([
  [{}, {}],
  [{ rasp_score: null, rasp_action: null, rasp_flags: null }, {}],
  [{ rasp_score: {}, rasp_action: [], rasp_flags: 7 }, {}],
  [{ rasp_score: '' }, {}],
  [{ rasp_score: 'high' }, {}],
  [{ rasp_score: '12' }, { rasp_score: 12 }],
  [
    { rasp_score: 12.5, rasp_action: 'REVIEW' },
    { rasp_score: 12.5, rasp_action: 'REVIEW' },
  ],
  [{ rasp_score: Number.POSITIVE_INFINITY }, { rasp_score: Number.MAX_VALUE }],
  [{ rasp_score: '-1e400' }, { rasp_score: -Number.MAX_VALUE }],
  [{ rasp_flags: 'ROOTED' }, { rasp_flags: ['ROOTED'] }],
  [{ rasp_flags: ['A', 1, null, 'B'] }, { rasp_flags: ['A', 'B'] }],
])('%j', (scorer, read) => {
  expect(readClientVerdict(scorer)).toEqual({ ...nothing, ...read })
})

it('within the bounds of what is stored', () => {
  const long = 'x'.repeat(10_000)
  const { rasp_action: action, rasp_flags: flags } = readClientVerdict({
    rasp_action: long,
    rasp_flags: Array.from({ length: 10_000 }, () => long),
  })
  expect([action.length, flags.length, flags[0]!.length]).toEqual([
    metaCharactersMax,
    clientFlagsMax,
    metaCharactersMax,
  ])
})
