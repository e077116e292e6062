/**
 * A second look at the head of an answer that Node's strict parser refuses. Some servers repeat
 * `Content-Length` with the same value, or send it beside `Transfer-Encoding`: how the body ends
 * may be in doubt then, the status is not. A lenient parser reads it; conflicting lengths stay a
 * fault.
 */
import { HTTPParser } from 'http-parser-js'

/** Largest head that is looked at again: servers that repeat a length have small ones. */
export const refusedHeadBytesMax = 16 * 1024

export type RefusedHead = {
  status: number
  retryAfter: string | undefined
  location: string | undefined
  /** Why the strict parser refuses it. */
  fault: string
}

/**
 * The final head among the bytes that were read, or undefined when it is not whole or not to be
 * understood.
 * @param error of Node's parser
 * @param pieces all that was read of the answer
 */
export function readRefusedHead(error: Error, pieces: readonly Buffer[]): RefusedHead | undefined {
  const { code = '', reason } = error as Error & { code?: string; reason?: string }
  if (!code.startsWith('HPE_')) return undefined
  const bytes = Buffer.concat(pieces)
  // Folded lines are obsolete, and what that parser does with them is not linear in their length.
  if (bytes.length > refusedHeadBytesMax || /\n[ \t]/.test(bytes.toString('latin1'))) return
  let found: RefusedHead | undefined
  const parser = new HTTPParser(HTTPParser.RESPONSE)
  parser[HTTPParser.kOnHeadersComplete] = ({ statusCode, headers }) => {
    if (found !== undefined || statusCode < 200 || hasTwoLengths(headers)) return
    const find = (name: string): string | undefined => {
      const at = headers.findIndex((one, n) => n % 2 === 0 && one.toLowerCase() === name)
      return at === -1 ? undefined : headers[at + 1]
    }
    found = {
      status: statusCode,
      retryAfter: find('retry-after'),
      location: find('location'),
      fault: `the answer is not quite HTTP/1.1: ${reason ?? code}`,
    }
  }
  parser.execute(bytes)
  return found
}

function hasTwoLengths(headers: readonly string[]): boolean {
  const values = headers.filter((_, n) => n % 2 === 1 && headers[n - 1]!.toLowerCase() === length)
  return new Set(values.flatMap((value) => value.split(',').map((one) => one.trim()))).size > 1
}

const length = 'content-length'
