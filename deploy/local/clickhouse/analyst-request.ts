// Parses a request of an analyst. The proxy builds its own request to the engine from the result:
// one statement as the body, allowed parameters, and the proxy's identity. The engine rejects what
// an analyst cannot read or do; this rejects what could change the identity, keep state between
// requests, or exceed the limits of a query.

import { analystChoices } from '#shared/core/analytics/analyst-access.ts'

export type ParsedQuery = { query: string; parameters: [name: string, value: string][] }

/** An error in ClickHouse's form. */
export type Refusal = { status: number; code: number; name: string; text: string }

export type ParseResult = { ok: true; parsed: ParsedQuery } | { ok: false; refusal: Refusal }

/** Part of the protocol and harmless. */
const protocolParameters = new Set([
  'client_protocol_version',
  'compress',
  'database',
  'default_format',
])

/**
 * Drivers send these by themselves, so they are dropped without an error. There are no sessions,
 * and a response is sent once it is complete.
 */
const droppedParameters = new Set([
  'buffer_size',
  'close_session',
  'http_headers_progress_interval_ms',
  'password',
  'query_id',
  'quota_key',
  'send_progress_in_http_headers',
  'session_check',
  'session_id',
  'session_timeout',
  'user',
  'wait_end_of_query',
])

const parameterPattern = /^param_\w{1,64}$/
// Twice this, as hexadecimal digits, is still within the engine's own limit.
const queryBytesMax = 100 * 1024

/**
 * Parses a request, or rejects it.
 * @param body the text of a POST, empty for a GET
 */
export function parseAnalystRequest(url: URL, body: string): ParseResult {
  const parameters: ParsedQuery['parameters'] = []
  const seen = new Set<string>()
  let query = ''
  for (const [name, value] of url.searchParams) {
    if (seen.has(name)) return refuse(36, 'BAD_ARGUMENTS', `Parameter ${name} is given twice`)
    seen.add(name)
    if (name === 'query') query = value
    else if (droppedParameters.has(name)) continue
    else if (isPassed(name)) parameters.push([name, value])
    else return refuse(164, 'READONLY', `Cannot modify '${name}' setting in readonly mode`)
  }
  const text = [query, body].filter((part) => part !== '').join('\n')
  const unfit = checkQueryText(text)
  if (unfit !== null) return { ok: false, refusal: unfit }
  return { ok: true, parsed: { query: text, parameters } }
}

/** Refuses a text that is empty, or too large for its tokens to be read. */
function checkQueryText(text: string): Refusal | null {
  const wrong = { status: 400, code: 62, name: 'SYNTAX_ERROR' }
  if (text.trim() === '') return { ...wrong, text: 'Empty query' }
  if (Buffer.byteLength(text) <= queryBytesMax) return null
  return { ...wrong, text: `Max query size exceeded: ${queryBytesMax} bytes` }
}

function isPassed(name: string): boolean {
  if (protocolParameters.has(name) || parameterPattern.test(name)) return true
  return Object.hasOwn(analystChoices, name)
}

function refuse(code: number, name: string, text: string): ParseResult {
  return { ok: false, refusal: { status: code === 164 ? 403 : 400, code, name, text } }
}
