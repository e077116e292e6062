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
    keys: { keys: [makeVerdictKey().jwk] } as VerdictKeySet,
  }
  const read = createVerdictKeyReader({
    readKeys: async () => {
      state.reads++
      if (state.fails) throw new Error('Postgres is away')
      return state.keys
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
    state.atMs = 5 * 60_000
    expect(await read()).toBe(keys)
    state.atMs++
    await expect(read()).rejects.toThrow('Postgres is away')
    state.fails = false
    expect(await read()).toBe(keys)
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
