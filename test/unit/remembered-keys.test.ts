import { describe, expect, it } from 'vitest'
import { createRememberedKeys } from '#shared/core/remembered-keys.ts'

describe('remembered keys', () => {
  it('knows what was added until its time is over, and longer when it is added again', () => {
    let nowMs = 0
    const keys = createRememberedKeys({ max: 10, forMs: 100 }, () => nowMs)
    expect(keys.has('a')).toBe(false)
    expect(keys.isEmpty()).toBe(true)
    keys.add('a')
    expect(keys.isEmpty()).toBe(false)
    nowMs = 99
    expect(keys.has('a')).toBe(true)
    keys.add('a')
    nowMs = 198
    expect(keys.has('a')).toBe(true)
    nowMs = 199
    expect(keys.has('a')).toBe(false)
  })

  it('holds so many at once, and makes room by forgetting all', () => {
    const keys = createRememberedKeys({ max: 2, forMs: 100 }, () => 0)
    for (const key of ['a', 'b', 'b']) keys.add(key)
    expect(['a', 'b'].map(keys.has)).toEqual([true, true])
    keys.add('c')
    expect(['a', 'b', 'c'].map(keys.has)).toEqual([false, false, true])
  })
})
