/**
 * The request log of this edge: the latest submissions of each tenant with their answer, for a
 * person who looks why a client is refused. It is kept in memory only and is bounded per tenant and
 * in all. Accepted submissions, refused ones and those without a verified signature are kept apart,
 * so a stranger who names a tenant pushes out nothing but what other strangers sent.
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
import type { RequestLogAnswer, RequestLogEntry } from '#shared/core/telemetry/request-log.ts'
import type { Acceptance, Refusal } from './decide-submission.ts'

export type RequestLog = {
  /** Notes a submission that is stored. */
  noteAccepted: (acceptance: Acceptance, requestId: string) => void
  /** Notes a refused one some milliseconds later, if it can be tied to a tenant. */
  noteRefused: (refusal: Refusal, body: Buffer, requestId: string) => void
  /** What is remembered of a tenant. */
  read: (tenantId: string) => Omit<RequestLogAnswer, 'edge_id'>
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

type Waiting = { refusal: Refusal; body: Buffer; requestId: string; atMs: number }

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
    noteRefused: (refusal, body, requestId) => {
      const list = refusal.verifiedTenantId === undefined ? waiting.unverified : waiting.verified
      if (list.length >= requestLogWaitingMax) {
        leftOut++
        return
      }
      list.push({ refusal, body, requestId, atMs: wallMs() })
      timer ??= setTimeout(readWaiting, readAfterMs)
    },
    read: (tenantId) => {
      readWaiting()
      const entries = [accepted, refused, unverified].flatMap((rings) => rings.read(tenantId))
      return { since_ms: sinceMs, left_out: leftOut, entries }
    },
  }
}

type Ring = { entries: RequestLogEntry[]; next: number }

/** The newest entries of each tenant; beyond the bound of all, the least recently used tenant goes. */
function createRings() {
  // One more, so that a tenant is always removed by the bound of entries, which counts them.
  const rings = new LRUCache<string, Ring>({ max: requestLogEntriesMax + 1 })
  let count = 0
  return {
    add: (tenantId: string, entry: RequestLogEntry): void => {
      let ring = rings.get(tenantId)
      if (ring === undefined) {
        ring = { entries: [], next: 0 }
        rings.set(tenantId, ring)
      }
      if (ring.entries.length < requestLogTenantEntriesMax) count++
      ring.entries[ring.next] = entry
      ring.next = (ring.next + 1) % requestLogTenantEntriesMax
      while (count > requestLogEntriesMax) count -= rings.pop()!.entries.length
    },
    read: (tenantId: string): RequestLogEntry[] => rings.peek(tenantId)?.entries ?? [],
  }
}

/** Reads no more than the start of a body: it may be any sender's. */
function toRefused({ refusal, body, requestId, atMs }: Waiting): RequestLogEntry {
  const { problem, verifiedTenantId, retired } = refusal
  const text = body.toString('utf8', 0, requestLogReadBytes)
  return {
    at_ms: atMs,
    request_id: requestId,
    status: problemStatus(problem.code),
    code: problem.code,
    reason: retired === undefined ? refusal.reason : 'retired_secret',
    detail: toDetail(problem),
    verified: verifiedTenantId !== undefined,
    device_id: findText(text, /"device_id"\s*:\s*"((?:[^"\\]|\\.)*)/s),
    sdk_version: findText(text, /"sdk_version"\s*:\s*"((?:[^"\\]|\\.)*)/s),
    event_id: null,
    rasp_score: null,
    rasp_action: null,
  }
}

function findText(text: string, member: RegExp): string | null {
  const found = member.exec(text)?.[1]
  return found === undefined ? null : cut(found, requestLogIdCharactersMax)
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
