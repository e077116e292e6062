/**
 * Sets of flags as words of bits, for SQL that keeps flags in few columns. JSON and JavaScript hold
 * 53 bits of a number exactly, so a word has 52, and there are as many words as the flags need.
 */
import { type Flag, flagCodes } from '#shared/core/signals/flag-codes.ts'
import { quoteTexts } from './scoring-sql-text.ts'

export const flagBitsPerWord = 52

/** The index of each word. A verdict has a column of UInt64 for each. */
export const flagWords: readonly number[] = listFlagWords(flagCodes)

/** @param codes every flag, in the order of their bits */
export function listFlagWords(codes: readonly string[]): number[] {
  return Array.from({ length: Math.ceil(codes.length / flagBitsPerWord) }, (_, word) => word)
}

/** The flags of a word, in the order of its bits. */
const codesOf = (codes: readonly string[], word: number): readonly string[] =>
  codes.slice(word * flagBitsPerWord, (word + 1) * flagBitsPerWord)

/** The word of a flag, and its bit as SQL. */
export function placeFlag(flag: Flag): { word: number; sql: string } {
  const index = flagCodes.indexOf(flag)
  const word = Math.floor(index / flagBitsPerWord)
  return { word, sql: toBit(index - word * flagBitsPerWord) }
}

const toBit = (bit: number): string => `toUInt64(${2 ** bit})`

/** One word of an array of flags, as SQL. A flag that no longer exists has no bit. */
export function toFlagWord(
  array: string,
  word: number,
  codes: readonly string[] = flagCodes,
): string {
  const own = codesOf(codes, word)
  const bits = `[${own.map((_, bit) => toBit(bit)).join(', ')}]`
  const bit = `transform(toString(flag), ${quoteTexts(own)}, ${bits}, toUInt64(0))`
  return `arraySum(arrayMap(flag -> ${bit}, ${array}))`
}

/**
 * The flags of a row's words, sorted.
 * @param words one number for each of `flagWords`
 */
export function readFlagWords(words: readonly number[]): Flag[]
export function readFlagWords<Code extends string>(
  words: readonly number[],
  codes: readonly Code[],
): Code[]
export function readFlagWords(
  words: readonly number[],
  codes: readonly string[] = flagCodes,
): string[] {
  return words
    .flatMap((bits, word) =>
      codesOf(codes, word).filter((_, bit) => Math.floor(bits / 2 ** bit) % 2 === 1),
    )
    .sort()
}
