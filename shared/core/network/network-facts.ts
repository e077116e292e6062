/**
 * Facts of networks in columns of typed arrays, so that a database of a million facts is a few
 * arrays that move between threads without a copy. A fact has a number from 1; 0 stands for none.
 */
import { Buffer } from 'node:buffer'
import { databaseFactsMax } from '../base/limits/lists.ts'
import { type RecordFacts, toKindBits } from './record-members.ts'

export type FactColumns = {
  /** 26 * first letter + second letter + 1; 0 for none. */
  countries: Uint16Array
  /** 0 for none. */
  asns: Uint32Array
  /** NaN for none. */
  latitudes: Float32Array
  longitudes: Float32Array
  /** A bit for each of `networkKinds`. */
  kinds: Uint8Array
  /** The kinds of all facts together. */
  heldKinds: number
  /** Which name the organization has, from 1; 0 for none. */
  names: Uint32Array
  /** Where each name begins in `text`, and the end of the last one. */
  nameStarts: Uint32Array
  /** The names in UTF-8, one behind the other. */
  text: Uint8Array
}

const letterA = 65
/** The texts of all codes, so that no fact makes one. */
const countryTexts = Array.from({ length: 26 * 26 }, (_, at) =>
  String.fromCharCode(letterA + Math.floor(at / 26), letterA + (at % 26)),
)

const toCountryNumber = (code: string | null): number =>
  code === null ? 0 : 26 * (code.charCodeAt(0) - letterA) + (code.charCodeAt(1) - letterA) + 1

/** The country of a fact, ISO 3166-1 alpha-2; null for none. */
export function countryOf({ countries }: FactColumns, fact: number): string | null {
  const number = countries[fact]!
  return number === 0 ? null : countryTexts[number - 1]!
}

/** The operator's name of a fact; null for none. */
export function organizationOf(columns: FactColumns, fact: number): string | null {
  const name = columns.names[fact]!
  if (name === 0) return null
  const { buffer, byteOffset } = columns.text
  const [start, end] = [columns.nameStarts[name - 1]!, columns.nameStarts[name]!]
  return Buffer.from(buffer, byteOffset + start, end - start).toString('utf8')
}

export type FactWriter = {
  /** @returns the number of these facts; equal ones have the same. 0 when there are too many */
  add: (facts: RecordFacts) => number
  finish: () => FactColumns
}

export function createFactWriter(): FactWriter {
  const facts: (RecordFacts & { name: number })[] = []
  const numbers = new Map<string, number>()
  const names = new Map<string, number>()

  function toName(organization: string | null): number {
    if (organization === null) return 0
    const name = names.get(organization) ?? names.size + 1
    names.set(organization, name)
    return name
  }

  return {
    add: (fact) => {
      const name = toName(fact.organization)
      const { country, asn, latitude, longitude, kinds } = fact
      const key = [country, asn, latitude, longitude, toKindBits(kinds), name].join()
      const known = numbers.get(key)
      if (known !== undefined) return known
      if (facts.length === databaseFactsMax) return 0
      facts.push({ ...fact, name })
      numbers.set(key, facts.length)
      return facts.length
    },
    finish: () => {
      /** Number 0 stands for none. */
      const column = (read: (fact: RecordFacts & { name: number }) => number, none = 0) => [
        none,
        ...facts.map(read),
      ]
      const texts = [...names.keys()].map((text) => Buffer.from(text, 'utf8'))
      const nameStarts = new Uint32Array(texts.length + 1)
      for (const [at, text] of texts.entries()) nameStarts[at + 1] = nameStarts[at]! + text.length
      const kinds = Uint8Array.from(column((fact) => toKindBits(fact.kinds)))
      return {
        countries: Uint16Array.from(column(({ country }) => toCountryNumber(country))),
        asns: Uint32Array.from(column(({ asn }) => asn ?? 0)),
        latitudes: Float32Array.from(column(({ latitude }) => latitude ?? Number.NaN, Number.NaN)),
        longitudes: Float32Array.from(
          column(({ longitude }) => longitude ?? Number.NaN, Number.NaN),
        ),
        kinds,
        heldKinds: kinds.reduce((bits, own) => bits | own, 0),
        names: Uint32Array.from(column(({ name }) => name)),
        nameStarts,
        text: Uint8Array.from(Buffer.concat(texts)),
      }
    },
  }
}
