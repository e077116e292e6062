// Messages that failed by a defect: how many are remembered, and for how long.
import { expect, it } from 'vitest'
import { createSuspects } from '#shared/io/nats/consume/suspects.ts'

const at = (streamOffset: number) => ({ streamOffset })

it('a message is a suspect from its first failure until it is acknowledged', () => {
  const suspects = createSuspects()
  expect(suspects.has(at(1))).toBe(false)
  expect(suspects.note(at(1), 10)).toBeUndefined()
  expect(suspects.note(at(1), 20)).toBe(10)
  expect(suspects.has(at(1))).toBe(true)
  suspects.forget(at(1))
  expect(suspects.has(at(1))).toBe(false)
  expect(suspects.note(at(1), 30)).toBeUndefined()
})

it('suspects that other processes handled do not add up: the oldest are forgotten', () => {
  const suspects = createSuspects(100)
  for (let offset = 0; offset < 1_000; offset++) suspects.note(at(offset), 0)
  const kept = Array.from({ length: 1_000 }, (_, offset) => suspects.has(at(offset)))
  expect(kept.filter(Boolean)).toHaveLength(100)
  expect(kept.lastIndexOf(false)).toBe(899)
})
