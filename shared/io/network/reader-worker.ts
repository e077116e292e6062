/**
 * The thread that reads one file of network data. It hands its arrays over without a copy and ends,
 * so what it needed meanwhile is free again.
 */
import { readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import type { FactColumns } from '#shared/core/network/network-facts.ts'
import { type ListFault, parseNetworkList } from '#shared/core/network/network-list.ts'
import { readHeldMembers } from '#shared/core/network/network-status.ts'
import type { RangeTable } from '#shared/core/network/range-table.ts'
import { readDatabase } from './read-database.ts'
import type { FileContents, ReaderAnswer, ReaderTask } from './read-file.ts'
import { NetworkFileError } from './record-decoder.ts'

function read({ path, use }: ReaderTask): FileContents {
  const file = readFileSync(path)
  if (use === 'database') {
    const { table, facts, builtAtMs } = readDatabase(file)
    const networks = table.v4.values.length + table.v6.values.length
    return { table, facts, builtAtMs, networks, gives: readHeldMembers(facts) }
  }
  const list = parseNetworkList(file.toString('latin1'))
  if ('fault' in list) throw new NetworkFileError(toText(list))
  return { ...list, facts: null, builtAtMs: null, gives: [use] }
}

function toText(found: ListFault): string {
  if (found.fault === 'empty') return 'it has no network'
  const what = {
    not_a_network: 'is no network in CIDR notation',
    too_wide: 'has a network that is too wide',
    too_many_networks: 'has one network too many',
  }[found.fault]
  return `line ${found.line} ${what}`
}

function listBuffers({ v4, v6 }: RangeTable, facts: FactColumns | null): ArrayBuffer[] {
  const arrays = [v4, v6].flatMap(({ starts, values, index }) => [...starts, values, index])
  const columns =
    facts === null ? [] : Object.values(facts).filter((one) => ArrayBuffer.isView(one))
  return [...arrays, ...columns].map(({ buffer }) => buffer as ArrayBuffer)
}

function answer(): ReaderAnswer {
  try {
    return { contents: read(workerData as ReaderTask) }
  } catch (error) {
    if (error instanceof NetworkFileError) return { fault: error.message }
    // A circle of pointers ends with the stack.
    if (error instanceof RangeError) return { fault: 'it is nested without end' }
    return { fault: `it cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})` }
  }
}

const found = answer()
const buffers = 'contents' in found ? listBuffers(found.contents.table, found.contents.facts) : []
parentPort!.postMessage(found, buffers)
