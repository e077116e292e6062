/** Checks the headers of a submission, before its body is read. */
import type { IncomingMessage } from 'node:http'
import { type Refusal, refusals } from '../refusals.ts'

const jsonType = /^application\/json[ \t]*(;|$)/i

function isJson(contentType: string): boolean {
  return contentType === 'application/json' || jsonType.test(contentType)
}

/**
 * @param bytesMax of the body
 * @param tooLarge the refusal of a larger one
 * @returns why the headers alone are refused; null when they are not
 */
export function checkHeaders(
  request: IncomingMessage,
  bytesMax: number,
  tooLarge: Refusal,
): Refusal | null {
  const type = request.headers['content-type']
  if (type === undefined || !isJson(type)) return refusals.contentType
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    return refusals.contentType
  }
  // Node has checked that it is a number, and delivers no more bytes than that.
  const declared = request.headers['content-length']
  return declared !== undefined && Number(declared) > bytesMax ? tooLarge : null
}
