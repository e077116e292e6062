/** The usual mistakes in registering an install and in sending with its token. */
import { signBody } from '#shared/core/telemetry/signature.ts'
import {
  mistake,
  post,
  type RightSubmission,
  type SubmissionMistake,
  type,
} from './ingest-mistakes.ts'

const installsPath = '/v1/rasp/installs'
/** Of the right form; no service made it. */
const challenge = 'A'.repeat(54)
const token = `ins1.1.${'A'.repeat(40)}.${'A'.repeat(43)}`

const right = ({ fields }: RightSubmission) => ({
  tenant_id: fields.tenant_id,
  device_id: fields.device_id,
  challenge,
  app: { platform: 'android', id: 'com.bank.app' },
  evidence: { provider: 'none' } as Record<string, unknown>,
})

/** A registration with other members, signed with the tenant's secret. */
const registration = (
  name: string,
  change: Record<string, unknown>,
  ...says: string[]
): SubmissionMistake =>
  mistake(
    name,
    (parts) => {
      const body = JSON.stringify({ ...right(parts), ...change })
      const headers = { ...type, 'x-service-signature': signBody(body, parts.secret) }
      return { ...post(body, headers), path: installsPath }
    },
    [400, 'invalid_body', ...says],
  )

/** Right telemetry with a token. */
const withToken = (
  name: string,
  toHeaders: (text: string, parts: RightSubmission) => Record<string, string>,
): SubmissionMistake =>
  mistake(
    name,
    (parts) => {
      const text = JSON.stringify(parts.fields)
      return post(text, { ...type, ...toHeaders(text, parts) })
    },
    [401, 'signature_invalid', 'install key', 'Register the install again'],
  )

export const installMistakes: SubmissionMistake[] = [
  mistake('a challenge by POST', () => ({ ...post('{}', type), path: '/v1/rasp/challenge' }), [
    405,
    'method_not_allowed',
  ]),
  mistake(
    'a registration without a signature',
    (parts) => ({ ...post(JSON.stringify(right(parts)), type), path: installsPath }),
    [401, 'signature_missing', 'X-Service-Signature'],
  ),
  registration(
    'a challenge in standard base64',
    { challenge: `${challenge}==` },
    '$.challenge',
    'base64url of 40 bytes',
  ),
  registration('a challenge that is decoded', { challenge: '\u0000'.repeat(40) }, '$.challenge'),
  registration('a challenge of an hour ago', {}, '$.challenge', 'get another one'),
  registration(
    'SafetyNet',
    { evidence: { provider: 'safetynet', jws: 'e30.e30.e30' } },
    '$.evidence.provider',
    'key_attestation, app_attest, play_integrity, none',
  ),
  registration(
    'a chain as one text',
    { evidence: { provider: 'key_attestation', chain: '-----BEGIN CERTIFICATE-----' } },
    '$.evidence.chain',
    'must be an array',
  ),
  registration(
    'no app beside evidence',
    { app: undefined, evidence: { provider: 'key_attestation', chain: ['AA=='] } },
    '$.app',
    'evidence is of an app',
  ),
  withToken('a token as a bearer has it', (text, { secret }) => ({
    'x-service-install': `Bearer ${token}`,
    'x-service-signature': signBody(text, secret),
  })),
  withToken('a token and the secret of the tenant', (text, { secret }) => ({
    'x-service-install': token,
    'x-service-signature': signBody(text, secret),
  })),
  mistake(
    'a token in place of the signature',
    (parts) => post(JSON.stringify(parts.fields), { ...type, 'x-service-install': token }),
    [401, 'signature_missing', 'X-Service-Signature'],
  ),
  mistake(
    'a token beside a batch',
    ({ fields, secret }) => {
      const text = JSON.stringify({ tenant_id: fields.tenant_id, events: [fields] })
      const signed = { 'x-service-install': token, 'x-service-signature': signBody(text, secret) }
      return { ...post(text, { ...type, ...signed }), path: '/v1/rasp/ingest/batch' }
    },
    [400, 'malformed_request', 'X-Service-Install must not be sent with a batch'],
  ),
]
