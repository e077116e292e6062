// What the analysts' address lets through of a request, as a value. Everything that the engine
// gets is written anew from here: one statement as the body, parameters from a list, our own
// identity. The engine itself refuses what an analyst may not read or do; what is sorted out here
// is what could change who asks, keep state between requests, or let one query take more than its
// share.

import { analystChoices } from '#shared/core/analytics/analyst-access.ts'

export type ParsedQuery = { query: string; parameters: [name: string, value: string][] }

/** As ClickHouse says it: code, name and text. */
export type Refusal = { status: number; code: number; name: string; text: string }

export type Reading = { ok: true; asked: ParsedQuery } | { ok: false; refusal: Refusal }

/** Part of the protocol and harmless. */
const protocolParameters = new Set([
  'client_protocol_version',
  'compress',
  'database',
  'default_format',
])

/**
 * Ours to say or nobody's: drivers send these of their own accord, so they are left out silently.
 * There are no sessions here; each query stands alone, and its answer is sent once it is whole.
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
 * Judges a request.
 * @param body the text of a POST, empty for a GET
 */
export function parseAnalystRequest(url: URL, body: string): Reading {
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
  if (text.trim() === '') return refuse(62, 'SYNTAX_ERROR', 'Empty query')
  if (Buffer.byteLength(text) > queryBytesMax) {
    return refuse(62, 'SYNTAX_ERROR', `Max query size exceeded: ${queryBytesMax} bytes`)
  }
  return { ok: true, asked: { query: text, parameters } }
}

function isPassed(name: string): boolean {
  if (protocolParameters.has(name) || parameterPattern.test(name)) return true
  return Object.hasOwn(analystChoices, name)
}

function refuse(code: number, name: string, text: string): Reading {
  return { ok: false, refusal: { status: code === 164 ? 403 : 400, code, name, text } }
}
