/**
 * Searches for secrets where none may be: in every file below a folder, byte by byte in one pass,
 * in every encoding of a secret. Compressed blocks contain a random text unchanged, because it
 * repeats nothing; a control text that must be found proves that.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

export type Hit = { secret: string; spelling: string; where: string }

type Needle = { secret: string; spelling: string; bytes: Buffer }

export type SecretSearch = {
  /** @param where the name of the place in a hit */
  inBytes: (bytes: Buffer, where: string) => Hit[]
  /** Every file below a folder; a hit names it relative to the folder. */
  inFolder: (folder: string) => Hit[]
}

/** @param secrets by name; hits show the names */
export function createSecretSearch(secrets: Record<string, string>): SecretSearch {
  const needles = Object.entries(secrets).flatMap(([secret, text]) => toNeedles(secret, text))
  const byStart = new Map<number, Needle[]>()
  const starts = new Uint8Array(2 ** 16)
  for (const needle of needles) {
    const start = needle.bytes.readUInt16BE(0)
    starts[start] = 1
    byStart.set(start, [...(byStart.get(start) ?? []), needle])
  }
  const inBytes = (bytes: Buffer, where: string) => {
    const found = new Set<Needle>()
    for (let at = 0; at + 1 < bytes.length; at++) {
      const start = (bytes[at]! << 8) | bytes[at + 1]!
      if (starts[start] === 0) continue
      for (const needle of byStart.get(start)!) {
        const end = at + needle.bytes.length
        if (end <= bytes.length && bytes.compare(needle.bytes, 0, undefined, at, end) === 0) {
          found.add(needle)
        }
      }
    }
    return [...found].map(({ secret, spelling }) => ({ secret, spelling, where }))
  }
  return {
    inBytes,
    inFolder: (folder) =>
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .flatMap((entry) => {
          const file = join(entry.parentPath, entry.name)
          return inBytes(readFileSync(file), relative(folder, file))
        }),
  }
}

/** A secret as it is, and in all encodings that a program may use, alone or inside a text. */
function toNeedles(secret: string, text: string): Needle[] {
  const asText = Buffer.from(text)
  // The key that a secret encodes: 32 bytes, in base64 of either alphabet.
  const key = Buffer.from(text.replace(/^whsec_/, ''), 'base64')
  const all: [string, Buffer | string][] = [
    ['as it is', asText],
    ['without its prefix', text.replace(/^[a-z]+_([a-z]+_)?/, '')],
    ['its bytes', key],
    ['URL-encoded', encodeURIComponent(text)],
    ['as JSON', JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/')],
  ]
  for (const [name, bytes] of [
    ['', asText],
    [' of its bytes', key],
  ] as const) {
    all.push([`hex${name}`, bytes.toString('hex')])
    all.push([`upper-case hex${name}`, bytes.toString('hex').toUpperCase()])
    for (const lead of [0, 1, 2]) {
      const inside = toBase64Inside(bytes, lead)
      all.push([`base64 ${lead}${name}`, inside])
      all.push([`base64url ${lead}${name}`, inside.replaceAll('+', '-').replaceAll('/', '_')])
    }
  }
  return all.map(([spelling, bytes]) => ({ secret, spelling, bytes: Buffer.from(bytes) }))
}

/** The characters of a base64 text that depend only on `bytes`, with `lead` bytes before them. */
function toBase64Inside(bytes: Buffer, lead: number): string {
  const text = Buffer.concat([Buffer.alloc(lead), bytes])
    .toString('base64')
    .replace(/=+$/, '')
  const isCut = (lead + bytes.length) % 3 !== 0
  return text.slice(lead === 0 ? 0 : lead + 1, isCut ? -1 : undefined)
}
