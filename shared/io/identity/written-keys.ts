/**
 * What a scorer remembers of the keys of installs that it wrote. Numbers in one array an install:
 * an object for each key would take four times as much memory.
 */
import { LRUCache } from 'lru-cache'
import {
  rememberedInstallsMax,
  rememberedKeysMax,
  rememberedKeysOfInstallMax,
} from '#shared/core/base/limits/entities.ts'

/** What was written: the lowest offset, and when it was last seen. */
export type Written = { streamOffset: number; seenMs: number }

/** A key of an install as its row has it. */
export type WrittenKey = Written & { keyHash: Buffer }

export type WrittenKeys = {
  /** @returns what was written of a key, undefined where nothing is known */
  find: (install: string, keyHash: Buffer) => Written | undefined
  /** Adds to what is known of an install. */
  remember: (install: string, keys: readonly WrittenKey[]) => void
  forget: () => void
}

/** Of each key the halves of its hash, its offset and when it was last seen. */
const numbersPerKey = 4

export function createWrittenKeys(): WrittenKeys {
  const installs = new LRUCache<string, readonly number[]>({
    max: rememberedInstallsMax,
    maxSize: rememberedKeysMax,
    sizeCalculation: (numbers) => numbers.length / numbersPerKey,
  })
  return {
    find: (install, keyHash) => {
      const numbers = installs.get(install)
      const at = numbers === undefined ? -1 : findPlace(numbers, keyHash)
      return at < 0 ? undefined : { streamOffset: numbers![at + 2]!, seenMs: numbers![at + 3]! }
    },
    remember: (install, keys) => {
      const known = [...(installs.get(install) ?? [])]
      const added: number[] = []
      for (const { keyHash, streamOffset, seenMs } of keys) {
        const at = findPlace(known, keyHash)
        if (at < 0) added.push(...toHalves(keyHash), streamOffset, seenMs)
        else {
          known[at + 2] = Math.min(known[at + 2]!, streamOffset)
          known[at + 3] = Math.max(known[at + 3]!, seenMs)
        }
      }
      const most = rememberedKeysOfInstallMax * numbersPerKey
      installs.set(install, [...known, ...added].slice(-most))
    },
    forget: () => installs.clear(),
  }
}

const toHalves = (keyHash: Buffer): [number, number] => [
  keyHash.readUInt32LE(0),
  keyHash.readUInt32LE(4),
]

function findPlace(numbers: readonly number[], keyHash: Buffer): number {
  const [first, second] = toHalves(keyHash)
  for (let at = 0; at < numbers.length; at += numbersPerKey) {
    if (numbers[at] === first && numbers[at + 1] === second) return at
  }
  return -1
}
