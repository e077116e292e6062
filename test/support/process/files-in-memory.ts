/**
 * The folder for the files of tests. Hundreds of servers make and remove tens of thousands of small
 * files and sync every write: in memory that costs the same on every machine, while on ext4 without
 * a journal making a file takes longer the more were removed in the last minutes.
 */
import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const memory = '/dev/shm'
const tmpfsType = 0x01021994
/** A run uses a few hundred MB at a time. */
const freeBytesMin = 2 * 1024 ** 3
/** Memory reserved for the servers themselves. */
const availableMin = 8 * 1024 ** 3

/** @returns `/dev/shm` where it is memory and large enough, else the system's folder */
export function chooseFilesFolder(): string {
  try {
    const { type, bavail, bsize } = statfsSync(memory)
    const hasSpace = type === tmpfsType && bavail * bsize >= freeBytesMin
    return hasSpace && process.availableMemory() >= availableMin ? memory : tmpdir()
  } catch {
    return tmpdir()
  }
}
