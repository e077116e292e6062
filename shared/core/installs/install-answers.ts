/** The answers of the addresses for installs: documentation, and a check of tests. */
import { z } from 'zod'
import { installLevels, installProviders, installVerdicts } from './registration.ts'

/** @public The OpenAPI document finds it by its id. */
export const challengeAnswerSchema = z
  .object({
    challenge: z.string().meta({ description: 'Base64url of 40 bytes, without padding.' }),
    expires_at: z.iso.datetime().meta({ description: 'Two minutes after it was made.' }),
  })
  .meta({ id: 'InstallChallenge' })

/** @public The OpenAPI document finds it by its id. */
export const installAnswerSchema = z
  .object({
    status: z.literal('registered'),
    install_token: z.string().meta({
      description: 'For `X-Service-Install`, 1,024 characters at most. Keep it as it is.',
    }),
    install_key: z.string().meta({
      description:
        'Keys `X-Service-Signature` in place of the HMAC secret, as UTF-8. Keep it as a secret.',
    }),
    expires_at: z.iso.datetime().meta({ description: 'Register again before it.' }),
    attestation: z.object({
      provider: z.enum(installProviders),
      verdict: z
        .enum(installVerdicts)
        .meta({ description: 'Evidence that does not hold is `rejected`, and registers.' }),
      reason: z.string().nullable().meta({ description: 'Of the first failed step.' }),
      level: z.enum(installLevels),
    }),
  })
  .meta({ id: 'InstallResult' })
