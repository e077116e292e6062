/**
 * Values of address ranges in sorted typed arrays: the largest start that is not above an address
 * has its value. A range costs 5 to 8 bytes for IPv4 and 9 to 20 for IPv6, no object and no work of
 * the garbage collector, and the arrays move between threads without a copy.
 */
import type { AddressWords, Network } from './address.ts'

export type ValueArray = Uint8Array | Uint16Array | Uint32Array

/** Ranges of one IP version, ascending; value 0 stands for none. */
export type Ranges = {
  /** Words of the starts, the highest first. Those that are 0 in all starts are left out. */
  starts: readonly Uint32Array[]
  values: ValueArray
  /** For the upper 16 bits of an address: how many starts are below them. Empty in small tables. */
  index: Uint32Array
}

export type RangeTable = { v4: Ranges; v6: Ranges }

/** The value of an address; 0 for none. */
export function findValue({ v4, v6 }: RangeTable, words: AddressWords): number {
  return words.length === 1 ? findInRanges4(v4, words[0]!) : findInRanges6(v6, words)
}

function findInRanges4({ starts, values, index }: Ranges, word: number): number {
  const [column] = starts as readonly [Uint32Array]
  const bucket = word >>> 16
  let low = index.length === 0 ? 0 : index[bucket]!
  let high = index.length === 0 ? values.length : index[bucket + 1]!
  while (low < high) {
    const middle = (low + high) >>> 1
    if (column[middle]! <= word) low = middle + 1
    else high = middle
  }
  return low === 0 ? 0 : values[low - 1]!
}

function findInRanges6({ starts, values, index }: Ranges, words: AddressWords): number {
  const bucket = words[0]! >>> 16
  let low = index.length === 0 ? 0 : index[bucket]!
  let high = index.length === 0 ? values.length : index[bucket + 1]!
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isAbove(starts, middle, words)) high = middle
    else low = middle + 1
  }
  return low === 0 ? 0 : values[low - 1]!
}

function isAbove(starts: readonly Uint32Array[], at: number, words: AddressWords): boolean {
  for (let word = 0; word < starts.length; word++) {
    const start = starts[word]![at]!
    const wanted = words[word]!
    if (start !== wanted) return start > wanted
  }
  return false
}

function toTwice(column: Uint32Array): Uint32Array<ArrayBuffer> {
  const grown = new Uint32Array(column.length * 2)
  grown.set(column)
  return grown
}

export type RangeWriter = {
  /** Adds a range from this address on; a start that is not above the last one replaces it. */
  append: (start: AddressWords, value: number) => void
  /** Ranges so far. */
  size: () => number
  finish: () => Ranges
}

/** Below this, an index would be larger than the table. */
const indexedFrom = 4_096
const buckets = 65_536

/**
 * Writes ranges in ascending order. Neighbours with one value become one range.
 * @param wordCount 1 for IPv4, 4 for IPv6
 */
export function createRangeWriter(wordCount: 1 | 4): RangeWriter {
  let starts = Array.from({ length: wordCount }, () => new Uint32Array(64))
  let values: Uint32Array = new Uint32Array(64)
  let size = 0
  let highest = 0
  const used = new Array<boolean>(wordCount).fill(false)

  function grow(): void {
    starts = starts.map(toTwice)
    values = toTwice(values)
  }

  const isLastStart = (start: AddressWords) =>
    size > 0 && starts.every((column, word) => column[size - 1] === start[word])

  return {
    append: (start, value) => {
      if (isLastStart(start)) size--
      if (size === 0 ? value === 0 : values[size - 1] === value) return
      if (size === values.length) grow()
      for (let word = 0; word < wordCount; word++) {
        starts[word]![size] = start[word]!
        if (start[word] !== 0) used[word] = true
      }
      values[size] = value
      if (value > highest) highest = value
      size++
    },
    size: () => size,
    finish: () => {
      const kept = Math.max(1, used.lastIndexOf(true) + 1)
      const columns = starts.slice(0, kept).map((column) => column.slice(0, size))
      return {
        starts: columns,
        values: toNarrow(values.subarray(0, size), highest),
        index: toIndex(columns[0]!),
      }
    },
  }
}

function toNarrow(values: Uint32Array, highest: number): ValueArray {
  if (highest < 2 ** 8) return Uint8Array.from(values)
  return highest < 2 ** 16 ? Uint16Array.from(values) : values.slice()
}

function toIndex(column: Uint32Array): Uint32Array {
  if (column.length < indexedFrom) return new Uint32Array(0)
  const index = new Uint32Array(buckets + 1)
  for (const start of column) index[(start >>> 16) + 1]!++
  for (let bucket = 1; bucket <= buckets; bucket++) index[bucket]! += index[bucket - 1]!
  return index
}

/** Networks with values, in typed arrays until they are a table. */
export type NetworkCollector = {
  /** Values are at least 1, or 0 for a part of a network that has none. */
  add: (network: Network, value: number) => void
  /** Networks so far. */
  size: () => number
  /** The table, where an address has the value of the longest network that contains it. */
  finish: () => RangeTable
}

export function createNetworkCollector(): NetworkCollector {
  const v4 = createColumns(1)
  const v6 = createColumns(4)
  return {
    add: ({ words, length }, value) => (words.length === 1 ? v4 : v6).add(words, length, value),
    size: () => v4.size() + v6.size(),
    finish: () => ({ v4: v4.finish(), v6: v6.finish() }),
  }
}

/** The table of a few networks. */
export function buildTable(networks: readonly (Network & { value: number })[]): RangeTable {
  const collector = createNetworkCollector()
  for (const network of networks) collector.add(network, network.value)
  return collector.finish()
}

/** Columns of networks of one IP version; of equal ones the last counts. */
function createColumns(wordCount: 1 | 4) {
  let words = Array.from({ length: wordCount }, () => new Uint32Array(64))
  let lengths: Uint32Array = new Uint32Array(64)
  let values: Uint32Array = new Uint32Array(64)
  let size = 0

  const compareStarts = (a: number, b: number): number => {
    for (const column of words) {
      const difference = column[a]! - column[b]!
      if (difference !== 0) return difference
    }
    return 0
  }
  const startOf = (at: number) => words.map((column) => column[at]!)

  return {
    size: () => size,
    add: (start: AddressWords, length: number, value: number) => {
      if (size === values.length) {
        words = words.map(toTwice)
        lengths = toTwice(lengths)
        values = toTwice(values)
      }
      for (let word = 0; word < wordCount; word++) words[word]![size] = start[word]!
      lengths[size] = length
      values[size] = value
      size++
    },
    finish: (): Ranges => {
      const order = Uint32Array.from({ length: size }, (_, at) => at)
      order.sort((a, b) => compareStarts(a, b) || lengths[a]! - lengths[b]! || a - b)
      const writer = createRangeWriter(wordCount)
      /** The networks that contain the present address, the widest first. */
      const open: { next: AddressWords | null; value: number }[] = []
      /** Ends those that end before an address; null is behind the last address. */
      const closeBefore = (start: AddressWords | null) => {
        for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
          if (last.next === null || (start !== null && isAfter(last.next, start))) return
          open.pop()
          writer.append(last.next, open.at(-1)?.value ?? 0)
        }
      }
      for (const at of order) {
        const start = startOf(at)
        closeBefore(start)
        open.push({ next: toNext(start, lengths[at]!), value: values[at]! })
        writer.append(start, values[at]!)
      }
      closeBefore(null)
      return writer.finish()
    },
  }
}

function isAfter(a: AddressWords, b: AddressWords): boolean {
  const at = a.findIndex((word, index) => word !== b[index])
  return at !== -1 && a[at]! > b[at]!
}

/** The first address behind a network; null behind the last one. */
function toNext(words: AddressWords, length: number): AddressWords | null {
  const next = [...words]
  let word = Math.max(0, Math.ceil(length / 32) - 1)
  let step = length === 0 ? 2 ** 32 : 2 ** (32 * (word + 1) - length)
  for (; word >= 0; word--) {
    const sum = next[word]! + step
    next[word] = sum >>> 0
    if (sum < 2 ** 32) return next
    step = 1
  }
  return null
}
