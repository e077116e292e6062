/**
 * Compares a response with the OpenAPI document: status, content type, body, headers, and whether
 * invalid calls were refused.
 */
import type { CallAnswer } from '../http/http-call.ts'
import type { PlannedCall } from './calls.ts'
import type { DocumentedAnswer } from './operations.ts'

export type FaultKind =
  | 'server_error'
  | 'undocumented_status'
  | 'undocumented_content_type'
  | 'body_mismatch'
  | 'header_missing'
  | 'header_mismatch'
  | 'ignored_auth'
  | 'bad_input_accepted'
  | 'not_understood'
export type Fault = { kind: FaultKind; why: string }

/** Statuses without an operation, or without one of this method. */
const shellStatuses = [400, 404, 405, 414]

/** @returns all faults of a response */
export function findFaults(planned: PlannedCall, answer: CallAnswer): Fault[] {
  const { kind, call, expected } = planned
  const { status } = answer
  const faults: Fault[] = []
  const fault = (kind: FaultKind, why: string) => faults.push({ kind, why })
  if (status === 500) fault('server_error', 'status 500')
  if (expected === 'refused' && status < 400) fault('bad_input_accepted', `status ${status}`)
  if (Array.isArray(expected) && !expected.includes(status)) {
    const about = kind === 'no_auth' || kind === 'bad_auth' ? 'ignored_auth' : 'not_understood'
    fault(about, `status ${status}, not ${expected.join(' or ')}`)
  }
  // Every GET is a HEAD as well, and documented as such.
  if (call.method === 'HEAD' && status !== 405) return faults
  if (planned.allowed !== undefined) {
    const allow = answer.headers.allow?.split(', ') ?? []
    const missing = planned.allowed.filter((method) => !allow.includes(method))
    if (missing.length > 0) fault('header_missing', `Allow has no ${missing.join()}`)
    if (status === 204) return faults
  }
  if (answer.headers['x-request-id'] === undefined) fault('header_missing', 'X-Request-Id')
  const documented = findDocumented(planned, status)
  if (documented === null) {
    fault('undocumented_status', `${status} is not documented`)
    return faults
  }
  faults.push(...checkHeaders(documented, answer))
  if (call.method !== 'HEAD') faults.push(...checkBody(documented, answer))
  return faults
}

/** A call of no operation gets the documented refusal. */
function findDocumented({ operation, kind }: PlannedCall, status: number) {
  const documented = operation.answers.get(status)
  if (documented !== undefined) return documented
  const isElsewhere = kind === 'wrong_method' || kind === 'bad_path' || kind === 'odd_parameter'
  if (!isElsewhere || !shellStatuses.includes(status)) return null
  const refusal = [...operation.answers].find(([other]) => other >= 400 && other < 500)
  return refusal === undefined ? null : { headers: [], content: refusal[1].content }
}

function checkHeaders({ headers }: DocumentedAnswer, answer: CallAnswer): Fault[] {
  return headers.flatMap(({ name, required, check }): Fault[] => {
    const value = answer.headers[name.toLowerCase()]
    if (value === undefined) {
      return required ? [{ kind: 'header_missing', why: `${name} is missing` }] : []
    }
    const isNumber = /^\d+$/.test(String(value)) && check(Number(value)) === null
    if (isNumber || check(value) === null) return []
    return [{ kind: 'header_mismatch', why: `${name}: ${value}` }]
  })
}

function checkBody({ content }: DocumentedAnswer, answer: CallAnswer): Fault[] {
  const { status, text } = answer
  const [type = ''] = String(answer.headers['content-type'] ?? '').split(';', 1)
  const mediaType = type.trim()
  if (content.size === 0 && text === '' && mediaType === '') return []
  const check = content.get(mediaType)
  if (check === undefined) {
    const known = [...content.keys()].join(', ')
    return [{ kind: 'undocumented_content_type', why: `${status} ${mediaType}, not ${known}` }]
  }
  const mismatch = (why: string): Fault[] => [{ kind: 'body_mismatch', why: `${status}: ${why}` }]
  if (mediaType.startsWith('text/')) {
    return check(text) === null ? [] : mismatch('not the text it should')
  }
  const lines = mediaType.includes('ndjson') ? text.split('\n').slice(0, -1) : [text]
  for (const line of lines) {
    const value = parse(line)
    if (value === undefined) return mismatch(`not JSON: ${line.slice(0, 80)}`)
    const refused = check(value)
    if (refused !== null) return mismatch(refused)
    if (mediaType === 'application/problem+json') {
      const problem = value as { status?: number; request_id?: string }
      if (problem.status !== status) return mismatch(`the body says ${problem.status}`)
      if (problem.request_id !== answer.headers['x-request-id']) return mismatch('request_id')
    }
  }
  return lines.length === 0 ? mismatch('no lines') : []
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
