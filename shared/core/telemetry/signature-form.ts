/**
 * The form of an `X-Service-Signature` header: what every 401 says of it, and what the signature
 * check decodes. It looks at the request alone, so it tells nothing of tenants, and it never
 * repeats what the header holds.
 */
import { hash } from 'node:crypto'
import type { RefusedRequest } from '#shared/core/http/problem.ts'

/** Longer headers are called long without a look at their characters. */
const headerCharactersMax = 1_024

export type SignatureForm = {
  /** For a person: `hex; base64 of 32 bytes expected`. */
  text: string
  /** What keeps the header from being canonical, none for a right one. */
  faults: SignatureFormFault[]
  /** The 32 bytes that it most likely means; null when it cannot be read as 32 bytes. */
  digest: Buffer | null
}

export type SignatureFormFault =
  | 'missing'
  | 'too_long'
  | 'several'
  | 'whitespace'
  | 'quotes'
  | 'prefix'
  | 'hex'
  | 'base64_of_hex'
  | 'base64url'
  | 'unpadded'
  | 'spare_bits'
  | 'length'
  | 'not_base64'

const expected = 'base64 of 32 bytes expected'

/** What to change, by fault. */
const remedies: Record<Exclude<SignatureFormFault, 'missing'>, string> = {
  too_long: 'Send the signature alone.',
  several: 'Send the header once: a proxy or a library of yours adds a second one.',
  whitespace: 'Remove the white space.',
  quotes: 'Remove the quotes.',
  prefix: 'Remove the prefix.',
  hex: 'Encode the bytes of the digest as base64, not as hex.',
  base64_of_hex: 'Encode the bytes of the digest, not their hex text.',
  base64url: 'Use the standard alphabet of base64, with + and /.',
  unpadded: 'Keep the padding, one = at the end.',
  spare_bits: 'Encode exactly 32 bytes: no encoder writes this last character.',
  length: 'HMAC-SHA256 makes 32 bytes: this is another hash, or another text.',
  not_base64: 'Encode the bytes of the digest as base64.',
}

/** What other services put before a signature, in lower case. */
const prefixes = [
  'sha256=',
  'sha-256=',
  'sha256:',
  'hmac-sha256=',
  'hmac ',
  'v1,',
  'v1=',
  'base64:',
]

/**
 * Describes a header and decodes it as far as its form allows. Cost: linear in 1,024 characters. A
 * right form takes the same steps as a wrong one, since all 401s take the same time.
 */
export function readSignatureForm(header: string | undefined): SignatureForm {
  if (header === undefined || header === '') return toForm('missing', ['missing'], null)
  if (header.length > headerCharactersMax) {
    return toForm(`longer than ${headerCharactersMax} characters`, ['too_long'], null)
  }
  // A header that is sent twice comes as one, with this between its values.
  if (header.includes(', ')) return toForm('more than one value', ['several'], null)
  const said: string[] = []
  const faults: SignatureFormFault[] = []
  const note = (fault: SignatureFormFault, text: string) => {
    faults.push(fault)
    said.push(text)
  }
  let rest = header.trim()
  if (rest !== header) note('whitespace', 'with white space around it')
  const quote = rest[0]
  if (rest.length > 1 && (quote === '"' || quote === "'") && rest.endsWith(quote)) {
    note('quotes', 'in quotes')
    rest = rest.slice(1, -1)
  }
  const start = rest.slice(0, 12).toLowerCase()
  const prefix = prefixes.find((prefix) => start.startsWith(prefix))
  if (prefix !== undefined) {
    note('prefix', `with the prefix ${prefix.trim()}`)
    rest = rest.slice(prefix.length).trim()
  }
  const digest = readDigest(rest, note)
  if (faults.length === 0) return { text: 'base64 of 32 bytes, as expected', faults, digest }
  return toForm(said.join(', '), faults, digest)
}

const toForm = (
  what: string,
  faults: SignatureFormFault[],
  digest: Buffer | null,
): SignatureForm => ({ text: `${what}; ${expected}`, faults, digest })

/** Reads what is left without quotes and prefix. */
function readDigest(
  text: string,
  note: (fault: SignatureFormFault, text: string) => void,
): Buffer | null {
  if (isHex(text)) return readHex(text, note)
  if (/^[A-Za-z0-9_-]+={0,2}$/.test(text) && /[_-]/.test(text)) {
    note('base64url', 'base64url')
    return readBase64(text, note)
  }
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return readBase64(text, note)
  note('not_base64', 'neither base64 nor hex')
  return null
}

function readHex(
  text: string,
  note: (fault: SignatureFormFault, text: string) => void,
): Buffer | null {
  const bytes = text.length / 2
  note('hex', bytes === 32 ? 'hex' : `hex of ${bytes} bytes`)
  if (bytes === 32) return Buffer.from(text, 'hex')
  note('length', 'of another length')
  return null
}

function readBase64(
  text: string,
  note: (fault: SignatureFormFault, text: string) => void,
): Buffer | null {
  const bytes = decode(text)
  const inside = bytes.toString('latin1').trim()
  if (isHex(inside) && inside.length === 64) {
    note('base64_of_hex', 'base64 of hex text')
    return Buffer.from(inside, 'hex')
  }
  if (bytes.length !== 32) {
    note('length', `base64 of ${bytes.length} bytes`)
    return null
  }
  // Only now: to replace each character of a header of 1,024 takes 70 µs.
  const characters = text.replaceAll('=', '').replaceAll('-', '+').replaceAll('_', '/')
  if (characters.length === text.length || text.length % 4 !== 0) {
    note('unpadded', 'base64 without its padding')
  }
  if (bytes.toString('base64').replaceAll('=', '') !== characters) {
    note('spare_bits', 'base64 whose last character has spare bits set')
  }
  return bytes
}

const decode = (text: string): Buffer => Buffer.from(text, 'base64')

const isHex = (text: string): boolean => text.length % 2 === 0 && /^[0-9a-f]+$/i.test(text)

/** @returns the detail of a 401 for a header of a wrong form; none for a right or missing one */
function describeForm({ text, faults }: SignatureForm): { detail?: string } {
  const advice = faults.flatMap((fault) => (fault === 'missing' ? [] : remedies[fault])).join(' ')
  if (advice === '') return {}
  return {
    detail:
      `The form of X-Service-Signature is wrong: ${text}. ${advice} ` +
      'No signature of this form is accepted, whatever the secret is.',
  }
}

/**
 * Describes a request whose signature was refused.
 * @param body as it came; one SHA-256 over it (64 KiB at most, no more than one of the two HMACs
 *   that a refusal costs) is all that is done with it
 * @param sha256 of bytes, as hex
 */
export function describeRefusedRequest(
  body: Uint8Array,
  header: string | undefined,
  sha256 = (bytes: Uint8Array): string => hash('sha256', bytes, 'hex'),
): RefusedRequest {
  const form = readSignatureForm(header)
  return {
    ...describeForm(form),
    signature_form: form.text,
    received: { bytes: body.length, sha256: sha256(body) },
  }
}
