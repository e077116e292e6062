/** Vectors of App Attest, of its assertions, and of Play Integrity. */
import { encode } from 'cbor2'
import type { TestRoot } from './make-android-chain.ts'
import {
  type AssertionOptions,
  type AttestationOptions,
  development,
  extensionMap,
  laterMap,
  makeAssertion,
  makeAttestation,
  toCborBytes,
} from './make-app-attest.ts'
import { makeKey, toKeyInfo } from './make-certificate.ts'
import { makePlayToken, type PlayAccount, type TokenOptions } from './make-play-token.ts'
import { type AttestationVector, type Expected, toExpected } from './vectors.ts'

type Moment = { challenge: Buffer; nowMs: number }

const day = 86_400_000
const appId = 'ABCDE12345.com.example.bank'
/** A text key that is there twice, which no encoder writes. */
const twice = (): Buffer => {
  const entry = Buffer.concat([encode('signature'), encode(Uint8Array.of(1))])
  return Buffer.concat([Buffer.of(0xa2), entry, entry])
}

const twoMaps = (): Buffer => Buffer.concat([extensionMap(), extensionMap()])

export function makeAppAttestVectors(
  root: TestRoot,
  { challenge, nowMs }: Moment,
): AttestationVector[] {
  const make = (
    name: string,
    options: Partial<AttestationOptions>,
    expected: Expected,
    more: Partial<AttestationVector> = {},
  ): AttestationVector => {
    const common = { appId, challenge, fromMs: nowMs - day }
    const { attestation, keyId } = makeAttestation(root, { ...common, ...options })
    return {
      name: `app attest: ${name}`,
      kind: 'app_attest',
      input: [attestation.toString('base64')],
      challenge: challenge.toString('base64'),
      key_id: keyId.toString('base64'),
      now_ms: nowMs,
      ...toExpected(expected),
      ...more,
    }
  }
  const app = { platform: 'ios' as const, id: 'com.example.bank', team: 'ABCDE12345' }
  return [
    make('a key of the Secure Enclave', {}, 'verified hardware'),
    make('from iOS 27', { tail: extensionMap() }, 'verified hardware'),
    make('from a later iOS', { tail: laterMap() }, 'verified hardware'),
    make('development, which the app allows', { environment: development }, 'verified hardware', {
      apps: [{ ...app, allowsDevelopment: true }],
    }),
    make('another format', { object: { fmt: 'packed' } }, 'malformed'),
    make('bytes behind the key', { tail: Buffer.of(1) }, 'malformed'),
    make('two maps behind the key', { tail: twoMaps() }, 'malformed'),
    make(
      'a certificate that is none',
      { object: { attStmt: { x5c: [toCborBytes(Buffer.alloc(64, 1)), toCborBytes(twice())] } } },
      'malformed at certificates',
    ),
    make('no certificates', { object: { attStmt: { x5c: [] } } }, 'malformed at certificates'),
    make('ended', { fromMs: nowMs - 400 * day }, 'certificate_expired'),
    make('not begun', { fromMs: nowMs + day }, 'certificate_not_yet_valid'),
    make(
      'a signature of another key',
      { leaf: { signer: makeKey().privateKey } },
      'signature_invalid',
    ),
    make('another challenge', { challenge: Buffer.from('another') }, 'challenge_mismatch'),
    make('no nonce', { leaf: { extensions: [] } }, 'challenge_mismatch'),
    make('another key id', {}, 'key_id_mismatch', {
      key_id: Buffer.alloc(32, 1).toString('base64'),
    }),
    make('another app', { appId: 'ABCDE12345.com.example.other' }, 'app_unknown hardware'),
    make('another team', { appId: 'ZZZZZ12345.com.example.bank' }, 'app_unknown hardware'),
    make('a counter that is not zero', { counter: 1 }, 'counter_not_zero hardware'),
    make(
      'development, which the app does not allow',
      { environment: development },
      'environment_not_allowed hardware',
    ),
    make(
      'an unknown environment',
      { environment: Buffer.alloc(16, 1) },
      'environment_unknown hardware',
    ),
    make(
      'the key of another attestation',
      { credential: makeKey().publicKey },
      'credential_mismatch',
    ),
    {
      ...make('another root', {}, 'untrusted_root'),
      input: [
        makeAttestation(
          { key: makeKey('P-384'), name: root.name },
          { appId, challenge, fromMs: nowMs - day },
        ).attestation.toString('base64'),
      ],
    },
  ]
}

export function makeAssertionVectors({ challenge, nowMs }: Moment): AttestationVector[] {
  const { publicKey, privateKey } = makeKey()
  const make = (
    name: string,
    options: Partial<AssertionOptions>,
    expected: Expected,
    input?: Buffer,
  ): AttestationVector => {
    const made = makeAssertion({ appId, clientData: challenge, privateKey, ...options })
    return {
      name: `assertion: ${name}`,
      kind: 'assertion',
      input: [(input ?? made).toString('base64')],
      challenge: challenge.toString('base64'),
      public_key: toKeyInfo(publicKey).toString('base64'),
      now_ms: nowMs,
      ...toExpected(expected),
    }
  }
  const attestedData = 0x40
  return [
    make('signed', {}, 'verified hardware'),
    make(
      'a flag of attested data with nothing behind it',
      { flags: attestedData },
      'verified hardware',
    ),
    make('from iOS 27', { flags: attestedData, tail: extensionMap() }, 'verified hardware'),
    make('other bytes', { clientData: Buffer.from('other') }, 'signature_invalid'),
    make('another key', { privateKey: makeKey().privateKey }, 'signature_invalid'),
    make('another app', { appId: 'ABCDE12345.com.example.other' }, 'app_unknown hardware'),
    make(
      'bytes behind the map',
      { tail: Buffer.concat([extensionMap(), Buffer.of(0)]) },
      'malformed',
    ),
    make('two maps', { tail: twoMaps() }, 'malformed'),
    make('a key twice', {}, 'malformed', twice()),
    make('an indefinite length', {}, 'malformed', Buffer.from('bf616101ff', 'hex')),
    make('a hundred levels', {}, 'malformed', Buffer.alloc(100, 0x81)),
  ]
}

export async function makePlayVectors(
  account: PlayAccount,
  { challenge, nowMs, signer }: Moment & { signer: Buffer },
): Promise<AttestationVector[]> {
  const make = async (
    name: string,
    options: Partial<TokenOptions>,
    expected: Expected,
    from: PlayAccount = account,
    change: (token: string) => string = (token) => token,
  ): Promise<AttestationVector> => {
    const common = { nonce: challenge, issuedMs: nowMs - 5_000, signer }
    const token = change(await makePlayToken(from, { ...common, ...options }))
    return {
      name: `play: ${name}`,
      kind: 'play_integrity',
      input: [Buffer.from(token).toString('base64')],
      challenge: challenge.toString('base64'),
      now_ms: nowMs,
      ...toExpected(expected),
    }
  }
  const direct = { alg: 'dir', enc: 'A256GCM' }
  const keyWrap = { alg: 'A256KW', enc: 'A256GCM' }
  const hmac = { alg: 'HS256', key: Buffer.from(toKeyInfo(account.signing.publicKey)) }
  const request = { requestPackageName: 'com.example.bank', timestampMillis: String(nowMs) }
  const testing = { verdict: { testingDetails: { isTestingResponse: true } } }
  const unevaluated = { appRecognitionVerdict: 'UNEVALUATED' }
  return Promise.all([
    make('strong integrity', {}, 'verified hardware'),
    make(
      'lists that are empty or missing',
      {
        verdict: { appIntegrity: unevaluated, deviceIntegrity: {}, environmentDetails: {} },
      },
      'verified none',
    ),
    make(
      'device integrity',
      {
        verdict: { deviceIntegrity: { deviceRecognitionVerdict: ['MEETS_DEVICE_INTEGRITY'] } },
      },
      'verified software',
    ),
    make('four parts', {}, 'malformed', account, (token) => token.split('.').slice(1).join('.')),
    make('spare bits in the last character', {}, 'malformed', account, spoil),
    make('compressed', { encryption: { ...keyWrap, zip: 'DEF' } }, 'algorithm_not_allowed'),
    make('other keys', {}, 'decryption_failed', {
      ...account,
      decryptionKey: Buffer.alloc(32, 9),
    }),
    make('encrypted with the key itself', { encryption: direct }, 'algorithm_not_allowed'),
    make('signed with another key', {}, 'signature_invalid', {
      ...account,
      signing: makeKey(),
    }),
    make('an HMAC with the public key', { signature: hmac }, 'algorithm_not_allowed at signature'),
    make('another nonce', { nonce: Buffer.from('another') }, 'challenge_mismatch'),
    make(
      'a standard request',
      {
        verdict: { requestDetails: { ...request, requestHash: 'aGFzaA' } },
      },
      'standard_request',
    ),
    make(
      'no time',
      { verdict: { requestDetails: { requestPackageName: 'a' } } },
      'malformed at verdict',
    ),
    make('eleven minutes old', { issuedMs: nowMs - 660_000 }, 'token_too_old'),
    make('from the future', { issuedMs: nowMs + 120_000 }, 'token_from_future'),
    make(
      'two packages',
      {
        verdict: { appIntegrity: { ...unevaluated, packageName: 'com.example.other' } },
      },
      'package_mismatch',
    ),
    make('a testing response', testing, 'testing_response'),
    make('a testing response, in a sandbox', testing, 'verified hardware').then((vector) => ({
      ...vector,
      environment: 'sandbox' as const,
    })),
    make('another package', { packageName: 'com.example.other' }, 'app_unknown hardware'),
    make('a repackaged app', { signer: Buffer.alloc(32, 0xcd) }, 'app_signer_unknown hardware'),
  ])
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** The last character of 16 bytes has four spare bits: another character decodes to the same. */
const spoil = (token: string): string =>
  `${token.slice(0, -1)}${alphabet[alphabet.indexOf(token.at(-1)!) + 1]}`
