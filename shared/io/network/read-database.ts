/**
 * Reads an MMDB file into a table of ranges and columns of facts. The search tree is walked once
 * and every record is read once, so that no look-up ever touches the file: whatever is wrong in it
 * is found here, off the event loop.
 */
import mmdbWalker from 'mmdb-lib/lib/reader/walker.js'
import { z } from 'zod'
import { databaseFactsMax, databaseRangesMax } from '#shared/core/base/limits/lists.ts'
import { createFactWriter, type FactColumns } from '#shared/core/network/network-facts.ts'
import {
  createRangeWriter,
  type RangeTable,
  type RangeWriter,
} from '#shared/core/network/range-table.ts'
import { readRecord } from '#shared/core/network/record-members.ts'
import { createRecordDecoder, NetworkFileError } from './record-decoder.ts'

export type DatabaseContents = {
  table: RangeTable
  facts: FactColumns
  /** When its vendor built it, in ms since 1970. */
  builtAtMs: number
}

type Tree = {
  nodeCount: number
  /** 32 or 128. */
  bits: number
  left: (offset: number) => number
  right: (offset: number) => number
  nodeBytes: number
}

type CreateWalker = (file: Buffer, recordSize: number) => Pick<Tree, 'left' | 'right'>
// Node gives the module of a CommonJS default export, a bundler its function.
const imported = mmdbWalker as unknown as CreateWalker & { default?: CreateWalker }
const createWalker = imported.default ?? imported

const marker = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')
/** The metadata is in the last 128 KiB of a file. */
const metadataBytesMax = 128 * 1024
/** Between the tree and the records. */
const separatorBytes = 16

const metadataSchema = z.object({
  node_count: z.number().int().min(1),
  record_size: z.literal([24, 28, 32]),
  ip_version: z.literal([4, 6]),
  binary_format_major_version: z.literal(2),
  build_epoch: z.union([z.number(), z.bigint()]).transform(Number),
})

/** @throws NetworkFileError when any of it is broken, too large, or of no use */
export function readDatabase(file: Buffer): DatabaseContents {
  const markerAt = file.lastIndexOf(marker)
  if (markerAt === -1 || file.length - markerAt > metadataBytesMax) {
    throw new NetworkFileError('it is no MMDB file')
  }
  const metadataAt = markerAt + marker.length
  const metadata = metadataSchema.safeParse(createRecordDecoder(file, metadataAt)(metadataAt))
  if (!metadata.success) throw new NetworkFileError('its metadata is not that of an MMDB file')
  const { node_count: nodeCount, record_size: recordSize, ip_version: version } = metadata.data
  const nodeBytes = recordSize / 4
  const recordsAt = nodeCount * nodeBytes + separatorBytes
  if (recordsAt > markerAt) throw new NetworkFileError('its search tree ends behind the file')
  const tree = { nodeCount, nodeBytes, bits: version === 4 ? 32 : 128 }
  const { find, finish } = createFacts(file.subarray(0, markerAt), { nodeCount, recordsAt })
  const table = readTree({ ...tree, ...createWalker(file, recordSize) }, find)
  const facts = finish()
  if (facts.asns.length === 1) throw new NetworkFileError('no record has a member that is used')
  return { table, facts, builtAtMs: metadata.data.build_epoch * 1_000 }
}

/** The number of the facts to which a leaf of the tree points. */
type FindFact = (pointer: number) => number

/** @param place the number of nodes, which pointers begin with, and where records begin */
function createFacts(file: Buffer, place: { nodeCount: number; recordsAt: number }) {
  const { nodeCount, recordsAt } = place
  const decode = createRecordDecoder(file, recordsAt)
  const writer = createFactWriter()
  const known = new Map<number, number>()

  const read = (pointer: number): number => {
    const offset = pointer - nodeCount - separatorBytes + recordsAt
    if (offset < recordsAt) throw new NetworkFileError('its search tree points at no record')
    const record = readRecord(decode(offset))
    if (record === null) return 0
    const fact = writer.add(record)
    if (fact === 0) throw new NetworkFileError(`it has more than ${databaseFactsMax} facts`)
    return fact
  }
  const find: FindFact = (pointer) => {
    const fact = known.get(pointer) ?? read(pointer)
    known.set(pointer, fact)
    return fact
  }
  return { find, finish: writer.finish }
}

function readTree(tree: Tree, find: FindFact): RangeTable {
  const v4 = createRangeWriter(1)
  const v6 = createRangeWriter(4)
  const walk = createTreeWalk(tree, find)
  if (tree.bits === 32) {
    walk(0, [0], v4, null)
    return { v4: v4.finish(), v6: v6.finish() }
  }
  // IPv4 is ::/96, and other networks of IPv6 may be aliases of it. They are no place of a client.
  let root = 0
  for (let depth = 0; depth < 96 && root < tree.nodeCount; depth++) {
    root = tree.left(root * tree.nodeBytes)
  }
  walk(root, [0], v4, null)
  walk(0, [0, 0, 0, 0], v6, root < tree.nodeCount ? root : null)
  return { v4: v4.finish(), v6: v6.finish() }
}

/** @returns a function that writes the ranges below a node */
function createTreeWalk(tree: Tree, find: FindFact) {
  const { nodeCount, nodeBytes } = tree
  // Nodes are shared by nothing but aliases. A tree with circles would have ranges without end.
  let visitsLeft = 4 * nodeCount + 1_024
  return (from: number, words: number[], writer: RangeWriter, leftOut: number | null): void => {
    const bits = 32 * words.length
    const visit = (pointer: number, depth: number): void => {
      if (pointer >= nodeCount || pointer === leftOut) {
        writer.append(words, pointer <= nodeCount ? 0 : find(pointer))
        if (writer.size() > databaseRangesMax) {
          throw new NetworkFileError(`it has more than ${databaseRangesMax} ranges`)
        }
        return
      }
      if (depth === bits) throw new NetworkFileError('its search tree is deeper than an address')
      if (--visitsLeft < 0) throw new NetworkFileError('its search tree has circles')
      const offset = pointer * nodeBytes
      visit(tree.left(offset), depth + 1)
      const word = depth >>> 5
      const bit = 2 ** (31 - (depth & 31))
      words[word]! += bit
      visit(tree.right(offset), depth + 1)
      words[word]! -= bit
    }
    visit(from, 0)
  }
}
