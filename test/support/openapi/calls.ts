/**
 * Calls of an operation, generated from its documentation: valid ones, and ones damaged in every
 * way that clients and attackers can. Each has its expected statuses, as far as the document and
 * HTTP define them.
 */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import type { Call } from '../http/http-call.ts'
import type { Operation, Parameter } from './operations.ts'
import {
  type Damage,
  damage,
  damages,
  type KnownValues,
  oddValues,
  toArbitrary,
} from './schema-values.ts'

export const kinds = [
  'valid',
  'no_auth',
  'bad_auth',
  'unknown_parameter',
  'repeated_parameter',
  'odd_parameter',
  'bad_encoding',
  'bad_path',
  'damaged_body',
  'unreadable_body',
  'content_type',
  'wrong_method',
  'odd_headers',
] as const
export type CallKind = (typeof kinds)[number]

export type PlannedCall = {
  operation: Operation
  kind: CallKind
  call: Call
  /** The only correct statuses, or null when every documented one is correct. */
  expected: readonly number[] | 'refused' | null
  /** The methods of the address, when the call has another one. */
  allowed?: readonly string[]
}

/** The authentication of calls, and existing values. */
export type Credentials = {
  /** The headers that an operation needs for a body; the first one authenticates. */
  authorize: (operation: Operation, body: string | undefined) => Record<string, string>
  knownFor: (operation: Operation) => KnownValues
}

const methods = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'SEARCH']

const weights: Partial<Record<CallKind, number>> = { valid: 14, damaged_body: 4, odd_parameter: 3 }

const badPathParts = [
  ...['%zz', '%', '%ff', '%00', '%ED%A0%80', '%2e%2e', '..', '.', 'a%2fb', '%5c', '%0a', '*', ';'],
  ...['%F0%9F%98%80', `${'x'.repeat(300)}`, `${'x'.repeat(3_000)}`, ':tenant_id', '%25', '%3F', ''],
]
const unreadable = [
  ...['', '{', '{"a":', 'nul', '[1,', '{"a":1}}', "{'a':1}", '\0', 'a=b', 'NaN', '\r\n'],
  ...[`{"x":"${'x'.repeat(1_200_000)}"}`, '['.repeat(20_000), '{"a":"\u0001"}'],
]
const mediaTypes = [
  ...['text/plain', 'application/xml', 'multipart/form-data', 'application/jsonx', '*/*', 'x'],
  ...['application/x-www-form-urlencoded', 'application/octet-stream', 'text/json'],
]
const badTokens = [
  ...['', 'Bearer', 'Bearer ', 'Basic dXNlcjpwYXNz', 'Bearer null', 'bearer x y', 'Token abc'],
  ...[
    `Bearer dpk_live_${'0'.repeat(49)}`,
    `Bearer ${'x'.repeat(4_000)}`,
    'Bearer é',
    'Digest a="b"',
  ],
]
const oddHeaders: Record<string, string>[] = [
  ...[
    { 'x-request-id': 'x'.repeat(2_000) },
    { 'x-request-id': '<script>' },
    { accept: 'image/png' },
  ],
  ...[{ range: 'bytes=0-1' }, { 'if-none-match': '*' }, { 'x-http-method-override': 'DELETE' }],
  ...[{ 'content-encoding': 'identity' }, { 'x-forwarded-for': '::1' }, { cookie: 'a=b; a=b' }],
  ...[{ 'x-forwarded-host': 'evil.example' }, { te: 'trailers' }, { 'transfer-coding': 'gzip' }],
]

/** Calls to one operation: valid ones, or any. */
export function callsTo(
  operation: Operation,
  credentials: Credentials,
  which: 'valid' | 'any' = 'any',
): fc.Arbitrary<PlannedCall> {
  const { document, parameters, body } = operation
  const of = { document, known: credentials.knownFor(operation) }
  const left = { weight: 2, arbitrary: fc.constant(undefined) }
  const values = fc.record(
    Object.fromEntries(
      parameters.map(({ name, in: place, required, schema }) => {
        const value = toArbitrary(schema, of, name)
        // Two of three are omitted, because random filters and cursors rarely match together.
        const drawn = required ? value : fc.oneof(left, { weight: 1, arbitrary: value })
        return [`${place} ${name}`, drawn]
      }),
    ),
  )
  const bodyValue =
    body === null
      ? fc.constant(undefined)
      : toArbitrary({ examples: body.examples, ...body.schema }, of)
  const applicable =
    which === 'valid' ? [which] : kinds.filter((kind) => isApplicable(kind, operation))
  return fc
    .record({
      kind: fc.oneof(
        ...applicable.map((kind) => ({ weight: weights[kind] ?? 1, arbitrary: fc.constant(kind) })),
      ),
      values,
      bodyValue,
      pick: fc.nat(10_000),
      odd: oddValues,
      harm: damages,
    })
    .map((drawn) => plan(operation, credentials, { ...drawn, known: of.known } as Drawn))
}

type Drawn = {
  kind: CallKind
  values: Record<string, unknown>
  bodyValue: unknown
  pick: number
  odd: unknown
  harm: Damage
  known: KnownValues
}

function isApplicable(kind: CallKind, { security, parameters, body }: Operation): boolean {
  const has = (place: Parameter['in']) => parameters.some((one) => one.in === place)
  if (kind === 'no_auth' || kind === 'bad_auth') return security !== null
  if (kind === 'repeated_parameter' || kind === 'bad_encoding') return has('query')
  if (kind === 'odd_parameter') return has('query') || has('path')
  if (kind === 'bad_path') return has('path')
  return !['damaged_body', 'unreadable_body', 'content_type'].includes(kind) || body !== null
}

function plan(operation: Operation, credentials: Credentials, drawn: Drawn): PlannedCall {
  const { kind, pick } = drawn
  const draft = toDraft(operation, drawn)
  let expected: PlannedCall['expected'] = null
  let method = operation.method
  let allowed: string[] | undefined
  const hasQuery = operation.parameters.some((one) => one.in === 'query')
  switch (kind) {
    case 'unknown_parameter':
      draft.query.push(`${['zz', 'limi', '__proto__', 'a[]', '%7B'][pick % 5]}=1`)
      if (hasQuery) expected = [400]
      break
    case 'repeated_parameter': {
      const all = operation.parameters.filter((one) => one.in === 'query')
      const name = all[pick % all.length]!.name
      draft.query.push(`${name}=1`, `${name}=${pick % 2 === 0 ? 1 : 2}`)
      expected = [400]
      break
    }
    case 'odd_parameter':
      if (!setOdd(operation, draft, drawn)) expected = 'refused'
      break
    case 'bad_encoding':
      draft.query.push(`${operation.parameters.find((one) => one.in === 'query')!.name}=%zz%ff`)
      break
    case 'bad_path': {
      const names = operation.parameters.filter((one) => one.in === 'path')
      draft.path[names[pick % names.length]!.name] = badPathParts[pick % badPathParts.length]!
      break
    }
    case 'damaged_body': {
      const value = damage(drawn.bodyValue ?? null, drawn.harm)
      draft.body = JSON.stringify(value) ?? 'null'
      // The body as the server reads it, without values that JSON cannot express.
      if (operation.body!.check(JSON.parse(draft.body)) !== null) expected = 'refused'
      break
    }
    case 'unreadable_body':
      draft.body = unreadable[pick % unreadable.length]!
      if (draft.body !== '' || operation.body!.required) expected = 'refused'
      break
    case 'content_type':
      draft.headers['content-type'] = mediaTypes[pick % mediaTypes.length]!
      expected = [415]
      break
    case 'wrong_method': {
      const others = methodsAt(operation, toTarget(operation.path, { ...draft, query: [] }))
      const wrong = methods.filter((one) => !others.includes(one.toLowerCase()))
      method = wrong[pick % wrong.length]!
      if (method === 'OPTIONS') expected = [204]
      else if (method !== 'HEAD' || !others.includes('get')) expected = [405]
      allowed = others.map((other) => other.toUpperCase())
      break
    }
    case 'odd_headers':
      Object.assign(draft.headers, oddHeaders[pick % oddHeaders.length])
      break
  }
  const headers = {
    ...draft.headers,
    ...toAuth(operation, credentials, { kind, pick }, draft.body),
  }
  if (kind === 'no_auth' || kind === 'bad_auth') expected = [401]
  const call: Call = { method, path: toTarget(operation.path, draft), headers, body: draft.body }
  // Another call may have ended the session.
  if (operation.security === 'session' && Array.isArray(expected)) expected = [...expected, 401]
  return { operation, kind, call, expected, ...(allowed && { allowed }) }
}

/** The methods of every operation that an address could be one of. */
function methodsAt({ document }: Operation, target: string): string[] {
  return Object.entries(document.paths).flatMap(([path, item]) => {
    const source = path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')
    if (!new RegExp(`^${source}$`).test(target)) return []
    return Object.keys(item).filter((member) => methods.includes(member.toUpperCase()))
  })
}

type Draft = {
  path: Record<string, string>
  query: string[]
  headers: Record<string, string>
  body: string | undefined
}

function toDraft({ parameters, body }: Operation, { values, bodyValue }: Drawn): Draft {
  const draft: Draft = { path: {}, query: [], headers: {}, body: undefined }
  for (const { name, in: place } of parameters) {
    const value = values[`${place} ${name}`]
    if (value === undefined) continue
    if (place === 'query') draft.query.push(`${encode(name)}=${encode(toText(value))}`)
    else if (place === 'path') draft.path[name] = encode(toText(value))
    else draft.headers[name.toLowerCase()] = toText(value)
  }
  if (body !== null) {
    draft.body = JSON.stringify(bodyValue) ?? 'null'
    draft.headers['content-type'] = body.mediaType
  }
  return draft
}

/** Shorter by groups of four characters: still base64, with broken content. */
const cutShort = (text: string, pick: number): string =>
  text.slice(0, 4 * (Math.floor((text.length - 1) / 4) - ((pick >> 2) % 3)))

const oneOf = <T>(all: readonly T[], pick: number): T => all[(pick >> 1) % all.length]!

/** @returns whether the document still allows the parameter */
function setOdd({ parameters }: Operation, draft: Draft, { odd, pick, known }: Drawn): boolean {
  const all = parameters.filter((one) => one.in !== 'header')
  // Sometimes cuts values that the server made, such as cursors.
  const made = all.filter(({ name }) => String(known[name]?.[0] ?? '').length > 24)
  const isCut = made.length > 0 && pick % 2 === 0
  const { name, in: place, schema, check } = isCut ? oneOf(made, pick) : oneOf(all, pick)
  const text = isCut
    ? cutShort(String(known[name]![0]), pick)
    : toText(odd).slice(0, 1_500).toWellFormed()
  if (place === 'path') draft.path[name] = encode(text)
  else {
    draft.query = draft.query.filter((one) => !one.startsWith(`${encode(name)}=`))
    draft.query.push(`${encode(name)}=${encode(text)}`)
  }
  if (place === 'path' && (text === '' || text === '.' || text === '..')) return true
  return check(toTyped(text, schema)) === null
}

/** Parses the text of a parameter by its schema. */
function toTyped(text: string, schema: Record<string, unknown>): unknown {
  if (schema.type === 'integer' || schema.type === 'number') {
    return /^[+-]?\d+(\.\d+)?$/.test(text) ? Number(text) : text
  }
  if (schema.type === 'boolean') return { true: true, false: false }[text] ?? text
  return text
}

function toAuth(
  operation: Operation,
  credentials: Credentials,
  { kind, pick }: { kind: CallKind; pick: number },
  body: string | undefined,
): Record<string, string> {
  if (kind === 'no_auth') return {}
  const right = credentials.authorize(operation, body)
  if (kind !== 'bad_auth') return right
  const token = badTokens[pick % badTokens.length]!
  const [name] = Object.keys(right)
  const from = `10.${pick & 255}.${(pick >> 8) & 255}.${(pick >> 16) & 255}`
  return { [name!]: Buffer.from(token).toString('latin1'), 'x-forwarded-for': from }
}

function toTarget(path: string, { path: values, query }: Draft): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '')
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`
}

const toText = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '')

const encode = (text: string): string => encodeURIComponent(text.toWellFormed())

/** The signature of a submission. */
export const sign = (secret: string, body: string | undefined): string =>
  createHmac('sha256', secret)
    .update(body ?? '')
    .digest('base64')
