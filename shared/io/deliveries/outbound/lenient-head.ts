/**
 * Reads the head of a response that Node's strict parser rejects. Some servers repeat
 * `Content-Length` with the same value, or send it beside `Transfer-Encoding`: the end of the body
 * is then ambiguous, the status is not. Conflicting lengths remain an error.
 */
import { HTTPParser } from 'http-parser-js'

/** Largest head to parse again: servers that repeat a length send small ones. */
export const lenientHeadBytesMax = 16 * 1024

type LenientHead = {
  status: number
  retryAfter: string | undefined
  location: string | undefined
  /** Why the strict parser rejects it. */
  fault: string
}

/**
 * @param error of Node's parser
 * @param bytes all that was read of the response
 * @returns the final head, or undefined when it is incomplete or cannot be parsed
 */
export function readHeadLeniently(error: Error, bytes: Buffer): LenientHead | undefined {
  const { code = '', reason } = error as Error & { code?: string; reason?: string }
  if (!code.startsWith('HPE_')) return undefined
  // Folded lines are obsolete, and this parser takes more than linear time for them.
  if (bytes.length > lenientHeadBytesMax || /\n[ \t]/.test(bytes.toString('latin1'))) return
  let found: LenientHead | undefined
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
