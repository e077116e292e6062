/**
 * The cost of the file system under a benchmark's servers, without which two runs on one machine
 * cannot be compared. On ext4 without a journal a new file costs up to twenty times as much after
 * many others were removed within the last minutes.
 */
import {
  closeSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { percentile } from '../support/process/percentile.ts'

const files = 500
const syncs = 100
const block = Buffer.alloc(4_096, 'x')

/** In µs, medians: creating a file of 4 KB, and appending 4 KB to a file with a sync. */
export type FilesCost = { createUs: number; syncUs: number }

/** Measures in a new folder where the benchmarks' servers keep theirs. Takes 0.1 to 1 s. */
export function measureFiles(): FilesCost {
  const folder = mkdtempSync(join(tmpdir(), 'di-files-'))
  try {
    const created = time(files, (at) => writeFileSync(join(folder, `${at}`), block))
    const file = openSync(join(folder, 'synced'), 'w')
    const synced = time(syncs, () => {
      writeSync(file, block)
      fsyncSync(file)
    })
    closeSync(file)
    return { createUs: percentile(created, 0.5), syncUs: percentile(synced, 0.5) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function time(times: number, act: (at: number) => void): number[] {
  return Array.from({ length: times }, (_, at) => {
    const startedMs = performance.now()
    act(at)
    return Math.round((performance.now() - startedMs) * 1000)
  })
}
