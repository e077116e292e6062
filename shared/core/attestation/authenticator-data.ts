/**
 * The bytes that App Attest signs: hash of the app id, flags, counter; in an attestation also the
 * environment, the credential id and the key. From iOS 27 a map can follow, in assertions too,
 * where the flag of attested data is set though none is there.
 */
import { type CborMap, parseCborMaps } from './cbor.ts'
import { toBase64 } from './encodings.ts'
import { Refusal } from './reasons.ts'

export type AuthenticatorData = {
  /** SHA-256 of `TEAM.BUNDLE`. */
  appIdHash: Buffer
  flags: number
  counter: number
  /** The map of iOS 27, as facts. */
  extensions: Record<string, unknown>
}

export type AttestedCredential = {
  environment: Buffer
  credentialId: Buffer
  /** The coordinates of a P-256 key. */
  x: Buffer
  y: Buffer
}

const headBytes = 37
const attestedDataFlag = 0x40
const coordinateBytes = 32

function readHead(data: Buffer): Omit<AuthenticatorData, 'extensions'> {
  if (data.length < headBytes) throw malformed(`${data.length} bytes`)
  return {
    appIdHash: data.subarray(0, 32),
    flags: data[32]!,
    counter: data.readUInt32BE(33),
  }
}

const malformed = (detail: string) => new Refusal('malformed', `authenticator data: ${detail}`)

/** @throws Refusal when the bytes have another form, or others follow */
export function parseAssertionData(data: Buffer): AuthenticatorData {
  const maps = data.length > headBytes ? parseCborMaps(data.subarray(headBytes)) : []
  if (maps.length > 1) throw malformed('more than one map')
  return { ...readHead(data), extensions: toExtensions(maps[0]) }
}

/** @throws Refusal when the bytes have another form, or others follow */
export function parseAttestationData(data: Buffer): AuthenticatorData & AttestedCredential {
  const head = readHead(data)
  if ((head.flags & attestedDataFlag) === 0 || data.length < headBytes + 18) {
    throw malformed('no attested key')
  }
  const idBytes = data.readUInt16BE(headBytes + 16)
  const keyStart = headBytes + 18 + idBytes
  if (keyStart > data.length) throw malformed('a credential id beyond the end')
  const maps = parseCborMaps(data.subarray(keyStart))
  if (maps.length === 0 || maps.length > 2) throw malformed(`${maps.length} maps`)
  return {
    ...head,
    environment: data.subarray(headBytes, headBytes + 16),
    credentialId: data.subarray(headBytes + 18, keyStart),
    ...readCoseKey(maps[0]!),
    extensions: toExtensions(maps[1]),
  }
}

/** COSE's parameters of a key: kind, algorithm, curve, coordinates. */
function readCoseKey(key: CborMap): { x: Buffer; y: Buffer } {
  const [x, y] = [key.get(-2), key.get(-3)]
  const isP256 = key.get(1) === 2 && key.get(3) === -7 && key.get(-1) === 1
  const hasPoint = [x, y].every(
    (value) => value instanceof Uint8Array && value.length === coordinateBytes,
  )
  if (!isP256 || !hasPoint) throw malformed('no P-256 key')
  return { x: Buffer.from(x as Uint8Array), y: Buffer.from(y as Uint8Array) }
}

/** Values that Apple has documented. Others, and those of another type, are named: Apple adds some. */
function toExtensions(map: CborMap | undefined): Record<string, unknown> {
  const extensions: Record<string, unknown> = {}
  const unknown: string[] = []
  for (const [name, value] of map ?? []) {
    const isBytes = value instanceof Uint8Array
    if (name === 'apple_validation_category_01' && isBytes && value.length === 4) {
      extensions.validation_category = Buffer.from(value).readUInt32LE()
    } else if (name === 'apple_bundle_version_01' && (isBytes || typeof value === 'string')) {
      extensions.bundle_version = isBytes ? Buffer.from(value).toString('utf8') : value
    } else unknown.push(String(name))
  }
  if (unknown.length > 0) extensions.unknown_extensions = unknown
  return extensions
}

/** The parts that an assertion and an attestation share, as facts. */
export function toHeadFacts(data: AuthenticatorData): Record<string, unknown> {
  return {
    app_id_hash: toBase64(data.appIdHash),
    flags: data.flags,
    counter: data.counter,
    ...data.extensions,
  }
}
