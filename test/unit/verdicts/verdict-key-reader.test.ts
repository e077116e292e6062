/** What an api process asks Postgres for, of any number of requests for the verdict keys. */
import { describe, expect, it } from 'vitest'
import {
  verdictKeyCallsBurst,
  verdictKeyCallsPerSecond,
} from '#shared/core/base/limits/rest-api.ts'
import type { VerdictKeySet } from '#shared/core/verdicts/verdict-keys.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { makeVerdictKey } from '#shared/io/verdicts/make-verdict-key.ts'
import { createAddressLimit } from '../../../services/api/http/address-limit.ts'
import { createVerdictKeyReader } from '../../../services/api/http/verdict-key-reader.ts'

function makeReader() {
  const state = {
    atMs: 0,
    reads: 0,
    fails: false,
    hangs: false,
    failures: 0,
    pauses: 0,
    resume: () => {},
    paused: null as Promise<void> | null,
    keys: { keys: [makeVerdictKey().jwk] } as VerdictKeySet,
  }
  const { promise, resolve: isPausing } = Promise.withResolvers<void>()
  state.paused = promise
  const read = createVerdictKeyReader({
    readKeys: async () => {
      state.reads++
      if (state.fails) throw new Error('Postgres is away')
      if (state.hangs) return new Promise<never>(() => {})
      return state.keys
    },
    onFailed: () => state.failures++,
    pause: () => {
      state.pauses++
      isPausing()
      return new Promise<void>((resolve) => {
        state.resume = resolve
      })
    },
    nowMs: () => state.atMs,
    monotonicMs: () => state.atMs,
  })
  return { state, read }
}

describe('the keys are read', () => {
  it('once a second, for any number of requests', async () => {
    const { state, read } = makeReader()
    await Promise.all(Array.from({ length: 100 }, read))
    expect(state.reads).toBe(1)
    state.atMs = 999
    await read()
    expect(state.reads).toBe(1)
    state.atMs = 1_000
    await read()
    expect(state.reads).toBe(2)
  })

  it('for each request while there is none: the first one may sign at once', async () => {
    const { state, read } = makeReader()
    state.keys = { keys: [] }
    expect(await read()).toEqual({ keys: [] })
    state.keys = { keys: [makeVerdictKey().jwk] }
    expect(await read()).toBe(state.keys)
  })

  it('from memory for five minutes while Postgres is away, and then no more', async () => {
    const { state, read } = makeReader()
    const { keys } = state
    await read()
    state.fails = true
    state.atMs = 5 * 60_000 - 1
    expect(await read()).toBe(keys)
    state.atMs++
    await expect(read()).rejects.toThrow('Postgres is away')
    state.fails = false
    state.atMs += 1_000
    expect(await read()).toBe(keys)
  })

  it('once a second while Postgres fails, and each failure is told once', async () => {
    const { state, read } = makeReader()
    await read()
    state.fails = true
    for (state.atMs = 1_000; state.atMs < 11_000; state.atMs += 100) {
      await Promise.all(Array.from({ length: 10 }, read))
    }
    expect([state.reads, state.failures]).toEqual([11, 10])
  })

  it('from memory after half a second while Postgres hangs, which no request waits for twice', async () => {
    const { state, read } = makeReader()
    await read()
    state.hangs = true
    state.atMs = 1_000
    const first = read()
    await state.paused
    state.atMs = 1_500
    state.resume()
    expect(await first).toBe(state.keys)
    state.atMs = 60_000
    expect(await Promise.all(Array.from({ length: 10 }, read))).toHaveLength(10)
    expect([state.reads, state.pauses]).toEqual([2, 1])
  })
})

describe('an address', () => {
  it('has its burst and its rate, and no other has to pay for it', () => {
    let atMs = 0
    const take = createAddressLimit(() => atMs, createMetrics('test'))
    const countTaken = (address: string) => {
      let taken = 0
      try {
        for (; taken < 10_000; taken++) take(address)
      } catch {
        // It is over its rate.
      }
      return taken
    }
    expect(countTaken('192.0.2.1')).toBe(verdictKeyCallsBurst)
    expect(countTaken('192.0.2.1')).toBe(0)
    expect(countTaken('192.0.2.2')).toBe(verdictKeyCallsBurst)
    atMs = 1_000
    expect(countTaken('192.0.2.1')).toBe(verdictKeyCallsPerSecond)
    // Of IPv6 a whole network of /64 is one source.
    expect(countTaken('2001:db8::1')).toBe(verdictKeyCallsBurst)
    expect(countTaken('2001:db8::2')).toBe(0)
  })
})
