/**
 * Which kind of evidence a file holds, by its form alone, for the person who checks one; and the
 * evidence of a registration, as an app sends it.
 */
import { z } from 'zod'
import { certificateBytesMax, chainCertificatesMax } from '../base/limits/attestation.ts'
import type { ProblemDetail } from '../http/problem.ts'
import { parseCborMap } from './cbor.ts'
import { readCertificate } from './certificate.ts'
import { decodeBase64 } from './encodings.ts'
import { type AttestationReason, Refusal, readOptional } from './reasons.ts'
import type { AttestationProvider } from './steps.ts'

export type EvidenceFile =
  | { kind: 'key_attestation'; chain: Uint8Array[] }
  /** The key id is null where it is not known, and then not judged. */
  | { kind: 'app_attest'; object: Uint8Array; keyId: Uint8Array | null }
  | { kind: 'assertion'; object: Uint8Array }
  | { kind: 'play_integrity'; token: string }

/** What an app sends to prove its platform: the member `evidence` of a registration. */
export const evidenceSchema = z.discriminatedUnion('provider', [
  z.object({ provider: z.literal('key_attestation'), chain: z.array(z.string()) }),
  z.object({ provider: z.literal('app_attest'), key_id: z.string(), attestation: z.string() }),
  z.object({ provider: z.literal('play_integrity'), token: z.string() }),
])
export type Evidence = z.infer<typeof evidenceSchema>

const certificateCharactersMax = Math.ceil(certificateBytesMax / 3) * 4

/**
 * Decodes the evidence of a registration. White space is ignored, since Android's encoder breaks
 * lines by default. What is no base64 is empty, and is rejected as malformed. No more certificates
 * are decoded than show that a chain is too long.
 */
export function decodeEvidence(evidence: Evidence): Exclude<EvidenceFile, { kind: 'assertion' }> {
  switch (evidence.provider) {
    case 'key_attestation': {
      const chain = evidence.chain.slice(0, chainCertificatesMax + 1)
      return {
        kind: 'key_attestation',
        chain: chain.map(decodeCertificate),
      }
    }
    case 'app_attest':
      return {
        kind: 'app_attest',
        object: decodeBase64(withoutSpace(evidence.attestation)) ?? empty,
        keyId: decodeBase64(withoutSpace(evidence.key_id)) ?? empty,
      }
    case 'play_integrity':
      return { kind: 'play_integrity', token: withoutSpace(evidence.token) }
  }
}

const decodeCertificate = (text: string): Buffer =>
  decodeBase64(withoutSpace(text), certificateCharactersMax) ?? empty

/**
 * Which member of a registration cannot be read, and in which form it belongs.
 * @param reason why the evidence is rejected; null when it is not
 * @returns null when all of it was read, whatever the verdict
 */
export function findUnreadable(
  evidence: Evidence,
  reason: AttestationReason | null,
): ProblemDetail | null {
  const say = (member: string, form: string, text = '') => ({
    path: `$.evidence.${member}`,
    message: `must be ${form}${describeForm(text)}`,
  })
  if (evidence.provider === 'app_attest') {
    const { key_id: id, attestation } = evidence
    if (decodeBase64(withoutSpace(id))?.length !== keyIdBytes) {
      return say('key_id', 'the key id that generateKey returned: base64 of 32 bytes', id)
    }
    return reason !== 'malformed'
      ? null
      : say('attestation', 'the object that attestKey returned, in base64', attestation)
  }
  if (reason !== 'malformed') return null
  if (evidence.provider === 'play_integrity') {
    const form = 'the token that Play Integrity returned for a classic request, as it is'
    return say('token', form)
  }
  const index = evidence.chain.findIndex(
    (text) => readOptional(() => readCertificate(decodeCertificate(text))) === undefined,
  )
  return index < 0
    ? say('chain', 'all certificates of getCertificateChain, leaf first')
    : say(`chain[${index}]`, 'base64 of one certificate in DER', evidence.chain[index])
}

const keyIdBytes = 32

/** What a text is that should be base64. */
function describeForm(text: string): string {
  if (text.includes('-----BEGIN'))
    return '; this is PEM, without its BEGIN and END lines it is right'
  return /^(?:[0-9a-f]{2}[\s:]?)+$/i.test(text) ? '; this is hex' : ''
}

const empty = Buffer.alloc(0)

export type RegistrationFile = {
  evidence: EvidenceFile
  challenge: Buffer | null
  packageName: string | null
}

const registrationFileSchema = z.object({
  challenge: z.string().optional(),
  app: z.object({ id: z.string() }).nullish(),
  evidence: evidenceSchema,
})

/**
 * Recognises the body of a registration, or its member `evidence` alone.
 * @returns null when it is neither
 */
function recognizeRegistration(bytes: Uint8Array): RegistrationFile | null {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch {
    return null
  }
  const alone = evidenceSchema.safeParse(value)
  const parsed = registrationFileSchema.safeParse(alone.success ? { evidence: alone.data } : value)
  if (!parsed.success) return null
  const { challenge, app, evidence } = parsed.data
  return {
    evidence: decodeEvidence(evidence),
    challenge: challenge === undefined ? null : decodeBase64(challenge),
    packageName: app?.id ?? null,
  }
}

const pemBegin = '-----BEGIN CERTIFICATE-----'
const pemEnd = '-----END CERTIFICATE-----'

/**
 * Recognises a PEM chain (what is between its blocks is ignored), a Play token, or Apple's CBOR as
 * it is or in base64 of either alphabet. White space around texts is ignored.
 * @returns null when it is none of these
 */
function recognizeEvidence(bytes: Uint8Array): EvidenceFile | null {
  const text = toText(bytes)
  if (text.includes(pemBegin)) return readPem(text)
  const token = withoutSpace(text)
  if (/^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*){4}$/.test(token)) {
    return { kind: 'play_integrity', token }
  }
  return readObject(bytes) ?? readObject(decodeBase64(token))
}

/** What is checked where a person says what a file is and its form does not: it is rejected. */
function expectEvidence(kind: AttestationProvider, bytes: Uint8Array): EvidenceFile {
  const text = toText(bytes)
  if (kind === 'key_attestation') return readPem(text)
  if (kind === 'play_integrity') return { kind, token: withoutSpace(text) }
  return { kind, object: decodeBase64(withoutSpace(text)) ?? bytes, keyId: null }
}

/**
 * Recognises a file of any of these kinds, or the JSON of a registration.
 * @param provider what a person says it is, where its form does not
 * @returns null when it is none
 */
export function recognizeFile(
  bytes: Uint8Array,
  provider: AttestationProvider | undefined,
): RegistrationFile | null {
  const registration = recognizeRegistration(bytes)
  if (registration !== null) return registration
  const evidence =
    recognizeEvidence(bytes) ?? (provider === undefined ? null : expectEvidence(provider, bytes))
  return evidence === null ? null : { evidence, challenge: null, packageName: null }
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
    return members.has('fmt') ? { kind: 'app_attest', object, keyId: null } : null
  } catch (error) {
    if (error instanceof Refusal) return null
    throw error
  }
}
