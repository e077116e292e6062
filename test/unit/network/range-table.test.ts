// A table of networks gives an address the value of the longest network that contains it: the same
// as asking every network one after the other.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { listNetworksMax } from '#shared/core/base/limits/lists.ts'
import {
  type AddressWords,
  formatAddress,
  type Network,
  parseAddress,
  parseNetwork,
} from '#shared/core/network/address.ts'
import { parseNetworkList } from '#shared/core/network/network-list.ts'
import { buildTable, createRangeWriter, findValue } from '#shared/core/network/range-table.ts'

/** Words from a small set, so that networks lie within one another. */
const word = fc.oneof(
  fc.constantFrom(0, 1, 2, 0x8000_0000, 0x2001_0db8, 0xffff_ffff, 0xffff_0000, 0x7fff_ffff),
  fc.integer({ min: 0, max: 0xffff_ffff }),
)
const anyWords = fc.oneof(fc.tuple(word), fc.tuple(word, word, word, word))

function toNetwork(words: AddressWords, length: number): Network {
  const kept = words.map((own, at) => {
    const bits = Math.min(32, Math.max(0, length - 32 * at))
    return bits === 0 ? 0 : (own & (-1 << (32 - bits))) >>> 0
  })
  return { words: kept, length }
}
const anyNetwork = anyWords.chain((words) =>
  fc.integer({ min: 0, max: 32 * words.length }).map((length) => toNetwork(words, length)),
)

const contains = ({ words, length }: Network, address: AddressWords): boolean =>
  words.length === address.length &&
  toNetwork(address, length).words.every((own, at) => own === words[at])

/** The first and the last address of a network, and their neighbours. */
function edgesOf({ words, length }: Network): AddressWords[] {
  const toWords = (value: bigint) => {
    const bits = BigInt(32 * words.length)
    const inside = ((value % (1n << bits)) + (1n << bits)) % (1n << bits)
    return words.map((_, at) => Number((inside >> (bits - 32n * BigInt(at + 1))) & 0xffff_ffffn))
  }
  const first = words.reduce((sum, own) => (sum << 32n) | BigInt(own), 0n)
  const last = first + (1n << BigInt(32 * words.length - length)) - 1n
  return [first - 1n, first, last, last + 1n].map(toWords)
}

describe('a table', () => {
  it('finds the longest network, at every edge of all of them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(anyNetwork, fc.integer({ min: 1, max: 70_000 })), { maxLength: 24 }),
        fc.array(anyWords, { maxLength: 4 }),
        (pairs, more) => {
          const networks = pairs.map(([network, value]) => ({ ...network, value }))
          const table = buildTable(networks)
          for (const address of [...networks.flatMap(edgesOf), ...more]) {
            const longest = networks.reduce(
              (best, own) => (contains(own, address) && own.length >= best.length ? own : best),
              { length: -1, value: 0 },
            )
            expect([formatAddress(address), findValue(table, address)]).toEqual([
              formatAddress(address),
              longest.value,
            ])
          }
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it('finds every network of a large list, by its index', () => {
    const lines = Array.from({ length: 20_000 }, (_, at) =>
      at % 4 === 3
        ? `2a00:${(at >> 8).toString(16)}:${(at & 255).toString(16)}::/48`
        : `${1 + (at % 200)}.${at >> 8}.${at & 255}.16/28`,
    )
    const list = parseNetworkList(lines.join('\n'))
    if ('fault' in list) throw new Error(list.fault)
    expect(list.networks).toBe(lines.length)
    expect(list.table.v4.index.length).toBe(65_537)
    for (const line of lines) {
      const { words, length } = parseNetwork(line)!
      expect([line, findValue(list.table, words)]).toEqual([line, length + 1])
      const before = edgesOf({ words, length })[0]!
      expect([line, findValue(list.table, before)]).toEqual([line, 0])
    }
  })

  it('stores neighbours of one value as one range, and leaves out words that are 0', () => {
    const table = buildTable(
      ['2a00::/32', '2a00:1::/32', '2a00:2::/31'].map((text) => ({
        ...parseNetwork(text)!,
        value: 7,
      })),
    )
    expect([...table.v6.starts[0]!]).toEqual([0x2a00_0000, 0x2a00_0004])
    expect(table.v6.starts).toHaveLength(1)
    expect([...table.v6.values]).toEqual([7, 0])
    expect(table.v6.values).toBeInstanceOf(Uint8Array)
    expect(findValue(table, parseAddress('2a00:3:ffff::1')!)).toBe(7)
    expect(findValue(table, parseAddress('2a00:4::')!)).toBe(0)
  })

  it('keeps ranges in order however many there are', () => {
    const writer = createRangeWriter(1)
    for (let start = 0; start < 10_000; start++) writer.append([start * 3], (start % 5) + 300)
    const ranges = writer.finish()
    expect(ranges.values).toBeInstanceOf(Uint16Array)
    for (let start = 0; start < 10_000; start++) {
      const table = { v4: ranges, v6: createRangeWriter(4).finish() }
      expect(findValue(table, [start * 3 + 2])).toBe((start % 5) + 300)
    }
  })
})

describe('a list', () => {
  it('is one network a line, with comments', () => {
    const text = '# Tor\r\n203.0.113.9\r\n\n  198.51.100.0/24 # a site\n2001:db8::/32'
    const list = parseNetworkList(text)
    expect(list).toMatchObject({ networks: 3 })
    if ('fault' in list) throw new Error(list.fault)
    expect(findValue(list.table, parseAddress('203.0.113.9')!)).toBe(33)
    expect(findValue(list.table, parseAddress('198.51.100.200')!)).toBe(25)
    expect(findValue(list.table, parseAddress('2001:db8:ffff::1')!)).toBe(33)
    expect(findValue(list.table, parseAddress('203.0.113.8')!)).toBe(0)
  })

  it.each([
    ['203.0.113.9\nnonsense\n', { fault: 'not_a_network', line: 2 }],
    ['203.0.113.9\n203.0.113.0/', { fault: 'not_a_network', line: 2 }],
    ['<html>', { fault: 'not_a_network', line: 1 }],
    ['0.0.0.0/0', { fault: 'too_wide', line: 1 }],
    ['\n\n128.0.0.0/1', { fault: 'too_wide', line: 3 }],
    ['::/0', { fault: 'too_wide', line: 1 }],
    ['2000::/3', { fault: 'too_wide', line: 1 }],
    ['', { fault: 'empty' }],
    ['# nothing yet\n', { fault: 'empty' }],
  ])('%j is refused', (text, fault) => {
    expect(parseNetworkList(text)).toEqual(fault)
  })

  it('has a bound of networks', () => {
    const lines = ['11.0.0.1', '11.0.0.2', '# three', '11.0.0.3', '11.0.0.4']
    expect(parseNetworkList(lines.join('\n'), 4)).toMatchObject({ networks: 4 })
    expect(parseNetworkList(lines.join('\n'), 3)).toEqual({ fault: 'too_many_networks', line: 5 })
    expect(listNetworksMax).toBe(2_000_000)
  })
})
