/** A tmpfs small enough to fill, and the file that fills it. Mounting needs root. */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

export type SmallDisk = {
  dir: string
  /** Fills all space, and space that becomes free later, until `free`. */
  fill: () => Promise<void>
  /** Deletes the file. @returns its bytes */
  free: () => number
  freeBytes: () => number
  unmount: () => void
}

const ends = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const end = () => process.exit(1)
const refillMs = 100
const atOnceBytes = 32 * 1024 * 1024
/** The last pieces are small, so that no message fits into the rest. */
const piecesBytes = [4 * 1024 * 1024, 64 * 1024, 4_096]

/** @throws when it cannot be mounted, for example without root */
export function mountSmallDisk(dir: string, sizeMb: number): SmallDisk {
  mkdirSync(dir, { recursive: true })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m`, 'tmpfs', dir], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
  } catch (error) {
    const { stderr } = error as { stderr?: Buffer }
    throw new Error(`no small disk can be mounted (this needs root): ${stderr ?? error}`)
  }
  const ballast = join(dir, 'ballast')
  let filled = 0
  let mounted = true
  let timer: NodeJS.Timeout | undefined
  const unmount = () => {
    clearInterval(timer)
    if (!mounted) return
    mounted = false
    process.off('exit', unmount)
    for (const signal of ends) process.off(signal, end)
    // Lazily: a process with an open file keeps it, and the folder is free at once.
    execFileSync('umount', ['--lazy', dir])
  }
  process.on('exit', unmount)
  // A signal ends a process without an `exit` event.
  for (const signal of ends) process.on(signal, end)
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(dir)
    return bavail * bsize
  }
  return {
    dir,
    fill: async () => {
      // In pieces, so that the measurements of this process continue.
      while (freeBytes() > atOnceBytes) {
        await pause(1)
        filled += fillSpace(ballast, atOnceBytes)
      }
      filled += fillSpace(ballast)
      timer ??= setInterval(() => {
        filled += fillSpace(ballast)
      }, refillMs)
    },
    free: () => {
      clearInterval(timer)
      timer = undefined
      rmSync(ballast, { force: true })
      const bytes = filled
      filled = 0
      return bytes
    },
    freeBytes,
    unmount,
  }
}

function fillSpace(file: string, bytesMax = Number.POSITIVE_INFINITY): number {
  const handle = openSync(file, 'a')
  let bytes = 0
  try {
    for (const size of piecesBytes) {
      bytes += writeUntilFull(handle, Buffer.alloc(size), bytesMax - bytes)
    }
  } finally {
    closeSync(handle)
  }
  return bytes
}

function writeUntilFull(handle: number, piece: Buffer, bytesMax: number): number {
  for (let bytes = 0; ; ) {
    if (bytes >= bytesMax) return bytes
    try {
      const written = writeSync(handle, piece)
      bytes += written
      if (written < piece.length) return bytes
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return bytes
      throw error
    }
  }
}
