/**
 * Reads one file of network data in a thread of its own, so that no request waits for it. A file
 * that takes too long or needs too much memory is refused like a broken one.
 */
import {
  networkReaderMiB,
  networkReadMs,
  networkReadMsPerMiB,
} from '#shared/core/base/limits/lists.ts'
import type { FactColumns } from '#shared/core/network/network-facts.ts'
import { type NetworkKind, networkKinds } from '#shared/core/network/network-list.ts'
import type { NetworkMember } from '#shared/core/network/network-status.ts'
import type { RangeTable } from '#shared/core/network/range-table.ts'
import { askThread, type ThreadFault } from '#shared/io/process/ask-thread.ts'

/** What a file is: a database, or a list of networks of one kind. */
export type FileUse = 'database' | NetworkKind

export type FileContents = {
  table: RangeTable
  /** What the values of the table stand for; null for a list. */
  facts: FactColumns | null
  /** When the vendor built it, in ms since 1970; null for a list, which does not say. */
  builtAtMs: number | null
  /** Networks of a list; ranges of a database. */
  networks: number
  /** What it says of addresses. */
  gives: NetworkMember[]
}

export type ReaderTask = { path: string; use: FileUse }
export type ReaderAnswer = { contents: FileContents } | { fault: string }

/** Letters that a label of a metric and a line of a log may have. */
const databaseName = /^[\w.-]{1,80}\.mmdb$/

/** What a file of this name is; null for one that is not read. */
export function toFileUse(name: string): FileUse | null {
  if (databaseName.test(name)) return 'database'
  return networkKinds.find((kind) => name === `${kind}.txt`) ?? null
}

const faultTexts: Record<ThreadFault, string> = {
  time_limit: 'reading it takes too long',
  memory: 'reading it needs too much memory',
  ended: 'its reader failed',
}

/**
 * @param bytes the size of the file
 * @returns its contents, or in plain words what is wrong with it
 */
export async function readNetworkFile(task: ReaderTask, bytes: number): Promise<ReaderAnswer> {
  const answer = await askThread<ReaderAnswer>(new URL('./reader-worker.ts', import.meta.url), {
    name: 'network data',
    data: task,
    limitMs: networkReadMs + (bytes / 2 ** 20) * networkReadMsPerMiB,
    heapMiB: networkReaderMiB,
  })
  return typeof answer === 'string' ? { fault: faultTexts[answer] } : answer
}
