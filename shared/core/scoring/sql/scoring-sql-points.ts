/**
 * The points of one signal of a stored event, as a ClickHouse expression. Signals are read where it
 * is cheapest and exact: watched booleans from the stored bits, the rest from the JSON column by
 * the type that a value was stored with. The few rows where these are not exact are read from the
 * stored body instead. Server signals are in a JSON column of their own, and in no body.
 */
import {
  findScoredSignal,
  listDeclared,
  type ScoredSignal,
} from '#shared/core/policies/declared-signals.ts'
import type { Policy, SignalWeight, Suppression } from '#shared/core/policies/policy.ts'
import { splitByFlag } from '#shared/core/scoring/score-rules.ts'
import { compileTrust, installerSignal } from '#shared/core/scoring/trusted-installers.ts'
import {
  evidenceVerdicts,
  findVerdictKind,
  playVerdicts,
  type VerdictKind,
} from '#shared/core/scoring/verified-verdicts.ts'
import { toColumnPath } from '#shared/core/signals/column-path.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'
import { isServerCategory, type SignalCategory } from '#shared/core/signals/signal-definition.ts'
import { detectedWhenFalse, watchedSignals } from '#shared/core/signals/watched-signals.ts'
import { unknownSignalsMax } from '#shared/core/telemetry/unknown-signals.ts'
import { quoteNumber, quoteText, quoteTexts } from './scoring-sql-text.ts'

/** `columns`: bits and the JSON column. `body`: the submission itself, a hundred times slower. */
export type Source = 'columns' | 'body'

/**
 * Settings of a query that reads bodies. ClickHouse's usual parser (simdjson) finds nothing in a
 * document that has an integer beyond 64 bits anywhere; the other one reads it as a double.
 */
export const bodySettings = { allow_simdjson: 0 } as const

/** Signals whose bits all rows with bits have. Bits of later signals are missing in older rows. */
const bitsMax = 54
const bitOf = new Map(watchedSignals.slice(0, bitsMax).map((path, bit) => [path, bit]))

type Leaf = {
  category: SignalCategory
  signal: string
  weight: SignalWeight
  policy: Pick<Policy, 'suppressions' | 'trustedInstallers' | 'signals'>
  source: Source
  /** The columns that say that the service verified a verdict; none where no policy asks. */
  verified?: VerifiedColumns | undefined
}

/** By kind of verdict the name of a column beside the points: whether the service verified it. */
export type VerifiedColumns = Readonly<Record<VerdictKind, string>>

function toReader(source: Source, category: SignalCategory, signal: string): Reader {
  const ofBody = source === 'body' && !isServerCategory(category)
  return ofBody ? toBodyReader(category, signal) : toColumnReader(category, signal)
}

/** @returns the points of a signal as UInt8; null when it can have none */
export function pointsOf(leaf: Leaf): string | null {
  const { category, signal, weight, policy, source, verified } = leaf
  const reader = ofType(
    toReader(source, category, signal),
    findScoredSignal(policy, category, signal),
  )
  const points = weigh(weight, reader)
  if (points === null) return null
  const path = `${category}.${signal}`
  const acting = policy.suppressions.flatMap((one) => (names(one, path) ? toCondition(one) : []))
  const trusted = toTrustedCondition(policy, path, source)
  if (trusted !== null) acting.push(trusted)
  const kind = findVerdictKind(path)
  if (verified !== undefined && kind !== null) acting.push(verified[kind])
  return acting.length === 0 ? points : `if(${acting.join(' or ')}, toUInt8(0), ${points})`
}

/** The points of the values of one flag. */
export type FlagPoints = { flag: Flag; sql: string }

/**
 * The points of a signal by the flag of its values.
 * @returns one flag for most signals
 */
export function flagPointsOf(leaf: Leaf): FlagPoints[] {
  const { category, signal, weight, policy } = leaf
  const definition = findScoredSignal(policy, category, signal)!
  const all = { flag: definition.flag, sql: pointsOf(leaf) ?? 'toUInt8(0)' }
  if (definition.flagByValue === undefined) return [all]
  if (typeof weight !== 'object' || !('values' in weight)) return [all]
  return splitByFlag({ category, name: signal }, definition, weight).map((one) => ({
    flag: one.flag,
    sql: pointsOf({ ...leaf, weight: one.weight }) ?? 'toUInt8(0)',
  }))
}

/**
 * A declared signal is a text or a list of texts, and a value of the other form scores nothing. Nor
 * does a number beyond those that a double holds.
 */
function ofType(reader: Reader, definition: ScoredSignal | undefined): Reader {
  if (definition === undefined || !definition.declared) return reader
  if (definition.type === 'number') {
    const { atLeast } = reader
    const [from, beyond] = [Number.MIN_SAFE_INTEGER + 1, Number.MAX_SAFE_INTEGER].map(quoteNumber)
    const isPlain = `${atLeast(from!)} and not ${atLeast(beyond!)}`
    return { ...reader, atLeast: (limit) => `(${atLeast(limit)} and ${isPlain})` }
  }
  if (definition.type === 'strings') return { ...reader, text: 'cast(null as Nullable(String))' }
  const list = 'cast([] as Array(Nullable(String)))'
  return { ...reader, list, isEmptyList: '(1 = 0)' }
}

/** SQL: the installer is trusted, so the signal scores nothing; null where it never does. */
function toTrustedCondition(
  { trustedInstallers }: Pick<Policy, 'trustedInstallers'>,
  path: string,
  source: Source,
): string | null {
  const trust = compileTrust(trustedInstallers)
  if (trust === null || !trust.silences.has(path)) return null
  const { text } = toReader(source, installerSignal.category, installerSignal.name)
  const packages = [...trust.packages].filter(isText)
  return packages.length === 0 ? null : `has(${quoteTexts(packages)}, ifNull(${text}, ''))`
}

/** SQL: the service verified a verdict of this kind itself. */
export function toVerifiedCondition(kind: VerdictKind): string {
  const found =
    kind === 'evidence'
      ? evidenceVerdicts.map((name) => toColumnReader('attestation', name).isTrue)
      : playVerdicts.map((name) => `dynamicType(${toColumnPath('attestation', name)}) != 'None'`)
  return `(${found.join(' or ')})`
}

/** Expressions that read a signal of a row by type. For a value of another type none is true. */
type Reader = {
  isTrue: string
  isFalse: string
  atLeast: (limit: string) => string
  /** A text, or null. */
  text: string
  isEmptyList: string
  /** Texts of a list; empty when it is none. */
  list: string
}

function toColumnReader(category: SignalCategory, signal: string): Reader {
  const path = toColumnPath(category, signal)
  const bit = bitOf.get(`${category}.${signal}`)
  const texts = 'Array(Nullable(String))'
  const inverse = detectedWhenFalse.has(`${category}.${signal}`)
  const bits = (word: string) => `bitTest(${word}, ${bit})`
  const isTrue = bits(inverse ? 'clean_bits' : 'detected_bits')
  const isFalse = bits(inverse ? 'detected_bits' : 'clean_bits')
  return {
    isTrue: bit === undefined ? `ifNull(${path}.:Bool, false)` : isTrue,
    isFalse: bit === undefined ? `ifNull(not ${path}.:Bool, false)` : isFalse,
    atLeast: (limit) =>
      `(ifNull(${path}.:Int64 >= ${limit}, 0) or ifNull(${path}.:Float64 >= ${limit}, 0))`,
    text: `${path}.:String`,
    // An absent list reads as an empty one, but has another type.
    isEmptyList: `(dynamicType(${path}) = '${texts}' and empty(${path}.:\`${texts}\`))`,
    list: `${path}.:\`${texts}\``,
  }
}

function toBodyReader(category: SignalCategory, signal: string): Reader {
  const at = `body, 'signals', ${quoteText(category)}, ${quoteText(signal)}`
  const type = `JSONType(${at})`
  const items = `JSONExtractArrayRaw(${at})`
  const decode = `arrayMap(x -> if(JSONType(x) = 'String', JSONExtractString(x), null), ${items})`
  return {
    isTrue: `(JSONExtractRaw(${at}) = 'true')`,
    isFalse: `(JSONExtractRaw(${at}) = 'false')`,
    atLeast: (limit) =>
      `(${type} in ('Int64', 'UInt64', 'Double') and JSONExtractFloat(${at}) >= ${limit})`,
    text: `if(${type} = 'String', JSONExtractString(${at}), null)`,
    isEmptyList: `(${type} = 'Array' and empty(${items}))`,
    list: `if(${type} = 'Array', ${decode}, [])`,
  }
}

function weigh(weight: SignalWeight, reader: Reader): string | null {
  if (typeof weight === 'number') return when(reader.isTrue, weight)
  if ('whenFalse' in weight) return when(reader.isFalse, weight.whenFalse)
  if ('atLeast' in weight) return when(reader.atLeast(quoteNumber(weight.atLeast)), weight.weight)
  return weighValues(weight, reader)
}

function when(condition: string, points: number): string | null {
  return points === 0 ? null : `if(${condition}, toUInt8(${points}), toUInt8(0))`
}

function weighValues(
  { values, unless = [] }: Extract<SignalWeight, { values: unknown }>,
  { text, list, isEmptyList }: Reader,
): string | null {
  // Stored text is well formed, so ill-formed text equals none of it. Encoding would change that.
  const known = Object.entries(values).filter(([value, points]) => points > 0 && isText(value))
  if (known.length === 0) return null
  const keys = quoteTexts(known.map(([value]) => value))
  const points = `[${known.map(([, one]) => `toUInt8(${one})`).join(', ')}]`
  const look = (value: string) => `transform(${value}, ${keys}, ${points}, toUInt8(0))`
  const ofNullable = (value: string) =>
    `if(isNull(${value}), toUInt8(0), ${look(`assumeNotNull(${value})`)})`
  const highest = `arrayMax(arrayMap(v -> ${ofNullable('v')}, ${list}))`
  const excused = unless.filter(isText)
  const unlessNone =
    excused.length === 0
      ? highest
      : `if(hasAny(${list}, ${quoteTexts(excused)}), toUInt8(0), ${highest})`
  const ofList = `if(empty(${list}), toUInt8(0), ${unlessNone})`
  const ofEmpty = when(isEmptyList, values['(empty)'] ?? 0)
  return `greatest(${[ofNullable(text), ofList, ...(ofEmpty === null ? [] : [ofEmpty])].join(', ')})`
}

function isText(text: string): boolean {
  return text.isWellFormed()
}

function names({ signals }: Suppression, path: string): boolean {
  return signals.some((one) =>
    one.endsWith('.*') ? path.startsWith(one.slice(0, -1)) : one === path,
  )
}

/** When a suppression acts, over the columns of a row; empty when it never does. */
function toCondition({ expiresAt, sdkVersions, platforms }: Suppression): string[] {
  const conditions: string[] = []
  if (expiresAt !== null) {
    const expiresAtMs = Date.parse(expiresAt)
    if (Number.isNaN(expiresAtMs)) return []
    conditions.push(`toUnixTimestamp64Milli(received_at) < ${expiresAtMs}`)
  }
  if (sdkVersions !== undefined) conditions.push(`(${anyOf(sdkVersions.flatMap(toVersion))})`)
  if (platforms !== undefined) conditions.push(`(${anyOf(platforms.flatMap(toPlatform))})`)
  return [conditions.length === 0 ? '1' : `(${conditions.join(' and ')})`]
}

/**
 * The conditions of all suppressions of the policies, each once. Two rows with the same results
 * have the same signals suppressed.
 */
export function listSuppressionConditions(policies: readonly Policy[]): string[] {
  const all = policies.flatMap(({ suppressions }) => suppressions.flatMap(toCondition))
  return [...new Set(all)].filter((condition) => condition !== '1').sort()
}

const anyOf = (conditions: readonly string[]) =>
  conditions.length === 0 ? '0' : [...new Set(conditions)].join(' or ')

function toVersion(version: string): string[] {
  if (!isText(version)) return []
  const exact = `sdk_version = ${quoteText(version)}`
  if (!version.endsWith('.*')) return [exact]
  return [exact, `startsWith(sdk_version, ${quoteText(version.slice(0, -1))})`]
}

function toPlatform(platform: string): string[] {
  const lower = platform.toLowerCase()
  return isText(lower) ? [`${lowerPlatform} = ${quoteText(lower)}`] : []
}

const lowerPlatform = 'lowerUTF8(platform)'

/**
 * The condition for rows whose columns are not exact: without parsed signals, from before there
 * were bits, or with a list that was unknown when it was stored and may be stored as JSON text.
 */
export function needsBody(policies: readonly Policy[]): string {
  const listed = policies.flatMap(({ categories }) =>
    Object.entries(categories).flatMap(([category, { signals }]) =>
      Object.entries(signals)
        .filter(([, weight]) => typeof weight === 'object' && 'values' in weight)
        .map(([name]) => `${category}.${name}`),
    ),
  )
  const declared = policies.flatMap(listDeclared)
  // Columns hold numbers and objects beyond the catalog in other forms than the body does.
  const inexact = declared.filter(({ type }) => type !== 'boolean').map(({ path }) => path)
  const required = policies.flatMap(({ requiredSignals }) => requiredSignals?.signals ?? [])
  const paths = toPaths([...listed, ...inexact, ...required])
  const booleans = toPaths(declared.map(({ path }) => path))
  return [
    'signals_refused',
    'stream_offset = 0',
    `(notEmpty(unknown_signals) and (length(unknown_signals) >= ${unknownSignalsMax} or hasAny(` +
      `unknown_signals, ${quoteTexts(paths)})))`,
    ...(booleans.length === 0
      ? []
      : [`(signals_left_out > 0 and hasAny(unknown_signals, ${quoteTexts(booleans)}))`]),
  ].join(' or ')
}

const toPaths = (paths: readonly string[]) => [...new Set(paths)].filter(isText).sort()
