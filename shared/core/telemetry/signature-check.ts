/**
 * The signature debugger: why a signature of a body is refused. It knows the tenant's secrets, so
 * only an operator gets its answer, and no secret or signature is in it. It tries the usual
 * mistakes: another form of the header, other bytes, another key, another algorithm.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { bodyBytesMax } from '#shared/core/base/limits/http.ts'
import { jsonDepthMax } from '#shared/core/base/limits/telemetry.ts'
import type { ProblemDetail } from '#shared/core/http/problem.ts'
import { findTenant, scanBody } from './body-scan.ts'
import { findJsonErrorOffset } from './json/json-syntax.ts'
import { parseTelemetry } from './parse-telemetry.ts'
import { readSignatureForm, type SignatureFormFault } from './signature-form.ts'

/** The secrets of a tenant; null where there is none. */
export type CheckedSecrets = {
  hmac: string | null
  /** The HMAC secret that the last rotation replaced. */
  previous: string | null
  webhook: string | null
}

export type SignatureFinding = {
  /** Stable, for programs. */
  code: string
  /** What is wrong and what to do, for a person. */
  text: string
}

export type SignatureCheck = {
  /** Whether an edge accepts this signature of this body for this tenant. */
  valid: boolean
  /** The form of the header, as every 401 says it. */
  signature_form: string
  received: { bytes: number; sha256: string }
  /** What is wrong, the most certain first; empty when the submission is right. */
  findings: SignatureFinding[]
  /** What the edge says of the body once the signature is right; empty when it accepts it. */
  body_errors: ProblemDetail[]
}

/** Checks a signature of a body as an edge does, and looks for the reason when it is refused. */
export function checkSignature(
  body: Buffer,
  header: string | undefined,
  tenant: { tenantId: string; isActive: boolean; secrets: CheckedSecrets },
): SignatureCheck {
  const { tenantId, isActive, secrets } = tenant
  const form = readSignatureForm(header)
  const named = findTenant(body)
  const findings: SignatureFinding[] = form.faults.map((code) => ({ code, text: formTexts[code] }))
  let matches = false
  if (form.digest !== null) {
    const match = findMatch(body, form.digest, secrets)
    matches = match !== null && match.code === null
    if (match === null) findings.push(unexplained)
    else if (match.code !== null) findings.push({ code: match.code, text: match.text })
  }
  findings.push(...describeTenant(named, tenantId), ...describeJson(body))
  if (body.length > bodyBytesMax) findings.push({ code: 'body_too_large', text: bodyTooLarge })
  if (secrets.hmac === null) findings.push({ code: 'no_secret', text: noSecret })
  if (!isActive) findings.push({ code: 'tenant_suspended', text: suspended })
  const valid =
    matches &&
    isActive &&
    form.faults.length === 0 &&
    named === tenantId &&
    body.length <= bodyBytesMax
  const parsed = valid ? parseTelemetry(body, tenantId) : null
  return {
    valid,
    signature_form: form.text,
    received: {
      bytes: body.length,
      sha256: createHash('sha256').update(body).digest('hex'),
    },
    findings,
    body_errors: parsed === null || parsed.ok ? [] : parsed.errors,
  }
}

const formTexts: Record<SignatureFormFault, string> = {
  missing: 'There is no signature. Send the header X-Service-Signature with every submission.',
  too_long: 'The header is far longer than a signature, which has 44 characters.',
  several:
    'The header was sent more than once. Send one signature: a proxy or a library of yours adds a second one.',
  whitespace:
    'There is white space around the signature, often a newline of the program that made it. Remove it.',
  quotes: 'The signature is in quotes. Send it without them.',
  prefix: 'There is a prefix before the signature. Send the base64 alone.',
  hex: 'The signature is in hex. Encode the 32 bytes of the digest as base64, not as hex.',
  base64_of_hex:
    'The signature is the base64 of hex text. Encode the 32 bytes of the digest, not their hex.',
  base64url: 'The signature is in base64url (- and _). Use standard base64 (+ and /) with padding.',
  unpadded: 'The = at the end of the signature is missing. Send all 44 characters.',
  spare_bits: 'The last character of the signature was changed: its spare bits are not zero.',
  length:
    'The signature does not have the 32 bytes of SHA-256: 20 would be SHA-1, 64 would be SHA-512, fewer may be cut off.',
  not_base64: 'The signature is neither base64 nor hex. Send the base64 of the digest.',
}

const unexplained: SignatureFinding = {
  code: 'other_bytes_or_secret',
  text: 'No secret of this tenant and none of the usual mistakes gives this signature. Compare length and SHA-256 of the body with what your program signs, and the last four characters of its secret with those in Integrations.',
}
const bodyTooLarge =
  'The body is larger than 64 KiB: it is answered 413 before its signature is looked at.'
const suspended = 'The tenant is suspended: everything that it sends is answered 401.'
const noSecret = 'The tenant has no active HMAC secret at the moment.'

function describeTenant(named: string | null, tenantId: string): SignatureFinding[] {
  if (named === tenantId) return []
  if (named === null) {
    const text =
      'No tenant_id that can be a slug is at the top of the body, so no secret can be chosen.'
    return [{ code: 'tenant_missing', text }]
  }
  const text = `The body names the tenant ${named}, so its signature is checked with the secret of that tenant, not of ${tenantId}.`
  return [{ code: 'tenant_other', text }]
}

function describeJson(body: Buffer): SignatureFinding[] {
  // Deeper bodies are refused for their depth, and would exhaust the reader's stack.
  if (scanBody(body).depth > jsonDepthMax) return []
  const at = findJsonErrorOffset(body)
  if (at === null) return []
  const where = at === body.length ? `it is cut off after ${at} bytes` : `at byte ${at}, from 0`
  return [{ code: 'not_json', text: `The body is not JSON: ${where}.` }]
}

type Match = { code: string | null; text: string }

/** A key that a client may have signed with, and the mistake that it stands for. */
type Key = { code: string | null; text: string; key: string | Buffer }

function listKeys({ hmac, previous, webhook }: CheckedSecrets): Key[] {
  const keys: Key[] = []
  const add = (code: string | null, text: string, key: string | Buffer) =>
    keys.push({ code, text, key })
  if (hmac !== null) {
    add(null, '', hmac)
    add(
      'decoded_secret',
      'It is signed with the base64-decoded secret. Use the 43 characters of the secret as they are.',
      Buffer.from(hmac, 'base64url'),
    )
    add(
      'secret_with_newline',
      'It is signed with the secret and a newline after it, as a file has it. Remove the newline.',
      `${hmac}\n`,
    )
    add('secret_in_quotes', 'It is signed with the secret in quotes. Remove them.', `"${hmac}"`)
  }
  if (previous !== null) {
    add(
      'previous_secret',
      'It is signed with the HMAC secret that the last rotation replaced. Use the new one.',
      previous,
    )
  }
  if (webhook !== null) {
    add(
      'webhook_secret',
      'It is signed with the webhook secret. That one signs deliveries; use the HMAC secret.',
      webhook,
    )
    add(
      'webhook_secret',
      'It is signed with the decoded webhook secret. Use the HMAC secret.',
      Buffer.from(webhook.replace(/^whsec_/, ''), 'base64'),
    )
  }
  return keys
}

/** Indenting can make a body thirty times as long, which no client signs. */
const variantCharactersMax = 2 * bodyBytesMax

/** Bytes that a client may have signed instead, and the mistake that they stand for. */
type Variant = { code: string | null; text: string; bytes: Uint8Array }

const newlineText =
  'The bytes that were signed differ from the body by a newline at the end. Sign exactly the bytes that are sent.'
const reserialisedText =
  'The signature is that of the same JSON written again, with other white space or order. Sign the bytes that are sent, and send the bytes that were signed.'

function listVariants(body: Buffer): Variant[] {
  const variants: Variant[] = [{ code: null, text: '', bytes: body }]
  const add = (code: string, text: string, bytes: Uint8Array | string) =>
    variants.push({ code, text, bytes: Buffer.from(bytes) })
  const text = body.toString('utf8')
  const trimmed = text.trim()
  add('trailing_newline', newlineText, `${trimmed}\n`)
  add('trailing_newline', newlineText, `${trimmed}\r\n`)
  add('trailing_newline', newlineText, trimmed)
  add(
    'empty_body',
    'The signature is that of an empty body: the program signed before the body was there, or after it was read.',
    '',
  )
  const lines =
    'The line endings were changed between signing and sending. Sign the bytes that are sent.'
  add('line_endings', lines, text.replaceAll('\r\n', '\n'))
  add('line_endings', lines, text.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n'))
  const mark = 'A byte order mark was added or removed between signing and sending.'
  add('byte_order_mark', mark, text.startsWith('\ufeff') ? text.slice(1) : `\ufeff${text}`)
  add(
    'base64_body',
    'The signature is that of the base64 of the body. Sign the body itself.',
    body.toString('base64'),
  )
  add(
    'json_text_body',
    'The signature is that of the body as a JSON string: it was serialised twice.',
    JSON.stringify(text),
  )
  if (scanBody(body).depth > jsonDepthMax) return variants
  for (const written of writeAgain(text)) {
    if (written.length <= variantCharactersMax) add('reserialised', reserialisedText, written)
  }
  return variants
}

/** The same JSON as common programs write it; none when the text is not JSON. */
function writeAgain(text: string): string[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return []
  }
  const texts: string[] = []
  for (const tree of [value, sortKeys(value)]) {
    const compact = JSON.stringify(tree)
    const python = writePython(tree)
    for (const one of [compact, python]) {
      texts.push(one, `${one}\n`, escapeNonAscii(one))
    }
    for (const indent of [2, 4, '\t']) texts.push(JSON.stringify(tree, null, indent))
    texts.push(compact.replaceAll('/', '\\/'))
  }
  return texts
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, item]) => [key, sortKeys(item)]))
}

/** With a space after each colon and comma. */
function writePython(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writePython).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([key, item]) => {
    return `${JSON.stringify(key)}: ${writePython(item)}`
  })
  return `{${members.join(', ')}}`
}

const escapeNonAscii = (text: string): string =>
  text.replace(/[\u0080-\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })

/**
 * Finds the key and the bytes that give a digest. At most seven keys times 30 variants of 128 KiB:
 * 27 MiB to hash, some 50 ms.
 */
function findMatch(body: Buffer, digest: Buffer, secrets: CheckedSecrets): Match | null {
  const isIt = (made: Buffer) => timingSafeEqual(made, digest)
  const variants = listVariants(body)
  for (const key of listKeys(secrets)) {
    for (const variant of variants) {
      if (!isIt(createHmac('sha256', key.key).update(variant.bytes).digest())) continue
      const code = key.code ?? variant.code
      return { code, text: [key.text, variant.text].filter((one) => one !== '').join(' ') }
    }
  }
  const sha256 = (...parts: (string | Uint8Array)[]) => {
    const made = createHash('sha256')
    for (const part of parts) made.update(part)
    return made.digest()
  }
  const { hmac } = secrets
  const plain = 'It is a SHA-256 without HMAC. Use HMAC-SHA256, keyed with the HMAC secret.'
  const hashes = [sha256(body), ...(hmac === null ? [] : [sha256(hmac, body), sha256(body, hmac)])]
  return hashes.some(isIt) ? { code: 'plain_hash', text: plain } : null
}
