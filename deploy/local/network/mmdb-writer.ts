/**
 * Writes small MMDB files, and broken ones: the binary search tree, the records and the metadata as
 * MaxMind's specification of version 2 has them.
 */
import { type Network, parseNetwork } from '#shared/core/network/address.ts'

export type MmdbOptions = {
  /** Bits of a record of the tree. */
  recordSize?: 24 | 28 | 32
  version?: 4 | 6
  buildEpoch?: number
  /** Networks of IPv6 that lead to the IPv4 part, as MaxMind's files have. */
  aliases?: readonly string[]
  metadata?: Record<string, unknown>
  /** Replaces the bytes of all records. */
  data?: Buffer
}

/** A whole number that is written as a 64-bit one. */
export const uint64 = (value: number): bigint => BigInt(value)

const types = {
  pointer: 1,
  string: 2,
  double: 3,
  uint16: 5,
  uint32: 6,
  map: 7,
  uint64: 9,
  array: 11,
  boolean: 14,
} as const

/** The control bytes of a value. */
export function toControl(type: keyof typeof types, size: number): Buffer {
  const number = types[type]
  const [field, more] =
    size < 29
      ? [size, []]
      : size < 285
        ? [29, [size - 29]]
        : size < 65_821
          ? [30, [(size - 285) >> 8, (size - 285) & 255]]
          : [31, [(size - 65_821) >> 16, ((size - 65_821) >> 8) & 255, (size - 65_821) & 255]]
  return number < 8
    ? Buffer.from([(number << 5) | field, ...more])
    : Buffer.from([field, number - 7, ...more])
}

/** A pointer to an offset among the records, in its longest form. */
export function toPointer(offset: number): Buffer {
  const bytes = Buffer.alloc(5)
  bytes[0] = (types.pointer << 5) | (3 << 3)
  bytes.writeUInt32BE(offset, 1)
  return bytes
}

/** A value as MMDB has it; whole numbers are uint32, others double, bigint is uint64. */
export function encodeValue(value: unknown): Buffer {
  if (typeof value === 'string') {
    const text = Buffer.from(value, 'utf8')
    return Buffer.concat([toControl('string', text.length), text])
  }
  if (typeof value === 'boolean') return toControl('boolean', value ? 1 : 0)
  if (typeof value === 'bigint') {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64BE(value)
    return Buffer.concat([toControl('uint64', 8), bytes])
  }
  if (typeof value === 'number') {
    const isWhole = Number.isInteger(value) && value >= 0
    const bytes = Buffer.alloc(isWhole ? 4 : 8)
    if (isWhole) bytes.writeUInt32BE(value)
    else bytes.writeDoubleBE(value)
    return Buffer.concat([toControl(isWhole ? 'uint32' : 'double', bytes.length), bytes])
  }
  if (Array.isArray(value)) {
    return Buffer.concat([toControl('array', value.length), ...value.map(encodeValue)])
  }
  const members = Object.entries(value as object)
  return Buffer.concat([
    toControl('map', members.length),
    ...members.flatMap(([name, member]) => [encodeValue(name), encodeValue(member)]),
  ])
}

/**
 * An MMDB file of these networks. A later network lies within or beside the earlier ones; one
 * object is one record, however many networks have it.
 */
export function writeMmdb(
  entries: Iterable<readonly [network: string, record: unknown]>,
  options: MmdbOptions = {},
): Buffer {
  const { recordSize = 28, version = 6, buildEpoch = 1_780_000_000, aliases = [] } = options
  const tree = createTree()
  const data: Buffer[] = []
  const offsets = new Map<unknown, number>()
  let dataBytes = 0
  for (const [text, record] of entries) {
    let offset = offsets.get(record)
    if (offset === undefined) {
      const bytes = encodeValue(record)
      offset = dataBytes
      offsets.set(record, offset)
      data.push(bytes)
      dataBytes += bytes.length
    }
    tree.plant(toBits(parseNetwork(text)!, version), firstData - offset)
  }
  for (const alias of aliases) tree.plant(toBits(parseNetwork(alias)!, version), aliasOfIpv4)
  const nodes = tree.nodes()
  const ipv4 = version === 6 ? tree.followZeros(96) : 0
  const toRecord = (child: number): number => {
    if (child === aliasOfIpv4) return toRecord(ipv4)
    if (child === empty) return nodes
    return child >= 0 ? child : nodes + 16 + (firstData - child)
  }
  const bytes = Buffer.alloc((nodes * recordSize) / 4)
  for (let node = 0; node < nodes; node++) {
    const [left, right] = [toRecord(tree.child(node, 0)), toRecord(tree.child(node, 1))]
    toNode(left, right, recordSize).copy(bytes, (node * recordSize) / 4)
  }
  return assemble(bytes, options.data ?? Buffer.concat(data), {
    node_count: nodes,
    record_size: recordSize,
    ip_version: version,
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: uint64(buildEpoch),
    database_type: 'Test',
    languages: ['en'],
    description: { en: 'Written by a test' },
    ...options.metadata,
  })
}

/** Children of a node: the number of one, or below 0 a leaf. */
const empty = -1
const aliasOfIpv4 = -2
const firstData = -3

function createTree() {
  let children = new Int32Array(2_048).fill(empty)
  let nodes = 1
  const split = (at: number): number => {
    if (2 * nodes === children.length) {
      const grown = new Int32Array(2 * children.length).fill(empty)
      grown.set(children)
      children = grown
    }
    // What was above covers the rest.
    children.fill(children[at]!, 2 * nodes, 2 * nodes + 2)
    children[at] = nodes
    return nodes++
  }
  return {
    nodes: () => nodes,
    child: (node: number, bit: number): number => children[2 * node + bit]!,
    followZeros: (depth: number): number => {
      let node = 0
      for (let at = 0; at < depth && node >= 0; at++) node = children[2 * node]!
      return node
    },
    plant: (bits: readonly number[], leaf: number): void => {
      let node = 0
      for (const bit of bits.slice(0, -1)) {
        const at = 2 * node + bit
        node = children[at]! >= 0 ? children[at]! : split(at)
      }
      children[2 * node + bits.at(-1)!] = leaf
    },
  }
}

/** A file of its three parts. */
export function assemble(tree: Buffer, data: Buffer, metadata: Record<string, unknown>): Buffer {
  const marker = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')
  return Buffer.concat([tree, Buffer.alloc(16), data, marker, encodeValue(metadata)])
}

/** One node of a tree. */
export function toNode(left: number, right: number, recordSize: 24 | 28 | 32): Buffer {
  const bytes = Buffer.alloc(recordSize / 4)
  if (recordSize === 32) {
    bytes.writeUInt32BE(left, 0)
    bytes.writeUInt32BE(right, 4)
  } else {
    bytes.writeUIntBE(left & 0xff_ffff, 0, 3)
    bytes.writeUIntBE(right & 0xff_ffff, bytes.length - 3, 3)
    if (recordSize === 28) bytes[3] = ((left >>> 24) << 4) | (right >>> 24)
  }
  return bytes
}

function toBits({ words, length }: Network, version: 4 | 6): number[] {
  const isMapped = version === 6 && words.length === 1
  const own = Array.from({ length }, (_, at) => (words[at >> 5]! >>> (31 - (at & 31))) & 1)
  return isMapped ? [...new Array<number>(96).fill(0), ...own] : own
}
