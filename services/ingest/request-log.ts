/**
 * The request log of this edge: the latest submissions of each tenant with their answer, and the
 * registrations of installs that were refused, for a person who looks why a client is refused. It
 * is kept in memory only and is bounded per tenant and in all. Accepted submissions, refused ones
 * and those without a verified signature are kept apart, so a stranger who names a tenant pushes
 * out nothing but what other strangers sent.
 */
import { LRUCache } from 'lru-cache'
import {
  requestLogDetailCharactersMax,
  requestLogEntriesMax,
  requestLogIdCharactersMax,
  requestLogReadBytes,
  requestLogTenantEntriesMax,
  requestLogWaitingMax,
} from '#shared/core/base/limits/ingest.ts'
import { type Problem, problemStatus } from '#shared/core/http/problem.ts'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import { findMember } from '#shared/core/telemetry/json/find-member.ts'
import type {
  RequestLogAnswer,
  RequestLogEntry,
  SubmissionKind,
} from '#shared/core/telemetry/request-log.ts'
import type { Acceptance } from './decide-submission.ts'
import type { Refusal } from './refusals.ts'

export type RequestLog = {
  /** Notes a submission that is stored. */
  noteAccepted: (acceptance: Acceptance, requestId: string) => void
  /**
   * Notes a refused one some milliseconds later, if it can be tied to a tenant.
   * @param kind telemetry unless given
   */
  noteRefused: (refusal: Refusal, body: Buffer, requestId: string, kind?: SubmissionKind) => void
  /** What is remembered of a tenant. */
  read: (tenantId: string) => Omit<RequestLogAnswer, 'edge_id'>
  /** Forgets what is remembered of these devices of a tenant; null for all of the tenant. */
  forget: (tenantId: string, deviceIds: readonly string[] | null) => void
}

type RequestLogOptions = {
  /** Whether this edge knows the tenant. */
  hasTenant: (tenantId: string) => boolean
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
}

/**
 * How long a refused body waits until it is read. Reading it right after the response would delay
 * the next response measurably and so reveal whether the tenant exists.
 */
const readAfterMs = 20

type Waiting = {
  kind: SubmissionKind
  refusal: Refusal
  body: Buffer
  requestId: string
  atMs: number
}

/** What stays when all entries are too many: the next 1,000 need no other look at all tenants. */
const requestLogKeptShare = 0.9

/** Creates an empty log. */
export function createRequestLog({ hasTenant, wallMs }: RequestLogOptions): RequestLog {
  const accepted = createRings()
  const refused = createRings()
  const unverified = createRings()
  const sinceMs = wallMs()
  let leftOut = 0
  let waiting: { verified: Waiting[]; unverified: Waiting[] } = { verified: [], unverified: [] }
  let timer: NodeJS.Timeout | undefined
  const readWaiting = () => {
    clearTimeout(timer)
    timer = undefined
    const noted = waiting
    waiting = { verified: [], unverified: [] }
    for (const one of noted.verified) refused.add(one.refusal.verifiedTenantId!, toRefused(one))
    for (const one of noted.unverified) {
      // Made for every one, so that its time does not reveal which tenants exist.
      const entry = toRefused(one)
      const tenantId = findTenant(one.body.subarray(0, requestLogReadBytes))
      if (tenantId !== null && hasTenant(tenantId)) unverified.add(tenantId, entry)
    }
  }
  return {
    noteAccepted: (acceptance, requestId) =>
      accepted.add(acceptance.tenantId, {
        kind: 'telemetry',
        at_ms: acceptance.receivedAtMs,
        request_id: requestId,
        status: 200,
        code: 'accepted',
        reason: null,
        detail: null,
        verified: true,
        device_id: acceptance.deviceId,
        sdk_version: acceptance.sdkVersion,
        event_id: acceptance.eventId,
        rasp_score: acceptance.score,
        rasp_action: acceptance.action,
      }),
    noteRefused: (refusal, body, requestId, kind = 'telemetry') => {
      const list = refusal.verifiedTenantId === undefined ? waiting.unverified : waiting.verified
      if (list.length >= requestLogWaitingMax) {
        leftOut++
        return
      }
      list.push({ kind, refusal, body, requestId, atMs: wallMs() })
      timer ??= setTimeout(readWaiting, readAfterMs)
    },
    read: (tenantId) => {
      readWaiting()
      const entries = [accepted, refused, unverified].flatMap((rings) => rings.read(tenantId))
      return { since_ms: sinceMs, left_out: leftOut, entries }
    },
    forget: (tenantId, deviceIds) => {
      readWaiting()
      // As long as an accepted submission has it, and as a refused one does.
      const names = deviceIds?.flatMap((id) => [id, cut(id, requestLogIdCharactersMax)])
      const forgotten = names === undefined ? null : new Set(names)
      for (const rings of [accepted, refused, unverified]) {
        rings.keep(tenantId, ({ device_id: id }) => forgotten?.has(id ?? '') === false)
      }
    },
  }
}

/**
 * The newest entries of each tenant. When all are too many, each tenant keeps an equal share, so
 * those with many make room and the few of a quiet tenant stay.
 */
function createRings() {
  let count = 0
  const rings = new LRUCache<string, RequestLogEntry[]>({
    // Beyond one entry for each, the least recently used tenant goes.
    max: requestLogEntriesMax,
    dispose: ({ length }) => {
      count -= length
    },
    noDisposeOnSet: true,
  })
  const trim = (entries: RequestLogEntry[], most: number) => {
    const excess = Math.max(0, entries.length - most)
    entries.splice(0, excess)
    count -= excess
  }
  return {
    add: (tenantId: string, entry: RequestLogEntry): void => {
      const entries = rings.get(tenantId) ?? []
      entries.push(entry)
      count++
      trim(entries, requestLogTenantEntriesMax)
      rings.set(tenantId, entries)
      if (count <= requestLogEntriesMax) return
      const share = Math.max(
        1,
        Math.floor((requestLogKeptShare * requestLogEntriesMax) / rings.size),
      )
      for (const each of rings.values()) trim(each, share)
    },
    read: (tenantId: string): readonly RequestLogEntry[] => rings.peek(tenantId) ?? [],
    keep: (tenantId: string, isKept: (entry: RequestLogEntry) => boolean): void => {
      const entries = rings.peek(tenantId)
      if (entries === undefined) return
      const kept = entries.filter(isKept)
      count -= entries.length - kept.length
      entries.splice(0, entries.length, ...kept)
      if (kept.length === 0) rings.delete(tenantId)
    },
  }
}

/** Reads no more than the start of a body: it may be any sender's. */
function toRefused({ kind, refusal, body, requestId, atMs }: Waiting): RequestLogEntry {
  const { problem, verifiedTenantId, retired } = refusal
  const start = body.subarray(0, requestLogReadBytes)
  return {
    kind,
    at_ms: atMs,
    request_id: requestId,
    status: problemStatus(problem.code),
    code: problem.code,
    reason: retired === undefined ? refusal.reason : 'retired_secret',
    detail: toDetail(problem),
    verified: verifiedTenantId !== undefined,
    device_id: findText(start, ['device_id']),
    sdk_version: findText(start, ['sdk_meta', 'sdk_version']),
    event_id: null,
    rasp_score: null,
    rasp_action: null,
  }
}

/** By its place: an identifier of the phone may have any name, and must not be taken for it. */
function findText(start: Buffer, path: readonly string[]): string | null {
  const text = findValue(start, path)
  if (!text?.startsWith('"')) return null
  const inner = text.length > 1 && text.endsWith('"') ? text.slice(1, -1) : text.slice(1)
  return cut(unescapeJson(inner), requestLogIdCharactersMax)
}

/** The text of a member's value; null also in a body that is no JSON before it. */
function findValue(start: Buffer, path: readonly string[]): string | null {
  try {
    const place = findMember(start, path)
    return place === null ? null : start.toString('utf8', place.start, place.end)
  } catch {
    return null
  }
}

/** The characters of a JSON text, or the text itself where it is cut in the middle of an escape. */
function unescapeJson(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}

/** The first faults of a body, whose paths have names that the sender chose. */
function toDetail({ errors }: Problem): string | null {
  if (errors === undefined) return null
  const text = errors.slice(0, 3).map(({ path, message }) => `${path} ${message}`)
  return cut(text.join('; '), requestLogDetailCharactersMax)
}

/** Cuts a text and leaves printable ASCII alone. */
function cut(text: string, charactersMax: number): string {
  const start = text.length > charactersMax ? `${text.slice(0, charactersMax)}...` : text
  const escaped = start.replace(/[^\x20-\x7e]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
  // V8 keeps the whole text in memory for a part of it: an entry holds a copy.
  return Buffer.from(escaped, 'latin1').toString('latin1')
}
