/**
 * Splits a verified body with many submissions, `{"tenant_id", "events": [...]}`, into the bytes of
 * each, without a parse. The bytes of an event are its raw body: they have the event id that they
 * have when they are sent alone.
 */
import { isUtf8 } from 'node:buffer'
import { clientBatchEventsMax } from '#shared/core/base/limits/ingest.ts'
import { jsonDepthMax, membersMax } from '#shared/core/base/limits/telemetry.ts'
import type { ProblemDetail } from '#shared/core/http/problem.ts'
import { findStringEnd, scanBody } from '../body-scan.ts'
import { isObject } from '../submission.ts'
import { findDuplicateMember } from './duplicate-member.ts'
import { describeJsonFault } from './json-syntax.ts'

export type SplitBatch =
  /** `events` are views into the body, in their order, without white space around them. */
  { ok: true; events: Buffer[] } | { ok: false; errors: readonly ProblemDetail[] }

const [quote, colon, comma] = [0x22, 0x3a, 0x2c]
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]
const eventsKey = Buffer.from('"events"')
const zero = Buffer.from('0')

/** @param tenantId `findTenant` of the body, which was verified for it */
export function splitBatch(body: Buffer, tenantId: string): SplitBatch {
  const found = findEvents(body)
  if (found.length > clientBatchEventsMax) {
    return refuse('$.events', `has more than ${clientBatchEventsMax} events`)
  }
  const errors = checkEnvelope(body, found, tenantId)
  if (errors.length > 0) return { ok: false, errors }
  return { ok: true, events: found.map(([start, end]) => body.subarray(start, end)) }
}

const refuse = (path: string, message: string): SplitBatch => ({
  ok: false,
  errors: [{ path, message }],
})

type Range = [start: number, end: number]

/** The elements of the first top-level `events`: one more than the most, when there are more. */
function findEvents(body: Buffer): Range[] {
  let depth = 0
  let keyStart = -1
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) {
      keyStart = at
      at = findStringEnd(body, at + 1)
    } else if (byte === colon) {
      if (depth === 1 && isEventsKey(body, keyStart)) return listElements(body, at + 1)
      keyStart = -1
    } else if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) depth--
  }
  return []
}

const isEventsKey = (body: Buffer, start: number): boolean =>
  start >= 0 && body.compare(eventsKey, 0, eventsKey.length, start, start + eventsKey.length) === 0

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** @param after the index after the colon of `events` */
function listElements(body: Buffer, after: number): Range[] {
  const ranges: Range[] = []
  let at = skipSpaces(body, after)
  if (body[at] !== openBracket) return ranges
  do {
    const start = skipSpaces(body, at + 1)
    at = findElementEnd(body, start)
    let end = at
    while (end > start && isSpace(body[end - 1])) end--
    // Nothing stands where a comma is too many, which makes the envelope no JSON.
    if (end > start) ranges.push([start, end])
  } while (body[at] === comma && ranges.length <= clientBatchEventsMax)
  return ranges
}

function skipSpaces(body: Buffer, start: number): number {
  let at = start
  while (isSpace(body[at])) at++
  return at
}

/** The index of the comma or the bracket after an element; the body's length when there is none. */
function findElementEnd(body: Buffer, start: number): number {
  let depth = 0
  for (let at = start; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) at = findStringEnd(body, at + 1)
    else if (byte === openBrace || byte === openBracket) depth++
    else if (depth === 0 && (byte === comma || byte === closeBracket)) return at
    else if (byte === closeBrace || byte === closeBracket) depth--
  }
  return body.length
}

/** Checks what is left of a batch when each event is a zero. */
function checkEnvelope(
  body: Buffer,
  events: readonly Range[],
  tenantId: string,
): readonly ProblemDetail[] {
  const envelope = toEnvelope(body, events)
  const scan = scanBody(envelope)
  const fault = (path: string, message: string): ProblemDetail[] => [{ path, message }]
  if (scan.depth > jsonDepthMax) return fault('$', `is nested deeper than ${jsonDepthMax} levels`)
  if (scan.members > membersMax) return fault('$', `has more than ${membersMax} members in all`)
  if (!isUtf8(envelope)) return fault('$', 'is not valid UTF-8 outside of events')
  const text = envelope.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The events were not checked, and their faults are described by recursion over levels.
    const isReadable = scanBody(body).depth <= jsonDepthMax + 2 && isUtf8(body)
    return fault('$', isReadable ? describeJsonFault(body) : 'is not valid JSON')
  }
  if (!isObject(value)) return fault('$', 'must be an object')
  if (value.tenant_id !== tenantId) return fault('$.tenant_id', 'is given more than once')
  return checkMembers(value, { text, members: scan.members, events: events.length })
}

function toEnvelope(body: Buffer, events: readonly Range[]): Buffer {
  const parts: Buffer[] = []
  let at = 0
  for (const [start, end] of events) {
    parts.push(body.subarray(at, start), zero)
    at = end
  }
  return Buffer.concat([...parts, body.subarray(at)])
}

/** Unknown members that one answer names. */
const namedMax = 8

function checkMembers(
  value: Record<string, unknown>,
  { text, members, events }: { text: string; members: number; events: number },
): readonly ProblemDetail[] {
  const unknown = Object.keys(value).filter((key) => key !== 'tenant_id' && key !== 'events')
  if (unknown.length > 0) {
    return unknown.slice(0, namedMax).map((key) => ({
      path: `$.${key.slice(0, 64)}`,
      message: 'is no member of a batch; it belongs into each event',
    }))
  }
  const fault = describeEvents(value.events, events)
  if (fault !== null) return [{ path: '$.events', message: fault }]
  // An object within `events` that was not found as an event also has members.
  if (members === 2) return []
  return [{ path: findDuplicateMember(text) ?? '$.events', message: 'is given more than once' }]
}

function describeEvents(value: unknown, found: number): string | null {
  if (value === undefined) return 'is missing'
  if (!Array.isArray(value)) return 'must be an array'
  if (value.length === 0) return 'has no event'
  return found === 0 ? 'must be spelled without escapes' : null
}
