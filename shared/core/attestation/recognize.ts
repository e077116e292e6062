/** Which kind of evidence a file holds, by its form alone: for the person who checks one. */
import { parseCborMap } from './cbor.ts'
import { decodeBase64 } from './encodings.ts'
import { Refusal } from './reasons.ts'
import type { AttestationProvider } from './steps.ts'

export type EvidenceFile =
  | { kind: 'key_attestation'; chain: Uint8Array[] }
  | { kind: 'app_attest' | 'assertion'; object: Uint8Array }
  | { kind: 'play_integrity'; token: string }

const pemBegin = '-----BEGIN CERTIFICATE-----'
const pemEnd = '-----END CERTIFICATE-----'

/**
 * Recognises a PEM chain (what is between its blocks is ignored), a Play token, or Apple's CBOR as
 * it is or in base64 of either alphabet. White space around texts is ignored.
 * @returns null when it is none of these
 */
export function recognizeEvidence(bytes: Uint8Array): EvidenceFile | null {
  const text = toText(bytes)
  if (text.includes(pemBegin)) return readPem(text)
  const token = withoutSpace(text)
  if (/^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*){4}$/.test(token)) {
    return { kind: 'play_integrity', token }
  }
  return readObject(bytes) ?? readObject(decodeBase64(token))
}

/** What is checked where a person says what a file is and its form does not: it is rejected. */
export function expectEvidence(kind: AttestationProvider, bytes: Uint8Array): EvidenceFile {
  const text = toText(bytes)
  if (kind === 'key_attestation') return readPem(text)
  if (kind === 'play_integrity') return { kind, token: withoutSpace(text) }
  return { kind, object: decodeBase64(withoutSpace(text)) ?? bytes }
}

const toText = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')
const withoutSpace = (text: string): string => text.replace(/\s/g, '')

/** A block that is no base64 is an empty certificate, which is malformed. */
function readPem(text: string): EvidenceFile {
  const blocks = text
    .split(pemBegin)
    .slice(1)
    .flatMap((part) => {
      const [block, rest] = part.split(pemEnd, 2)
      return rest === undefined ? [] : [withoutSpace(block!)]
    })
  const chain = blocks.map((block) => decodeBase64(block) ?? Buffer.alloc(0))
  return { kind: 'key_attestation', chain }
}

/** An attestation has a format, an assertion authenticator data. */
function readObject(object: Uint8Array | null): EvidenceFile | null {
  if (object === null) return null
  try {
    const members = parseCborMap(object)
    if (members.has('authenticatorData')) return { kind: 'assertion', object }
    return members.has('fmt') ? { kind: 'app_attest', object } : null
  } catch (error) {
    if (error instanceof Refusal) return null
    throw error
  }
}
