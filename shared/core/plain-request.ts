/**
 * The quick yes to a request's head: recognises a POST in the plainest form there is, which is how
 * nearly every client writes it, and gives its few facts. What it recognises has exactly one
 * reading: printable ASCII, one Host, one Content-Length, no other framing, nothing folded, nothing
 * to be upgraded or expected. Of anything else it says that it is not plain, and Node's own strict
 * parser has the word. It decides nothing and refuses nothing.
 */

/** What is needed of a plain request before its body is there. */
export type PlainHead = {
  /** Bytes before the body. */
  headBytes: number
  /** Bytes of the body: Content-Length. */
  bodyBytes: number
  contentType: string
  /** The value of `X-Service-Signature`, or undefined when there is none. */
  signature: string | undefined
  requestId: string | undefined
  /** Whether the client asked that the connection be closed after the answer. */
  close: boolean
}

/** A longer head is not plain. */
const plainHeadBytesMax = 4_096

const headEnd = '\r\n\r\n'
// Names of letters, digits and hyphens; values of printable ASCII; every line ends in CR LF.
const plainLines = /^(?:[A-Za-z][A-Za-z0-9-]*: ?[ -~]*\r\n)+\r\n$/
const plainLength = /^(?:0|[1-9][0-9]{0,6})$/

/** What makes the lines before the body of one path's plain requests. */
export const toPlainRequestLine = (path: string): string => `POST ${path} HTTP/1.1\r\n`

/**
 * @param bytes as they came, from the first byte of the request
 * @param requestLine `toPlainRequestLine` of the path
 * @returns null when more bytes are needed to tell, 'other' when it is not a plain request
 */
export function readPlainHead(bytes: Buffer, requestLine: string): PlainHead | 'other' | null {
  const end = bytes.indexOf(headEnd)
  if (end === -1) {
    if (bytes.length >= plainHeadBytesMax) return 'other'
    const known = Math.min(bytes.length, requestLine.length)
    const begins = requestLine.startsWith(bytes.toString('latin1', 0, known))
    return begins ? null : 'other'
  }
  if (end >= plainHeadBytesMax) return 'other'
  const headBytes = end + headEnd.length
  const head = bytes.toString('latin1', 0, headBytes)
  if (!head.startsWith(requestLine)) return 'other'
  const lines = head.slice(requestLine.length)
  return plainLines.test(lines) ? readLines(lines, headBytes) : 'other'
}

/** @param lines matched by `plainLines` */
function readLines(lines: string, headBytes: number): PlainHead | 'other' {
  let hosts = 0
  let lengths = 0
  let types = 0
  let signatures = 0
  let connections = 0
  const plain: PlainHead = {
    headBytes,
    bodyBytes: 0,
    contentType: '',
    signature: undefined,
    requestId: undefined,
    close: false,
  }
  const { length } = lines
  for (let at = 0; at < length - 2; ) {
    const colon = lines.indexOf(':', at)
    const end = lines.indexOf('\r\n', colon)
    const name = lines.slice(at, colon).toLowerCase()
    switch (name) {
      case 'host':
        hosts++
        break
      case 'content-length': {
        const value = lines.slice(colon + 1, end).trim()
        if (!plainLength.test(value)) return 'other'
        plain.bodyBytes = Number(value)
        lengths++
        break
      }
      case 'content-type':
        plain.contentType = lines.slice(colon + 1, end).trim()
        types++
        break
      case 'x-service-signature':
        plain.signature = lines.slice(colon + 1, end).trim()
        signatures++
        break
      case 'x-request-id':
        if (plain.requestId !== undefined) return 'other'
        plain.requestId = lines.slice(colon + 1, end).trim()
        break
      case 'connection': {
        const value = lines
          .slice(colon + 1, end)
          .trim()
          .toLowerCase()
        if (value !== 'keep-alive' && value !== 'close') return 'other'
        plain.close = value === 'close'
        connections++
        break
      }
      // What frames a body in another way, encodes it, or asks for something before it.
      case 'transfer-encoding':
      case 'content-encoding':
      case 'expect':
      case 'upgrade':
      case 'trailer':
      case 'te':
      case 'http2-settings':
        return 'other'
    }
    at = end + 2
  }
  const single = hosts === 1 && lengths === 1 && types === 1
  return single && signatures <= 1 && connections <= 1 ? plain : 'other'
}
