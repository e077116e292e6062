/**
 * Apple's App Attest. An attestation, once per key: whether it lies in the Secure Enclave of a
 * genuine device, made for this challenge by an app of the tenant. The steps are the nine of
 * Apple's "Validating apps that connect to your server".
 */
import { type AttestedApp, findAppleApp } from './apps.ts'
import { parseAsn1, readOctets, readSequence } from './asn1.ts'
import {
  type AttestedCredential,
  type AuthenticatorData,
  parseAttestationData,
  toHeadFacts,
} from './authenticator-data.ts'
import { expectBytes, expectMap, parseCborMap } from './cbor.ts'
import {
  anchorOmitted,
  checkPath,
  checkValidity,
  type PathCertificate,
  type PathRules,
  readKey,
} from './certificate-path.ts'
import { sha256, toBase64 } from './encodings.ts'
import { Refusal } from './reasons.ts'
import type { RootKey } from './roots.ts'
import { type AttestationCheck, type StepLog, startSteps } from './steps.ts'

export type AppAttestInput = {
  /** CBOR. */
  attestation: Uint8Array
  /** Null reports the nonce and does not judge it: for finding faults, never for a decision. */
  challenge: Uint8Array | null
  /** The key id that the app gave, which is the hash of its public key. Null: not judged. */
  keyId: Uint8Array | null
  /** Null reports the app and does not judge it. */
  apps: readonly AttestedApp[] | null
  roots: readonly RootKey[]
  nowMs: number
}

/** Apple leaves its root out. */
const pathRules: PathRules = {
  findAnchor: anchorOmitted,
  isRootIncluded: false,
  mayIssue: () => false,
}

const nonceOid = '1.2.840.113635.100.8.2'

/** AAGUIDs of the two environments. */
const environments: readonly [name: string, id: Buffer][] = [
  ['production', Buffer.from('appattest\0\0\0\0\0\0\0', 'latin1')],
  ['development', Buffer.from('appattestdevelop', 'latin1')],
]

type AttestationObject = {
  chain: Buffer[]
  authData: Buffer
  data: AuthenticatorData & AttestedCredential
}

/**
 * Verifies an attestation.
 * @returns the steps until one that the next ones need fails. It never throws for what was sent.
 */
export function checkAppAttest(input: AppAttestInput): AttestationCheck {
  const log = startSteps('app_attest')
  const facts: Record<string, unknown> = { object: 'attestation', not_judged: listUnjudged(input) }
  const object = log.attempt(
    'attestation',
    () => readAttestation(input.attestation),
    ({ chain }) => `apple-appattest with ${chain.length} certificates`,
  )
  if (object === null) return log.end(facts, 'none')
  Object.assign(facts, toHeadFacts(object.data))
  const path = checkPath({ chain: object.chain, roots: input.roots }, pathRules, log, facts)
  if (path === null) return log.end(facts, 'none')
  log.attempt(
    'validity',
    () => checkValidity(path, input.nowMs),
    () => 'the certificates are valid at that time',
  )
  checkNonce(path[0]!, object.authData, input, log, facts)
  const point = checkKeyId(path[0]!, input, log, facts)
  checkApp(object.data, input, log)
  log.judge('counter', object.data.counter === 0, 'counter_not_zero', {
    held: '0',
    failed: `it is ${object.data.counter}`,
  })
  checkEnvironment(object.data, input, log, facts)
  if (point !== null) checkCredential(object.data, point, log)
  const proven = !log.hasFailed(['validity', 'nonce', 'key_id', 'credential'])
  return log.end(facts, proven ? 'hardware' : 'none')
}

function listUnjudged({ challenge, apps, keyId }: AppAttestInput): string[] {
  return [
    ...(challenge === null ? ['challenge'] : []),
    ...(keyId === null ? ['key_id'] : []),
    ...(apps === null ? ['app'] : []),
  ]
}

function readAttestation(bytes: Uint8Array): AttestationObject {
  const object = parseCborMap(bytes)
  if (object.get('fmt') !== 'apple-appattest') {
    throw new Refusal('malformed', 'its format is not apple-appattest')
  }
  const chain = expectMap(object.get('attStmt')).get('x5c')
  if (!Array.isArray(chain)) throw new Refusal('malformed', 'no certificates')
  const authData = expectBytes(object.get('authData'), 'authData')
  return {
    chain: chain.map((certificate) => expectBytes(certificate, 'x5c')),
    authData,
    data: parseAttestationData(authData),
  }
}

/** The leaf holds SHA-256(authData ‖ SHA-256(challenge)), which binds all that the device said. */
function checkNonce(
  { extensions }: PathCertificate,
  authData: Buffer,
  { challenge }: AppAttestInput,
  log: StepLog,
  facts: Record<string, unknown>,
): void {
  const read = () => {
    const extension = extensions.get(nonceOid)
    if (extension === undefined) throw new Refusal('challenge_mismatch', 'the leaf has no nonce')
    const nonce = readNonce(extension)
    facts.nonce = toBase64(nonce)
    const wanted = challenge === null ? nonce : sha256(authData, sha256(challenge))
    if (nonce.equals(wanted)) return
    throw new Refusal('challenge_mismatch', `the nonce is not ${toBase64(wanted)}`)
  }
  log.attempt('nonce', read, () => (challenge === null ? 'there is one; not judged' : 'equal'))
}

/** A sequence of one octet string, in an explicit tag 1. */
function readNonce(extension: Buffer): Buffer {
  const [tagged] = readSequence(parseAsn1(extension), 1, 1)
  if (tagged!.tagClass !== 'context' || tagged!.tag !== 1) {
    throw new Refusal('malformed', 'the nonce of the leaf')
  }
  return readOctets(tagged!.children[0])
}

type Point = { x: Buffer; y: Buffer; id: Buffer }

/** The key id is the hash of the public key as an uncompressed point. */
function checkKeyId(
  leaf: PathCertificate,
  { keyId }: AppAttestInput,
  log: StepLog,
  facts: Record<string, unknown>,
): Point | null {
  facts.public_key = toBase64(leaf.publicKeyInfo)
  return log.attempt(
    'key_id',
    () => {
      const point = readPoint(leaf)
      facts.key_id = toBase64(point.id)
      if (keyId === null || point.id.equals(keyId)) return point
      throw new Refusal('key_id_mismatch', `the key's id is ${facts.key_id}`)
    },
    () => (keyId === null ? 'computed; not judged' : 'equal'),
  )
}

function readPoint({ certificate }: PathCertificate): Point {
  const key = readKey(certificate, 'the leaf')
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new Refusal('unsupported_algorithm', 'the attested key is not of P-256')
  }
  const { x, y } = key.export({ format: 'jwk' })
  const [left, right] = [Buffer.from(x!, 'base64url'), Buffer.from(y!, 'base64url')]
  return { x: left, y: right, id: sha256(Buffer.of(4), left, right) }
}

function checkApp(data: AuthenticatorData, { apps }: AppAttestInput, log: StepLog): void {
  if (apps === null) return
  const app = findAppleApp(apps, data.appIdHash, (text) => sha256(Buffer.from(text)))
  log.judge('app', app !== null, 'app_unknown', {
    held: app === null ? '' : `${app.team}.${app.id}`,
    failed: 'the hash of the app id is that of no app on the list',
  })
}

function checkEnvironment(
  data: AuthenticatorData & AttestedCredential,
  { apps }: AppAttestInput,
  log: StepLog,
  facts: Record<string, unknown>,
): void {
  const name = environments.find(([, id]) => id.equals(data.environment))?.[0]
  facts.environment = name ?? null
  if (name === undefined) {
    const detail = `the AAGUID is ${data.environment.toString('hex')}`
    log.fail('environment', new Refusal('environment_unknown', detail))
    return
  }
  const app = apps && findAppleApp(apps, data.appIdHash, (text) => sha256(Buffer.from(text)))
  const isAllowed = name === 'production' || apps === null || app?.allowsDevelopment === true
  log.judge('environment', isAllowed, 'environment_not_allowed', { held: name, failed: name })
}

function checkCredential({ credentialId, x, y }: AttestedCredential, key: Point, log: StepLog) {
  const holds = credentialId.equals(key.id) && x.equals(key.x) && y.equals(key.y)
  log.judge('credential', holds, 'credential_mismatch', {
    held: 'id and key are those of the certificate',
    failed: 'id or key differ from the certificate',
  })
}
