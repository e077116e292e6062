// What a scorer writes of the keys of installs: each key once, for as long as it remembers.
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { rememberedKeysOfInstallMax } from '#shared/core/base/limits/entities.ts'
import { createIdentityKeyWriter } from '#shared/io/identity/identity-key-store.ts'
import { createWrittenKeys } from '#shared/io/identity/written-keys.ts'
import { toSentDevice } from '../../support/identity/sent-devices.ts'
import { makeEvents } from '../../support/telemetry/accepted-events.ts'

const hourMs = 3_600_000

/** Tells how many rows a scorer writes of events: [network, hour, stream offset], of one install. */
function createScorer() {
  const state = { fails: false, inserts: 0 }
  const clickhouse = {
    shards: [],
    exec: async ({ values }: { values: Readable }) => {
      state.inserts++
      values.resume()
      if (state.fails) throw new Error('it fails')
      return { stream: Readable.from([]) }
    },
  }
  const writer = createIdentityKeyWriter(clickhouse as never)
  const write = (...visits: readonly [network: number, hours: number, streamOffset: number][]) =>
    writer.insertIdentityKeys(
      visits.map(([network, hours, streamOffset]) => ({
        ...makeEvents([
          {
            userId: 'ada',
            receivedAtMs: hours * hourMs,
            connection: { network: `81.2.${network}.0/24`, address_hash: 'a'.repeat(22) },
            more: { device: toSentDevice(1) },
          },
        ])[0]!,
        streamOffset,
      })),
    )
  return { state, write, forget: writer.forget }
}

/** The identifier, the user, the hardware, the setup and the install itself. */
const ownKeys = 5

describe('of the keys of an install', () => {
  it('only a new network is written, whether it comes alone or with others', async () => {
    const { write, state } = createScorer()
    expect(await write([1, 0, 1])).toBe(ownKeys + 1)
    expect(await write([2, 0, 2], [3, 0, 3], [2, 0, 4], [1, 0, 5])).toBe(2)
    expect(await write([1, 0, 6], [2, 0, 7], [3, 0, 8])).toBe(0)
    expect(state.inserts).toBe(2)
    const other = createScorer()
    expect(await other.write([1, 0, 1], [2, 0, 2])).toBe(ownKeys + 2)
  })

  it('those of an earlier event than was written are written again, with its place', async () => {
    const { write } = createScorer()
    await write([1, 0, 5], [2, 0, 6])
    expect(await write([2, 0, 3])).toBe(ownKeys + 1)
    // The first network at its earlier place alone.
    expect(await write([1, 0, 4])).toBe(1)
    expect(await write([1, 0, 4], [2, 0, 3])).toBe(0)
  })

  it('each is written again twelve hours after it was, whatever else was told since', async () => {
    const { write } = createScorer()
    await write([1, 0, 1])
    expect(await write([2, 5, 2])).toBe(1)
    expect(await write([2, 11, 3])).toBe(0)
    // What both have in common, but not the second network.
    expect(await write([2, 12, 4])).toBe(ownKeys)
    expect(await write([1, 12.5, 5])).toBe(1)
    expect(await write([2, 16, 6])).toBe(0)
    expect(await write([2, 17, 7])).toBe(1)
  })

  it('what failed, or was erased meanwhile, is written again', async () => {
    const { write, state, forget } = createScorer()
    state.fails = true
    await expect(write([1, 0, 1])).rejects.toThrow('it fails')
    state.fails = false
    const writing = write([1, 0, 1])
    forget()
    expect([await writing, await write([1, 0, 1])]).toEqual([ownKeys + 1, ownKeys + 1])
    expect(await write([2, 0, 2])).toBe(1)
    forget()
    expect(await write([2, 0, 2])).toBe(ownKeys + 1)
  })
})

it('of a made-up install with very many keys the latest are remembered', () => {
  const written = createWrittenKeys()
  const hashOf = (n: number) => {
    const hash = Buffer.alloc(8)
    hash.writeUInt32LE(n, 4)
    return hash
  }
  const keys = Array.from({ length: rememberedKeysOfInstallMax + 10 }, (_, n) => n)
  for (const n of keys) written.remember('a', [{ keyHash: hashOf(n), streamOffset: n, seenMs: n }])
  const known = keys.filter((n) => written.find('a', hashOf(n)) !== undefined)
  expect(known).toEqual(keys.slice(10))
  written.remember('a', [{ keyHash: hashOf(20), streamOffset: 7, seenMs: 9 }])
  expect(written.find('a', hashOf(20))).toEqual({ streamOffset: 7, seenMs: 20 })
  expect(written.find('b', hashOf(20))).toBeUndefined()
})
