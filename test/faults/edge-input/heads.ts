/**
 * Heads that are expensive to parse, with 20 to 200 unusual headers, and bodies that are expensive
 * to read before their signature is verified. None has a valid signature.
 */
import { hostileBodies } from '../../support/telemetry/hostile-bodies.ts'
import {
  type HostileCase,
  ingestHead,
  jsonType,
  toRequest,
} from '../../support/telemetry/raw-submissions.ts'

/** Refused for its signature, its media type, its framing or its number of headers. */
const refused = [400, 401, 415, 431]

const counts = [20, 26, 50, 90, 100, 101, 150, 200]

/** One header by its number; each kind is unusual in its own way. */
const oddHeaders: Record<string, (n: number) => string> = {
  'short, the last with an underscore': (n) => `a${n}: b`,
  'names with underscores': (n) => `x_${n}: b`,
  'no values': (n) => `a${n}:`,
  'values of spaces': (n) => `a${n}: ${' '.repeat(40)}`,
  'tabs in values': (n) => `a${n}: \tb\tc\t`,
  'high bytes in values': (n) => `a${n}: \xff\xfe\x80`,
  'control bytes in values': (n) => `a${n}: b\x01c`,
  'nulls in values': (n) => `a${n}: b\0c`,
  'high bytes in names': (n) => `\xe4${n}: b`,
  'colons in values': (n) => `a${n}: ${':'.repeat(30)}`,
  'one name': () => 'a: b',
  'odd separators in names': (n) => `a!#$%&'*+-.^_\`|~${n}: b`,
  'folded lines': (n) => `a${n}: b\r\n c`,
  'carriage returns in values': (n) => `a${n}: b\rc`,
  'quotes and backslashes': (n) => `a${n}: "\\"\\\\"`,
  signatures: () => `X-Service-Signature: ${'A'.repeat(43)}=`,
  lengths: () => 'Content-Length: 2',
  types: () => 'Content-Type: application/json',
}

/** Every kind of head at every length, for connections that stay open. */
export function makeHeadCases(): HostileCase[] {
  return Object.entries(oddHeaders).flatMap(([name, make]) =>
    counts.map((count) => {
      const lines = Array.from({ length: count }, (_, n) => make(n))
      if (name.startsWith('short')) lines.push('x_last: b')
      const head = `${ingestHead}${jsonType}${lines.join('\r\n')}\r\n`
      return {
        family: 'a head of many headers',
        name: `${count} headers, ${name}`,
        request: Buffer.from(`${head}Content-Length: 2\r\n\r\n{}`, 'latin1'),
        expected: refused,
      }
    }),
  )
}

/** Bodies of 64 KiB with a wrong signature, each expensive in its own way. */
export function makeExpensiveBodyCases(): HostileCase[] {
  return hostileBodies.map(([name, body]) => ({
    family: 'an expensive body',
    name,
    request: toRequest(body, `${'A'.repeat(43)}=`),
    expected: [401],
  }))
}
