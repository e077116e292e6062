// What a scorer remembers of links, and forgets when an erasure has ended.
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { DecidedLink } from '#shared/core/identity/decide-link.ts'
import { createPhones } from '#shared/io/identity/phones.ts'
import { emptyPostgres } from '../../support/identity/walk-phones.ts'

const install = { tenantId: 'acme', deviceId: 'a' }
const seen = { ...install, atMs: 2_000, traits: null }
const link: DecidedLink = {
  ...install,
  phoneId: 'phn_a',
  kind: 'first',
  possible: null,
  confidence: 1,
  identifiersShared: false,
  doubtful: [],
  fixed: '[]',
  isCompared: true,
  installs: [],
  parametersVersion: 0,
  streamOffset: 1,
  receivedAtMs: 1_000,
  evidence: [],
}
const { fixed } = link
const row = ['acme', 'a', 'phn_a', 'first', '', 0, 1, false, [], fixed, true, [], 0, 1, 1_000]

/** A ClickHouse that has the link until it is erased, and what was asked of it. */
function createFake() {
  const asked: string[] = []
  let isErased = false
  /** Reads wait for it. */
  let gate = Promise.resolve()
  const clickhouse = {
    shards: [],
    query: async ({ query }: { query: string }) => {
      asked.push(/from (\w+)/.exec(query)![1]!)
      const rows = query.includes('from phone_links') && !isErased ? [row] : []
      await gate
      return { json: async () => rows }
    },
    exec: async ({ values }: { values: Readable }) => {
      values.resume()
      return { stream: Readable.from([]) }
    },
  }
  return {
    asked,
    phones: createPhones(clickhouse as never, emptyPostgres),
    erase: () => {
      isErased = true
    },
    waitFor: (until: Promise<void>) => {
      gate = until
    },
  }
}

describe('a link', () => {
  it('is read once, and again after an erasure', async () => {
    const { phones, asked, erase } = createFake()
    for (let n = 0; n < 3; n++) {
      expect((await phones.findFacts([seen]))[0]).toMatchObject({ link: { phoneId: 'phn_a' } })
    }
    expect(asked).toEqual(['phone_links'])
    erase()
    phones.forget()
    expect(await phones.findFacts([seen])).toEqual([null])
    expect(asked).toEqual(['phone_links', 'phone_links', 'identity_keys'])
  })

  it('that was being read when it was erased is not remembered', async () => {
    const { phones, erase, waitFor } = createFake()
    const { promise, resolve } = Promise.withResolvers<void>()
    waitFor(promise)
    const reading = phones.findFacts([seen])
    erase()
    phones.forget()
    resolve()
    await reading
    expect(await phones.findFacts([seen])).toEqual([null])
  })

  it('that was being stored when it was erased is not remembered', async () => {
    const { phones, erase } = createFake()
    const storing = phones.insertLinks([link])
    erase()
    phones.forget()
    await storing
    expect(await phones.findFacts([seen])).toEqual([null])
  })

  it('is remembered once it is stored', async () => {
    const { phones, asked } = createFake()
    await phones.insertLinks([link])
    expect(await phones.findFacts([seen])).toMatchObject([{ link: { phoneId: 'phn_a' } }])
    expect(asked).toEqual([])
  })
})
