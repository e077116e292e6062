/**
 * A disk so small that it can be filled: a tmpfs, and a file that takes what room is left for as
 * long as it is there. Mounting needs root.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

export type SmallDisk = {
  dir: string
  /** Takes all room there is, and what becomes free, until `free`. */
  fill: () => Promise<void>
  /** Gives it back. @returns the bytes that were taken */
  free: () => number
  freeBytes: () => number
  unmount: () => void
}

const ends = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const end = () => process.exit(1)
const refillMs = 100
const atOnceBytes = 32 * 1024 * 1024
/** The last pieces are small: what is left must not hold a message. */
const piecesBytes = [4 * 1024 * 1024, 64 * 1024, 4_096]

/** @throws when it cannot be mounted, as without root */
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
  let taken = 0
  let mounted = true
  let timer: NodeJS.Timeout | undefined
  const unmount = () => {
    clearInterval(timer)
    if (!mounted) return
    mounted = false
    process.off('exit', unmount)
    for (const signal of ends) process.off(signal, end)
    // Lazily: whoever still has a file open keeps it, the place is free at once.
    execFileSync('umount', ['--lazy', dir])
  }
  process.on('exit', unmount)
  // A signal ends a process without a word to those who listen for its exit.
  for (const signal of ends) process.on(signal, end)
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(dir)
    return bavail * bsize
  }
  return {
    dir,
    fill: async () => {
      // Not in one go: whoever measures meanwhile must not be held up.
      while (freeBytes() > atOnceBytes) {
        await pause(1)
        taken += takeRoom(ballast, atOnceBytes)
      }
      taken += takeRoom(ballast)
      timer ??= setInterval(() => {
        taken += takeRoom(ballast)
      }, refillMs)
    },
    free: () => {
      clearInterval(timer)
      timer = undefined
      rmSync(ballast, { force: true })
      const bytes = taken
      taken = 0
      return bytes
    },
    freeBytes,
    unmount,
  }
}

function takeRoom(file: string, bytesMax = Number.POSITIVE_INFINITY): number {
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
