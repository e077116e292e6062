/** The usual mistakes in calling the client with installs, with what a person reads of each. */
import type { ClientMistake, RightClientCall } from './client-call.ts'

const token = `ins1.1.${'e'.repeat(200)}.${'m'.repeat(43)}`
const key = 'k'.repeat(43)

type Values = Record<string, unknown>

const mistake = (
  name: string,
  make: (right: RightClientCall) => unknown,
  ...says: string[]
): ClientMistake => ({ name, make, error: 'TypeError', says })

/** A right call of `sendTelemetry` with an install, with other options. */
const sending = (name: string, change: Values, ...says: string[]): ClientMistake =>
  mistake(
    name,
    ({ client, telemetry, options: { hmacSecret: _unused, ...call } }) =>
      client.sendTelemetry(telemetry, { ...call, install: { token, key }, ...change }),
    ...says,
  )

const toRegistration = ({ options }: RightClientCall) => ({
  ...options,
  tenantId: 'acme',
  deviceId: 'd-1',
  app: { platform: 'android', id: 'com.example.bank' },
  getEvidence: () => ({ provider: 'none' }),
})

/** A right call of `registerInstall` with other options. */
const registering = (name: string, change: Values, ...says: string[]): ClientMistake =>
  mistake(
    name,
    (right) => right.client.registerInstall({ ...toRegistration(right), ...change } as never),
    ...says,
  )

/** A right call of `createInstallSender` with other options. */
const keeping = (name: string, change: Values, ...says: string[]): ClientMistake =>
  mistake(
    name,
    (right) => right.client.createInstallSender({ ...toRegistration(right), ...change } as never),
    ...says,
  )

const expiresAt = '2026-12-27T00:00:00.000Z'
const kept = { installToken: token, installKey: key, expiresAt }
const playEvidence = { provider: 'play_integrity', token: 'a.b.c.d.e' }
const given = { getEvidence: undefined, challenge: 'c' }

export const installMistakes: ClientMistake[] = [
  sending('an install and the secret', { hmacSecret: 'x'.repeat(43) }, 'hmacSecret must not be'),
  sending('an install as text', { install: token }, 'install must be an object with token and key'),
  sending('what a registration returned', { install: kept }, 'install must be { token, key }'),
  sending('an install with more', { install: { token, key, id: 1 } }, 'install.id is not one of'),
  sending('no token', { install: { key } }, 'install.token is undefined'),
  sending('no key', { install: { token, key: '' } }, 'install.key is empty'),
  sending('the key as token', { install: { token: key, key } }, 'install.token must begin with'),
  sending(
    'the token as key',
    { install: { token, key: token } },
    'install.key is an install token',
  ),
  sending('a part of the key', { install: { token, key: 'k' } }, 'install.key must be the 43'),
  sending(
    'a token that was cut and continued',
    { install: { token: `${token}${'x'.repeat(1_000)}`, key } },
    'install.token is not as the registration gave it',
  ),
  sending('evidence as bytes', { attestation: new Uint8Array(8) }, 'attestation must be base64'),
  sending('no evidence as text', { attestation: '' }, 'attestation is empty'),
  sending(
    'evidence in lines',
    { attestation: 'AAEC\nAwQF' },
    'attestation must be base64',
    'white',
  ),
  sending('a promise of evidence', { attestation: Promise.resolve('AA==') }, 'await it'),
  sending(
    'evidence that is made as bytes',
    { attestation: () => new Uint8Array(8) },
    'attestation must be base64',
  ),
  mistake(
    'evidence without an install',
    ({ client, telemetry, options }) =>
      client.sendTelemetry(telemetry, { ...options, attestation: 'AA==' } as never),
    'attestation needs install',
  ),
  mistake(
    'the token as secret',
    ({ client, telemetry, options }) =>
      client.sendTelemetry(telemetry, { ...options, hmacSecret: token }),
    'hmacSecret is an install token',
  ),
  mistake(
    'a batch with an install',
    ({ client, telemetry, options: { hmacSecret: _unused, ...call } }) =>
      client.sendBatch([telemetry], { ...call, install: { token, key } } as never),
    'install signs telemetry of one device',
  ),
  mistake(
    'a secret for a challenge',
    ({ client, options }) => client.fetchChallenge(options),
    'hmacSecret is not an option',
  ),
  registering('no tenant', { tenantId: undefined }, 'tenantId is undefined'),
  registering('no device', { deviceId: '' }, 'deviceId is empty'),
  registering('no secret for a registration', { hmacSecret: undefined }, 'hmacSecret is undefined'),
  registering(
    'the address with the path of installs',
    { ingestUrl: 'https://ingest.test/v1/rasp/installs' },
    'ingestUrl must end before /v1/rasp/installs',
  ),
  registering('an app as text', { app: 'com.example.bank' }, 'app must be an object'),
  registering(
    'an app of a web page',
    { app: { platform: 'web', id: 'a' } },
    'app.platform must be',
  ),
  registering('an app without its id', { app: { platform: 'ios' } }, 'app.id is undefined'),
  registering('no evidence', { getEvidence: undefined }, 'getEvidence is undefined', "'none'"),
  registering('evidence for no challenge', { getEvidence: { provider: 'none' } }, 'a function'),
  registering('both ways', { challenge: 'c' }, 'challenge must not be given with getEvidence'),
  registering(
    'a challenge of the app without evidence',
    given,
    'evidence must be an object with a provider',
  ),
  registering(
    'a provider that there is not',
    { ...given, evidence: { provider: 'safetynet' } },
    'evidence.provider must be one of key_attestation',
  ),
  registering(
    'a chain in one text',
    { ...given, evidence: { provider: 'key_attestation', chain: 'MIIB' } },
    'evidence.chain must be an array',
  ),
  registering(
    'a certificate as bytes',
    { ...given, evidence: { provider: 'key_attestation', chain: [new Uint8Array(3)] } },
    'evidence.chain[0] must be a string',
  ),
  registering(
    'evidence of no app',
    { ...given, app: undefined, evidence: playEvidence },
    'app is undefined',
  ),
  registering('a model as object', { deviceModel: {} }, 'deviceModel must be a string'),
  registering(
    'an object of App Attest without its key id',
    { ...given, evidence: { provider: 'app_attest', attestation: 'o2' } },
    'evidence.key_id is undefined',
  ),
  registering(
    'a promise of evidence',
    { ...given, evidence: Promise.resolve({ provider: 'none' }) },
    'evidence is a promise: await it',
  ),
  registering(
    'a Play token without its token',
    { ...given, evidence: { provider: 'play_integrity' } },
    'evidence.token is undefined',
  ),
  keeping('a sender for one challenge', { challenge: 'c' }, 'challenge is not an option'),
  keeping(
    'a sender without evidence',
    { getEvidence: undefined },
    'getEvidence must be a function',
  ),
  keeping('two ways to register', { register: async () => kept }, 'tenantId must not be given'),
  keeping('an install of another form', { install: { token, key } }, 'install must be what'),
  keeping(
    'an install without its end',
    { install: { ...kept, expiresAt: 'soon' } },
    'install.expiresAt must be an instant',
  ),
  keeping('a place instead of a function', { onInstall: 'file' }, 'onInstall must be a function'),
  mistake(
    'telemetry of another device',
    (right) => {
      const sender = right.client.createInstallSender(toRegistration(right) as never)
      return sender.send({ ...right.telemetry, device_id: 'd-2' })
    },
    'telemetry.device_id must be the deviceId of the install',
  ),
]
