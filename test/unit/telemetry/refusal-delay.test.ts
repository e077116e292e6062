/** Answers to tenants over a limit are delayed by a moment, a bounded number at once. */
import { expect, it } from 'vitest'
import { createRefusalDelay } from '../../../services/ingest/refusal-delay.ts'

it('a bounded number of answers is delayed, and none in a process that stops', () => {
  const later: (() => void)[] = []
  const answered: number[] = []
  let stopping = false
  const { delay, delayed } = createRefusalDelay({
    later: (run, ms) => {
      expect(ms).toBe(1_000)
      later.push(run)
    },
    stopping: () => stopping,
    delayMs: 1_000,
    delayedMax: 2,
  })
  for (const n of [1, 2, 3]) delay(() => answered.push(n))
  expect([answered, delayed()]).toEqual([[3], 2])
  later[0]!()
  delay(() => answered.push(4))
  expect([answered, delayed()]).toEqual([[3, 1], 2])
  stopping = true
  later[1]!()
  delay(() => answered.push(5))
  expect([answered, delayed()]).toEqual([[3, 1, 2, 5], 1])
})
