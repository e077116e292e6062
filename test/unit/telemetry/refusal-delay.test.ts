/** Answers to tenants over a limit: held for a moment, so many at once. */
import { expect, it } from 'vitest'
import { createRefusalDelay } from '../../../services/ingest/refusal-delay.ts'

it('holds so many answers at once, and none in a process that stops', () => {
  const later: (() => void)[] = []
  const answered: number[] = []
  let stopping = false
  const { hold, held } = createRefusalDelay({
    later: (run, ms) => {
      expect(ms).toBe(1_000)
      later.push(run)
    },
    stopping: () => stopping,
    holdMs: 1_000,
    heldMax: 2,
  })
  for (const n of [1, 2, 3]) hold(() => answered.push(n))
  expect([answered, held()]).toEqual([[3], 2])
  later[0]!()
  hold(() => answered.push(4))
  expect([answered, held()]).toEqual([[3, 1], 2])
  stopping = true
  later[1]!()
  hold(() => answered.push(5))
  expect([answered, held()]).toEqual([[3, 1, 2, 5], 1])
})
