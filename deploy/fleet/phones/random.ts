/**
 * Seeded random numbers, the same on every machine. Each purpose has its own named stream, so a new
 * draw in one place changes nothing elsewhere.
 */

export type Random = {
  /** In [0, 1), 32 bits. */
  next(): number
  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number
  chance(probability: number): boolean
  pick<T>(items: readonly T[]): T
  /** Picks by weight; weights may have any sum. */
  weighted<T>(items: readonly (readonly [T, number])[]): T
  /** Lower-case hexadecimal characters. */
  hex(characters: number): string
  /** Shaped like a version 4 UUID. */
  uuid(): string
  /** Exponentially distributed around `mean`: the gaps of independent arrivals. */
  exponential(mean: number): number
}

/**
 * A stream of random numbers.
 * @param seed the run's seed
 * @param label the purpose; different labels give independent streams
 */
export function createRandom(seed: number, label: string): Random {
  const next = sfc32(hashText(`${seed}:${label}`))
  const int = (low: number, high: number) => low + Math.floor(next() * (high - low + 1))
  const hex = (characters: number) => {
    let text = ''
    while (text.length < characters) {
      text += Math.floor(next() * 2 ** 32)
        .toString(16)
        .padStart(8, '0')
    }
    return text.slice(0, characters)
  }
  return {
    next,
    int,
    hex,
    chance: (probability) => next() < probability,
    pick: (items) => items[Math.floor(next() * items.length)]!,
    weighted: (items) => pickWeighted(items, next()),
    uuid: () => {
      const digits = hex(32)
      const variant = '89ab'[int(0, 3)]
      return [
        digits.slice(0, 8),
        digits.slice(8, 12),
        `4${digits.slice(13, 16)}`,
        `${variant}${digits.slice(17, 20)}`,
        digits.slice(20),
      ].join('-')
    },
    exponential: (mean) => -mean * Math.log(1 - next()),
  }
}

function pickWeighted<T>(items: readonly (readonly [T, number])[], at: number): T {
  let left = at * items.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [item, weight] of items) {
    left -= weight
    if (left < 0) return item
  }
  return items[items.length - 1]![0]
}

/** Shuffles in place (Fisher and Yates). */
export function shuffle<T>(items: T[], random: Random): T[] {
  for (let at = items.length - 1; at > 0; at--) {
    const other = random.int(0, at)
    const item = items[at]!
    items[at] = items[other]!
    items[other] = item
  }
  return items
}

/** A 32-bit hash of a text, for choices that must not depend on the order of draws. */
export function hashToUnit(text: string): number {
  return hashText(text)[0] / 2 ** 32
}

type State = [number, number, number, number]

// MurmurHash3's mixing over the characters, read out four times: enough to seed sfc32 well.
function hashText(text: string): State {
  let hash = 1_779_033_703 ^ text.length
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 3_432_918_353)
    hash = (hash << 13) | (hash >>> 19)
  }
  const draw = () => {
    hash = Math.imul(hash ^ (hash >>> 16), 2_246_822_507)
    hash = Math.imul(hash ^ (hash >>> 13), 3_266_489_909)
    hash ^= hash >>> 16
    return hash >>> 0
  }
  return [draw(), draw(), draw(), draw()]
}

// "Small fast counting" generator of PractRand, 32-bit version: passes its tests to terabytes.
function sfc32(state: State): () => number {
  let [a, b, c, counter] = state
  return () => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + sum) | 0
    return (sum >>> 0) / 2 ** 32
  }
}
