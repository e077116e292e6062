/** The parts of the OpenAPI document about installs, which the ingest host serves. */
import { eventEvidenceCharactersMax } from '#shared/core/base/limits/attestation.ts'
import {
  type Json,
  requestIdHeader,
  serverProblems,
  toProblemResponses,
  toSchemaRef,
} from '#shared/io/http/openapi-problems.ts'

const challengeEndsAt = '2026-03-01T09:30:00.000Z'
const expiresAt = '2026-03-31T09:30:00.000Z'
const challenge = 'AAABnKi54QBbHwx6EOlPbB2OKkFMjpxVbMxBTc4PQBId1VSQeR3mxw'

const registrationExample = {
  tenant_id: 'acme',
  device_id: '4f6c1d8e-2a41-4c8e-9c55-0d3b1f0c7a10',
  challenge,
  app: { platform: 'android', id: 'com.acme.bank' },
  device_model: 'Pixel 9',
  evidence: { provider: 'none' },
}

const resultExample = {
  status: 'registered',
  install_token: 'ins1.1.eyJ0IjoiYWNtZSJ9.0V2m0hU2l7gV1uY8m3F6kq9pX4sT7wZaBcDeFgHiJkL',
  install_key: 'q3ZzVx_0cJ5mN8rT2uW4yA6bD9eG1hK7pL-sXvQfRiM',
  expires_at: expiresAt,
  attestation: { provider: 'none', verdict: 'none', reason: null, level: 'none' },
}

/** A header of telemetry. */
export const installHeader: Json = {
  name: 'X-Service-Install',
  in: 'header',
  required: false,
  description:
    'The token of an install. `X-Service-Signature` is then keyed with its install key instead of the HMAC secret. The body must be of its device.',
  schema: { type: 'string', maxLength: 1_024, examples: [resultExample.install_token] },
}

/** A header of telemetry. */
export const attestationHeader: Json = {
  name: 'X-Service-Attestation',
  in: 'header',
  required: false,
  description:
    'Evidence for this event, beside `X-Service-Install`: base64 of an App Attest assertion or of an ECDSA signature of the attested key, over SHA-256 of the raw body, or a Play Integrity token as it is, whose nonce is base64url of SHA-256 of the body.',
  schema: {
    type: 'string',
    maxLength: eventEvidenceCharactersMax,
  },
}

/** @param servers the ingest host */
export function toInstallPaths(servers: Json[]): Json {
  const toContent = (schema: string, example: Json) => ({
    'application/json': { schema: toSchemaRef(schema), example },
  })
  return {
    '/v1/rasp/challenge': {
      servers,
      get: {
        operationId: 'getInstallChallenge',
        tags: ['Ingest'],
        summary: 'Get a challenge for a registration',
        description: 'Every ingest process takes it, for two minutes.',
        security: [],
        responses: {
          200: {
            description: 'Another one each time.',
            headers: requestIdHeader,
            content: toContent('InstallChallenge', { challenge, expires_at: challengeEndsAt }),
          },
          ...toProblemResponses(serverProblems),
        },
      },
    },
    '/v1/rasp/installs': {
      servers,
      post: {
        operationId: 'registerInstall',
        tags: ['Ingest'],
        summary: 'Register an installation of the app',
        description:
          'Signed with the HMAC secret. The answer has a token and a key with which the install signs its telemetry for 30 days. Evidence that does not hold is not refused: it registers as `rejected` with the reason, and the policy weighs it.',
        security: [{ signature: [] }],
        requestBody: {
          required: true,
          content: toContent('InstallRegistration', registrationExample),
        },
        responses: {
          200: {
            description: 'Registered, and recorded durably.',
            headers: requestIdHeader,
            content: toContent('InstallResult', resultExample),
          },
          ...toProblemResponses([
            ...serverProblems,
            'unsupported_media_type',
            'body_too_large',
            'signature_missing',
            'signature_invalid',
            'rate_limited',
            'invalid_body',
            'unavailable',
          ]),
        },
      },
    },
  }
}
