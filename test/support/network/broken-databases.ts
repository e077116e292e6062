/** MMDB files as their enemy writes them, each broken in one way. */
import {
  assemble,
  encodeValue,
  toControl,
  toNode,
  toPointer,
  uint64,
  writeMmdb,
} from '../../../deploy/local/network/mmdb-writer.ts'

const country = { country: { iso_code: 'DE' } }
/** A file with one record, whose bytes are given. */
const withData = (data: Buffer) => writeMmdb([['8.8.0.0/16', country]], { data })
const withMetadata = (metadata: Record<string, unknown>) =>
  writeMmdb([['8.8.0.0/16', country]], { metadata })

/** A map with one member. */
const mapOf = (value: Buffer) => Buffer.concat([toControl('map', 1), encodeValue('a'), value])

/** Maps of two pointers each to the next one: 2^15 values in 400 bytes, within the bound of depth. */
function multiplyingMaps(): Buffer {
  const levels = 15
  const toLevel = (next: number) =>
    Buffer.concat([
      toControl('map', 2),
      ...['a', 'b'].flatMap((name) => [encodeValue(name), toPointer(next)]),
    ])
  const { length } = toLevel(0)
  const maps = Array.from({ length: levels }, (_, level) => toLevel((level + 1) * length))
  return Buffer.concat([...maps, encodeValue(country)])
}

/** An array of pointers to one array of pointers to one long text. */
function multiplyingArrays(): Buffer {
  const elements = 2_000
  const text = encodeValue('x'.repeat(60_000))
  const toArray = (target: number) =>
    Buffer.concat([
      toControl('array', elements),
      ...Array.from({ length: elements }, () => toPointer(target)),
    ])
  const { length } = toArray(0)
  return Buffer.concat([toArray(length), toArray(2 * length), text])
}

/** A tree whose nodes all lead to the next level twice: 2^64 leaves. */
function sharedTree(): Buffer {
  const nodes = 64
  const leaf = nodes + 16
  const tree = Array.from({ length: nodes }, (_, at) => {
    const next = at === nodes - 1 ? leaf : at + 1
    return toNode(next, next, 24)
  })
  return assemble(Buffer.concat(tree), encodeValue(country), metadataOf(nodes, 6))
}

/** A tree whose node leads to itself. */
function circularTree(): Buffer {
  return assemble(toNode(0, 0, 24), encodeValue(country), metadataOf(1, 6))
}

/** A tree that is deeper than an address has bits. */
function deepTree(): Buffer {
  const nodes = 40
  const tree = Array.from({ length: nodes }, (_, at) => toNode(Math.min(at + 1, nodes), nodes, 24))
  return assemble(Buffer.concat(tree), encodeValue(country), metadataOf(nodes, 4))
}

const metadataOf = (nodes: number, version: 4 | 6) => ({
  node_count: nodes,
  record_size: 24,
  ip_version: version,
  binary_format_major_version: 2,
  binary_format_minor_version: 0,
  build_epoch: uint64(1_780_000_000),
})

/** Broken files by what is wrong with them. */
export function writeBrokenDatabases(): Record<string, Buffer> {
  const whole = writeMmdb([['8.8.0.0/16', country]])
  const nested = (levels: number, wrap: (inner: Buffer) => Buffer) =>
    Array.from({ length: levels }).reduce<Buffer>((inner) => wrap(inner), encodeValue(country))
  return {
    'an empty file': Buffer.alloc(0),
    'a page of an error': Buffer.from('<html>404 Not Found</html>'),
    'a file without its end': whole.subarray(0, whole.length - 60),
    'a marker and nothing behind it': whole.subarray(0, whole.lastIndexOf('MaxMind.com') + 11),
    'metadata of another form': withMetadata({ node_count: 'many' }),
    'records of 26 bits': withMetadata({ record_size: 26 }),
    'no node': withMetadata({ node_count: 0 }),
    'more nodes than the file has': withMetadata({ node_count: 4_000_000_000 }),
    'a version of another format': withMetadata({ binary_format_major_version: 3 }),
    'an unknown version of IP': withMetadata({ ip_version: 5 }),
    'a record that points at itself': withData(toPointer(0)),
    'a record that contains itself': withData(mapOf(toPointer(0))),
    'two pointers at each other': withData(Buffer.concat([toPointer(5), toPointer(0)])),
    'a pointer behind the file': withData(toPointer(4_000_000_000)),
    'maps within maps': withData(nested(600, mapOf)),
    'arrays within arrays': withData(
      nested(5_000, (inner) => Buffer.concat([toControl('array', 1), inner])),
    ),
    'parts that multiply': withData(multiplyingMaps()),
    'arrays of pointers to arrays': withData(multiplyingArrays()),
    'an array of 16 million elements': withData(toControl('array', 16_000_000)),
    'a map of 16 million members': withData(toControl('map', 16_000_000)),
    'a text behind the file': withData(toControl('string', 16_000_000)),
    'a number of 20 bytes': withData(
      mapOf(Buffer.concat([toControl('uint64', 20), Buffer.alloc(20)])),
    ),
    'an unknown type': withData(Buffer.from([0x00, 0x7f])),
    'a double without its bytes': withData(toControl('double', 8)),
    'a tree that shares its nodes': sharedTree(),
    'a tree that is a circle': circularTree(),
    'a tree deeper than an address': deepTree(),
    'a leaf that points at no record': assemble(
      toNode(2, 2, 24),
      encodeValue(country),
      metadataOf(1, 4),
    ),
    'a leaf behind the file': assemble(
      toNode(0xff_ffff, 0xff_ffff, 24),
      encodeValue(country),
      metadataOf(1, 4),
    ),
    'records without a known member': writeMmdb([['8.8.0.0/16', { domain: 'example.net' }]]),
    'no record at all': assemble(toNode(1, 1, 24), Buffer.alloc(0), metadataOf(1, 4)),
  }
}
