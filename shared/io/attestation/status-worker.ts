/**
 * Reads the status list once, in a thread of its own: to parse 64 MiB takes seconds, which requests
 * must not wait for. What it posts is the whole list or why there is none.
 */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { parseStatusList } from '#shared/core/attestation/status-list.ts'
import { statusListBytesMax } from '#shared/core/base/limits/attestation.ts'
import { packSerials } from '#shared/core/installs/revoked-serials.ts'

export type StatusFault = 'unreadable' | 'too_large' | 'malformed'

/** @property version of the file that was read, as `toVersion` makes it */
export type StatusReading =
  | { version: string; modifiedMs: number; packed: SharedArrayBuffer }
  | { fault: StatusFault }

/** What tells one content of a file from another. */
export const toVersion = (stats: { ino: number; size: number; mtimeMs: number }): string =>
  `${stats.ino}:${stats.size}:${stats.mtimeMs}`

function readStatusFile(file: string): StatusReading {
  let text: string
  let stats: ReturnType<typeof fstatSync>
  try {
    const descriptor = openSync(file, 'r')
    try {
      // Of the opened file: another one may take its name meanwhile.
      stats = fstatSync(descriptor)
      if (!stats.isFile()) return { fault: 'unreadable' }
      if (stats.size > statusListBytesMax) return { fault: 'too_large' }
      text = readFileSync(descriptor, 'utf8')
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return { fault: 'unreadable' }
  }
  const list = parseStatusList(text)
  if (list === null) return { fault: 'malformed' }
  return {
    version: toVersion(stats),
    modifiedMs: stats.mtimeMs,
    packed: packSerials(list.keys()),
  }
}

parentPort?.postMessage(readStatusFile((workerData as { file: string }).file))
