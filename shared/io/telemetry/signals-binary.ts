/**
 * Encodes signals for the JSON column in RowBinary's binary form: each path with its type and
 * value. For the server this costs a quarter of parsing JSON text, which is half of an event's
 * insert (`npm run bench -- drain`). The stored value is the same as from the text of
 * `encodeSignals`.
 */

import {
  categories,
  type ServerSignals,
  type SignalCategory,
  type Signals,
  serverCategories,
} from '#shared/core/signals/signal-definition.ts'
import { fullCatalog } from '#shared/core/signals/signals.ts'
import { isPlainList } from '#shared/core/signals/signals-column.ts'
import type { RowWriter } from '#shared/io/clickhouse/row-binary.ts'

// The codes of types in ClickHouse's binary encoding.
const typeInt64 = 0x0a
const typeFloat64 = 0x0e
const typeString = 0x15
const typeArray = 0x1e
const typeNullable = 0x23
const typeBool = 0x2d

/** An encoded path, alone and with each boolean value. */
type Prepared = { path: Buffer; yes: Buffer; no: Buffer }

type PreparedOf = ReadonlyMap<string, ReadonlyMap<string, Prepared>>

/** The encoded paths of the catalog's signals, by category and name. */
const prepareAll = (all: readonly SignalCategory[]): PreparedOf =>
  new Map(
    all.map((category) => [
      category,
      new Map(Object.keys(fullCatalog[category]).map((name) => [name, prepare(category, name)])),
    ]),
  )
// A body may carry the names of the service's categories, as unknown ones.
const clientPaths = prepareAll(categories)
const serverPaths = prepareAll(serverCategories)

function prepare(category: string, name: string): Prepared {
  const text = Buffer.from(`${category}.${name}`)
  const path = Buffer.concat([Buffer.of(text.length), text])
  return {
    path,
    yes: Buffer.concat([path, Buffer.of(typeBool, 1)]),
    no: Buffer.concat([path, Buffer.of(typeBool, 0)]),
  }
}

/**
 * Writes signals as a value of the column.
 * @param admit whether the path of an unknown signal may be stored
 * @returns the number of values that were left out
 */
export function writeSignals(
  writer: RowWriter,
  signals: Signals,
  admit: (path: string) => boolean,
): number {
  return writeAll({ writer, admit, count: 0, leftOut: 0, escapedPaths: null }, signals, clientPaths)
}

/** Writes server signals as a value of their column. Edges choose their names, so all are stored. */
export function writeServerSignals(writer: RowWriter, server: ServerSignals): void {
  const state = { writer, admit: () => true, count: 0, leftOut: 0, escapedPaths: null }
  writeAll(state, server, serverPaths)
}

/** @returns the number of values that were left out */
function writeAll(
  state: State,
  signals: Readonly<Record<string, unknown>>,
  paths: PreparedOf,
): number {
  const setCount = state.writer.countLater()
  for (const category in signals) {
    const own: unknown = signals[category]
    const prepared = paths.get(category)
    if (prepared === undefined || typeof own !== 'object' || own === null || Array.isArray(own)) {
      writeValue(state, escapeDots(category), own)
    } else writeCategory(state, category, own as Record<string, unknown>, prepared)
  }
  setCount(state.count)
  return state.leftOut
}

type State = {
  writer: RowWriter
  admit: (path: string) => boolean
  count: number
  leftOut: number
  /** Paths so far that contain an escaped dot, which can occur twice. */
  escapedPaths: Set<string> | null
}

function writeCategory(
  state: State,
  category: string,
  values: Record<string, unknown>,
  prepared: ReadonlyMap<string, Prepared>,
): void {
  const { writer } = state
  for (const name in values) {
    const value = values[name]
    const known = prepared.get(name)
    if (known === undefined) writeValue(state, toSignalPath(category, name), value)
    else if (typeof value === 'boolean') {
      state.count++
      writer.fixed(value ? known.yes : known.no)
    } else if (typeof value === 'number' || typeof value === 'string') {
      state.count++
      writer.fixed(known.path)
      writeScalar(writer, value)
    } else if (value !== null) writePath(state, `${category}.${name}`, value)
  }
}

/** Escapes the dots of a key, as ClickHouse does, so that they differ from the dots of paths. */
const escapeDots = (key: string): string => (key.includes('.') ? key.replaceAll('.', '%2E') : key)

/** @returns the path of a signal in the column */
export const toSignalPath = (category: string, name: string): string =>
  `${category}.${escapeDots(name)}`

function writeValue(state: State, path: string, value: unknown): void {
  if (value === null || value === undefined) return
  if (typeof value === 'object' && !Array.isArray(value)) {
    const own = value as Record<string, unknown>
    for (const key in own) writeValue(state, `${path}.${escapeDots(key)}`, own[key])
    return
  }
  if (!isNew(state, path)) return
  if (state.admit(path)) writePath(state, path, value)
  else state.leftOut++
}

function writePath(state: State, path: string, value: unknown): void {
  const { writer } = state
  state.count++
  writer.string(path)
  if (!Array.isArray(value)) writeScalar(writer, value as string | number | boolean)
  else if (isPlainList(value)) writeList(writer, value)
  else writeScalar(writer, JSON.stringify(value))
}

/** `a%2Eb` can come from two keys, `a.b` and `a%2Eb`: the first one counts. */
function isNew(state: State, path: string): boolean {
  if (!path.includes('%2E')) return true
  state.escapedPaths ??= new Set()
  if (state.escapedPaths.has(path)) return false
  state.escapedPaths.add(path)
  return true
}

function writeScalar(writer: RowWriter, value: string | number | boolean): void {
  if (typeof value === 'string') {
    writer.uint8(typeString)
    writer.string(value)
  } else if (typeof value === 'boolean') {
    writer.uint8(typeBool)
    writer.uint8(value ? 1 : 0)
  } else if (isInt64(value)) {
    writer.uint8(typeInt64)
    writer.int64(value)
  } else {
    writer.uint8(typeFloat64)
    writer.float64(value)
  }
}

const isInt64 = (value: number): boolean => Number.isInteger(value) && Math.abs(value) < 2 ** 63

/** Writes a list of values of one type and nulls. A list of nulls only is a list of texts. */
function writeList(writer: RowWriter, list: readonly unknown[]): void {
  const kind = typeof list.find((item) => item !== null)
  const integers =
    kind === 'number' && list.every((item) => item === null || isInt64(item as number))
  writer.uint8(typeArray)
  writer.uint8(typeNullable)
  if (kind === 'boolean') writer.uint8(typeBool)
  else if (kind === 'number') writer.uint8(integers ? typeInt64 : typeFloat64)
  else writer.uint8(typeString)
  writer.arrayLength(list.length)
  for (const item of list) {
    writer.uint8(item === null ? 1 : 0)
    if (item === null) continue
    if (typeof item === 'string') writer.string(item)
    else if (typeof item === 'boolean') writer.uint8(item ? 1 : 0)
    else if (integers) writer.int64(item as number)
    else writer.float64(item as number)
  }
}
