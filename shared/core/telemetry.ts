/**
 * Telemetry as clients send it: one byte scan that finds the tenant before anything is trusted, and
 * one parse and validation after the signature has been verified over the raw bytes. The parsed
 * tenant must be the scanned one, so no spelling of a body can be verified as one tenant's and
 * stored as another's.
 */
import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { tenantIdPattern } from './ids.ts'
import { isTime } from './instants.ts'
import {
  categoryKeysMax,
  clientFlagsMax,
  idCharactersMax,
  jsonDepthMax,
  metaCharactersMax,
} from './limits.ts'
import type { ProblemDetail } from './problem.ts'
import { checkKnownSignals } from './signals.ts'
import {
  controlCharacters,
  countUnknownSignals,
  type Findings,
  isForbiddenKey,
  isObject,
  isPlainlyValid,
} from './telemetry-check.ts'

/** The six categories of `signals`, in the order of the public interface. */
export const categories = [
  'root',
  'emulator',
  'debugger',
  'tamper',
  'ecosystem',
  'network',
] as const
export type Category = (typeof categories)[number]

/**
 * Detection data of one category: known signals are typed by the catalog, unknown ones are kept.
 */
export type CategorySignals = Record<string, unknown>
export type Signals = Record<Category, CategorySignals>

/** What a device, session, user or account id can be. */
export const idSchema = z
  .string()
  .min(1)
  .max(idCharactersMax)
  .refine((id) => !controlCharacters.test(id), 'must not contain control characters')

const metaSchema = z.string().max(metaCharactersMax)
// The catalog checks what is inside; a record schema would copy every key of every event.
const categorySchema = z.custom<CategorySignals>(isObject, 'must be an object')

/** The submission of the public interface; unknown extra fields are accepted and kept. */
export const telemetrySchema = z.looseObject({
  tenant_id: z.string().regex(tenantIdPattern),
  device_id: idSchema,
  session_id: idSchema,
  user_id: idSchema.optional(),
  account_id: idSchema.optional(),
  occurred_at: z.string().refine(isTime, 'must be an ISO-8601 time').optional(),
  sdk_meta: z.looseObject({
    sdk_version: metaSchema,
    platform: metaSchema,
    batch_type: metaSchema,
  }),
  scorer: z.looseObject({
    rasp_score: z.number(),
    rasp_action: metaSchema,
    rasp_flags: z.array(metaSchema).max(clientFlagsMax),
  }),
  signals: z.looseObject({
    root: categorySchema,
    emulator: categorySchema,
    debugger: categorySchema,
    tamper: categorySchema,
    ecosystem: categorySchema,
    network: categorySchema,
  }),
})

export type Telemetry = z.infer<typeof telemetrySchema>

/** What the byte scan saw. */
export type Scan = {
  /** The first top-level `tenant_id`, when it is a string that can be a slug. */
  tenantId: string | null
  /** Deepest nesting of objects and arrays. */
  depth: number
  /** Object members anywhere in the body: more than the parsed tree has means duplicate keys. */
  members: number
  /** Whether a `\u` escape occurs, the only way to write a lone surrogate or a hidden key. */
  unicodeEscape: boolean
}

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const comma = 0x2c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const letterU = 0x75
const tenantKey = Buffer.from('tenant_id')

/**
 * Scans a body once, byte by byte, without trusting or parsing it. It is exact for every legal JSON
 * text; for anything else the parse that follows verification has the last word.
 * @param body at most `bodyBytesMax` bytes
 */
export function scanTelemetry(body: Buffer): Scan {
  const scan: Scan = { tenantId: null, depth: 0, members: 0, unicodeEscape: false }
  const { length } = body
  let depth = 0
  let deepest = 0
  let members = 0
  let keyIsTenant = false
  let found = false
  let stringStart = -1
  let stringEnd = -1
  for (let at = 0; at < length; at++) {
    const byte = body[at]
    if (byte === quote) {
      stringStart = at + 1
      stringEnd = findStringEnd(body, stringStart, scan)
      at = stringEnd
      if (keyIsTenant) {
        scan.tenantId = toSlug(body, stringStart, stringEnd)
        found = true
        keyIsTenant = false
      }
    } else if (byte === colon) {
      // Outside a string: the string before it was a member's key.
      members++
      if (depth === 1 && !found) keyIsTenant = isTenantKey(body, stringStart, stringEnd)
    } else if (byte === openBrace || byte === openBracket) {
      depth++
      keyIsTenant = false
      if (depth > deepest) deepest = depth
    } else if (byte === closeBrace || byte === closeBracket) {
      depth--
    } else if (byte === comma) {
      keyIsTenant = false
    }
  }
  scan.depth = deepest
  scan.members = members
  return scan
}

/** @returns the index of the closing quote, or the body's length when there is none */
function findStringEnd(body: Buffer, start: number, scan: Scan): number {
  let at = start
  let byte = body[at]
  while (byte !== quote && byte !== undefined) {
    if (byte === backslash && body[++at] === letterU) scan.unicodeEscape = true
    byte = body[++at]
  }
  return at
}

function isTenantKey(body: Buffer, start: number, end: number): boolean {
  if (end - start === tenantKey.length) {
    return body.compare(tenantKey, 0, tenantKey.length, start, end) === 0
  }
  // A longer spelling can only be the same key through escapes, each of at most six bytes.
  if (start < 0 || end - start < tenantKey.length || end - start > tenantKey.length * 6)
    return false
  return unescapeJson(body, start, end) === 'tenant_id'
}

function toSlug(body: Buffer, start: number, end: number): string | null {
  if (end - start > 63 * 6) return null
  const text = body.toString('latin1', start, end)
  const slug = text.includes('\\') ? unescapeJson(body, start, end) : text
  return slug !== null && tenantIdPattern.test(slug) ? slug : null
}

function unescapeJson(body: Buffer, start: number, end: number): string | null {
  try {
    return JSON.parse(`"${body.toString('utf8', start, end)}"`) as string
  } catch {
    return null
  }
}

export type ParsedTelemetry =
  | { ok: true; telemetry: Telemetry; unknownSignals: number }
  | { ok: false; errors: ProblemDetail[]; otherTenant: boolean }

/**
 * Parses and validates a body whose signature has been verified for `scan.tenantId`.
 * @returns the telemetry, or every fault with its JSON path;
 * `otherTenant` when the parsed tenant is not the verified one, which is an authentication failure
 */
export function parseTelemetry(body: Buffer, scan: Scan): ParsedTelemetry {
  if (scan.depth > jsonDepthMax) {
    return refuse('$', `is nested deeper than ${jsonDepthMax} levels`)
  }
  if (!isUtf8(body)) return refuse('$', 'is not valid UTF-8')
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    return { ...refuse('$', 'is not valid JSON'), otherTenant: true }
  }
  if (!isObject(value)) return { ...refuse('$', 'must be an object'), otherTenant: true }
  if (value.tenant_id !== scan.tenantId) {
    return { ...refuse('$.tenant_id', 'is not the verified tenant'), otherTenant: true }
  }
  const findings: Findings = { unknownSignals: 0 }
  if (!scan.unicodeEscape && isPlainlyValid(value, scan.members, findings)) {
    return { ok: true, telemetry: value as Telemetry, ...findings }
  }
  const walk: Walk = { members: 0, checkText: scan.unicodeEscape, errors: [] }
  walkValue(value, '$', walk)
  if (walk.errors.length === 0 && walk.members !== scan.members) {
    walk.errors.push({ path: '$', message: 'contains a duplicate key' })
  }
  if (walk.errors.length > 0) return { ok: false, errors: walk.errors, otherTenant: false }
  const parsed = telemetrySchema.safeParse(value)
  if (!parsed.success) {
    return { ok: false, errors: toProblemDetails(parsed.error), otherTenant: false }
  }
  const errors = checkSignals(value.signals as Signals)
  if (errors.length > 0) return { ok: false, errors, otherTenant: false }
  const unknownSignals = countUnknownSignals(value.signals as Signals)
  return { ok: true, telemetry: value as Telemetry, unknownSignals }
}

function refuse(path: string, message: string) {
  return { ok: false as const, errors: [{ path, message }], otherTenant: false }
}

function checkSignals(signals: Signals): ProblemDetail[] {
  const errors: ProblemDetail[] = []
  for (const category of categories) {
    if (Object.keys(signals[category]).length > categoryKeysMax) {
      const message = `has more than ${categoryKeysMax} keys`
      errors.push({ path: `$.signals.${category}`, message })
    } else {
      checkKnownSignals(category, signals[category], errors)
    }
  }
  return errors
}

type Walk = { members: number; checkText: boolean; errors: ProblemDetail[] }

/** Most faults that one answer lists. */
const faultsListedMax = 32

// What JSON.parse lets through and no store or analyst can use: lone surrogates, numbers that lost
// their value, and keys that other languages' object models act upon.
function walkValue(value: unknown, path: string, walk: Walk): void {
  if (typeof value === 'string') {
    if (walk.checkText && !value.isWellFormed()) fault(walk, path, 'contains a lone surrogate')
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) fault(walk, path, 'is not a finite number')
    else if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      fault(walk, path, 'is an integer beyond 2^53')
    }
  } else if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index]
      if (typeof item !== 'boolean' && item !== null) walkValue(item, `${path}[${index}]`, walk)
    }
  } else if (typeof value === 'object' && value !== null) {
    walkObject(value as Record<string, unknown>, path, walk)
  }
}

function walkObject(value: Record<string, unknown>, path: string, walk: Walk): void {
  for (const key of Object.keys(value)) {
    walk.members++
    if (isForbiddenKey(key)) {
      fault(walk, path, `has a key that is not allowed: ${key}`)
    } else if (walk.checkText && !key.isWellFormed()) {
      fault(walk, path, 'has a key with a lone surrogate')
    }
    const item = value[key]
    if (typeof item !== 'boolean' && item !== null) walkValue(item, `${path}.${key}`, walk)
  }
}

function fault(walk: Walk, path: string, message: string): void {
  if (walk.errors.length < faultsListedMax) walk.errors.push({ path, message })
}

/** Zod issues as JSON paths and reasons, at most 32 of them. */
function toProblemDetails(error: z.ZodError): ProblemDetail[] {
  return error.issues.slice(0, faultsListedMax).map((issue) => ({
    path: `$${issue.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')}`,
    message: issue.message,
  }))
}
