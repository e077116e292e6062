/** Unsigned bodies of 64 KiB, each as expensive to read as possible. */
import { bodyBytesMax } from '#shared/core/base/limits/http.ts'

const repeated = (piece: string, start = '{') =>
  Buffer.from(start + piece.repeat(Math.ceil(bodyBytesMax / piece.length))).subarray(
    0,
    bodyBytesMax,
  )
export const hostileBodies: [string, Buffer][] = [
  ['bad escapes in keys', repeated('"\\xaaaaaaaa":0,')],
  ['half an escape in keys', repeated('"tenant\\u00":0,')],
  ['keys of nearly this name', repeated('"tenant_ie":0,')],
  ['keys of nearly this name, escaped', repeated(`"${escapeAll('tenant_i')}":0,`)],
  ['this name and more', repeated(`"${escapeAll('tenant_idd')}":0,`)],
  ['one nearly right key and colons', repeated(':', '{"tenant_i"')],
  ['5,000 keys', repeated('"k12345678":0,')],
  ['quotes', repeated('"')],
  ['backslashes', repeated('\\', '{"')],
  ['colons', repeated(':')],
  ['braces', repeated('{')],
  ['brackets', repeated('[')],
  ['closing brackets', repeated(']')],
  ['one long string', repeated('a', '{"')],
  ['surrogates', repeated('"\\ud800\\udfff":0,')],
  ['a slug without an end', repeated('a', '{"tenant_id":"')],
  ['an escaped slug without an end', repeated('\\u0061', '{"tenant_id":"')],
  ['space before a slug', repeated(' ', '{"tenant_id":')],
  ['bytes of no character', Buffer.alloc(bodyBytesMax, 0xff)],
  ['nothing', Buffer.alloc(bodyBytesMax)],
]

/** A text with every character as an escape. */
function escapeAll(text: string): string {
  return [...text].map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
}
