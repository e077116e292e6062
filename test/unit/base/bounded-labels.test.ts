// Labels from client input: bounded series.
import { expect, test } from 'vitest'
import { createBoundedLabel } from '#shared/core/base/bounded-labels.ts'

test('a label is the value itself up to the maximum of different values, then `other`', () => {
  const label = createBoundedLabel(3)
  expect(['a', 'b', 'a', 'c'].map(label)).toEqual(['a', 'b', 'a', 'c'])
  expect(['d', '', 'e'].map(label)).toEqual(['other', 'other', 'other'])
  expect(['a', 'b', 'c', 'd'].map(label)).toEqual(['a', 'b', 'c', 'other'])
})

test('a value never changes its label, and the default maximum is a hundred', () => {
  const label = createBoundedLabel()
  const values = Array.from({ length: 5_000 }, (_, index) => `${index}.0.0`)
  const labels = values.map(label)
  expect(new Set(labels).size).toBe(101)
  expect(values.map(label)).toEqual(labels)
})

test('each use has its own values', () => {
  const [one, other] = [createBoundedLabel(1), createBoundedLabel(1)]
  expect([one('a'), other('b'), one('b'), other('a')]).toEqual(['a', 'b', 'other', 'other'])
})
