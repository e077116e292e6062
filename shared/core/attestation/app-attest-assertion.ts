/** An assertion of App Attest: that the attested key signed these bytes, in this app. */
import { type KeyObject, verify } from 'node:crypto'
import { type AttestedApp, findAppleApp } from './apps.ts'
import { type AuthenticatorData, parseAssertionData, toHeadFacts } from './authenticator-data.ts'
import { expectBytes, parseCborMap } from './cbor.ts'
import { sha256 } from './encodings.ts'
import { Refusal } from './reasons.ts'
import { type AttestationCheck, startSteps } from './steps.ts'

export type AssertionInput = {
  /** CBOR. */
  assertion: Uint8Array
  /** The key of the attestation, of P-256. */
  publicKey: KeyObject
  /** What the app signed: its SHA-256 is Apple's `clientDataHash`. */
  clientData: Uint8Array
  /** Null reports the app and does not judge it. */
  apps: readonly AttestedApp[] | null
}

type Assertion = { signature: Buffer; authenticatorData: Buffer; data: AuthenticatorData }

/**
 * Verifies an assertion. Its counter is a fact: counters of requests that overtake each other do
 * not rise, so whether it did is for those who know the order of events.
 * @returns the steps until one that the next ones need fails. It never throws for what was sent.
 */
export function checkAssertion(input: AssertionInput): AttestationCheck {
  const log = startSteps('app_attest')
  const facts: Record<string, unknown> = {
    object: 'assertion',
    not_judged: input.apps === null ? ['app'] : [],
  }
  const assertion = log.attempt(
    'assertion',
    () => readAssertion(input.assertion),
    ({ data }) => `counter ${data.counter}`,
  )
  if (assertion === null) return log.end(facts, 'none')
  const { data } = assertion
  Object.assign(facts, toHeadFacts(data))
  const isGenuine = log.attempt(
    'signature',
    () => verifySignature(assertion, input),
    () => 'of the attested key, over these bytes',
  )
  if (input.apps !== null) {
    const app = findAppleApp(input.apps, data.appIdHash, (text) => sha256(Buffer.from(text)))
    log.judge('app', app !== null, 'app_unknown', {
      held: app === null ? '' : `${app.team}.${app.id}`,
      failed: 'the hash of the app id is that of no app on the list',
    })
  }
  return log.end(facts, isGenuine === null ? 'none' : 'hardware')
}

function readAssertion(bytes: Uint8Array): Assertion {
  const object = parseCborMap(bytes)
  const authenticatorData = expectBytes(object.get('authenticatorData'), 'authenticatorData')
  return {
    signature: expectBytes(object.get('signature'), 'signature'),
    authenticatorData,
    data: parseAssertionData(authenticatorData),
  }
}

/** ES256 over a nonce that is a hash itself: the bytes are hashed twice. */
function verifySignature(
  { signature, authenticatorData }: Assertion,
  { publicKey, clientData }: AssertionInput,
): true {
  if (publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new Refusal('unsupported_algorithm', 'the attested key is not of P-256')
  }
  const nonce = sha256(authenticatorData, sha256(clientData))
  if (verify('sha256', nonce, publicKey, signature)) return true
  throw new Refusal('signature_invalid', 'not of this key, or over other bytes')
}
