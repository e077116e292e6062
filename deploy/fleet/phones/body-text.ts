/**
 * JSON in the styles of different SDKs: key order, spacing and escaping vary, the value is the
 * same.
 * Each style is that of a widespread encoder.
 */
import { hashToUnit } from './random.ts'

export type BodyStyle = {
  /** As declared in the source, by name, or in the order of a hash table. */
  order: 'declared' | 'sorted' | 'hashed'
  spacing: 'compact' | 'spaced' | 'indented'
  /** `\/`, as Foundation's encoder writes. */
  escapeSlashes: boolean
  /** `\u00fc` for everything beyond ASCII. */
  escapeUnicode: boolean
}

const plain: BodyStyle = {
  order: 'declared',
  spacing: 'compact',
  escapeSlashes: false,
  escapeUnicode: false,
}

/** The encoders behind the SDKs. */
export const bodyStyles = {
  kotlinx: plain,
  foundation: { ...plain, order: 'hashed', escapeSlashes: true },
  dart: plain,
  jackson: { ...plain, order: 'sorted' },
  python: { ...plain, spacing: 'spaced', escapeUnicode: true },
  dotnet: { ...plain, spacing: 'indented', escapeUnicode: true },
} as const satisfies Record<string, BodyStyle>

type Value = unknown

/** Writes a value in a style; deterministic. */
export function toBodyText(value: Value, style: BodyStyle): string {
  const ordered = style.order === 'declared' ? value : reorder(value, style.order)
  let text = style.spacing === 'spaced' ? toSpacedText(ordered) : toJson(ordered, style)
  if (style.escapeSlashes) text = text.replaceAll('/', '\\/')
  if (style.escapeUnicode) text = text.replace(/[\u0080-\uffff]/g, toEscape)
  return text
}

function toJson(value: Value, style: BodyStyle): string {
  return style.spacing === 'indented' ? JSON.stringify(value, null, 2) : JSON.stringify(value)
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function isObject(value: Value): value is Record<string, Value> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const hashes = new Map<string, number>()

/** The place of a key in a hash table; cached, because there are about a hundred keys. */
function placeOf(key: string): number {
  let place = hashes.get(key)
  if (place === undefined) {
    place = hashToUnit(`bucket/${key}`)
    hashes.set(key, place)
  }
  return place
}

function reorder(value: Value, order: 'sorted' | 'hashed'): Value {
  if (!isObject(value)) return value
  const keys = Object.keys(value)
  if (order === 'sorted') keys.sort()
  else keys.sort((a, b) => placeOf(a) - placeOf(b))
  const result: Record<string, Value> = {}
  for (const key of keys) result[key] = reorder(value[key], order)
  return result
}

function toSpacedText(value: Value): string {
  if (Array.isArray(value)) return `[${value.map(toSpacedText).join(', ')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const members = Object.entries(value).map(
    ([key, member]) => `${JSON.stringify(key)}: ${toSpacedText(member)}`,
  )
  return `{${members.join(', ')}}`
}
