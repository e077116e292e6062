/**
 * `verdict` of a submission: the app asks for a token that its own backend can verify. The backend
 * chose the nonce, so a token answers one question and no other.
 */
import { z } from 'zod'
import {
  verdictAudienceCharactersMax,
  verdictNonceCharactersMax,
} from '#shared/core/base/limits/telemetry.ts'
import { controlCharacters } from '#shared/core/base/visible-text.ts'

export type VerdictRequest = { audience: string; nonce: string }

const textSchema = (charactersMax: number) =>
  z
    .string()
    .min(1)
    .max(charactersMax)
    .refine((text) => !controlCharacters.test(text), 'must not contain control characters')
    .refine((text) => text.isWellFormed(), 'must not contain a lone surrogate')

/** Further members are kept, as everywhere in a submission. */
export const verdictRequestSchema = z
  .looseObject({
    audience: textSchema(verdictAudienceCharactersMax).meta({
      description: 'What the verdict is for, in your own words: the claim `purpose`.',
      examples: ['checkout'],
    }),
    nonce: textSchema(verdictNonceCharactersMax).meta({
      description:
        'A random text that your backend made for this one question, and accepts once: the claim `nonce`.',
      examples: ['sJ0h6m1vQ2yqk3a9c8Xw4g'],
    }),
  })
  .meta({
    description:
      'Asks for a `verdict_token` that your backend can verify without a call to the service. `null` is none.',
  })

/** Whether a value is valid, as `verdictRequestSchema` says, but for lone surrogates. */
export function isVerdictRequest(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { audience, nonce } = value as { audience?: unknown; nonce?: unknown }
  return isText(audience, verdictAudienceCharactersMax) && isText(nonce, verdictNonceCharactersMax)
}

const isText = (value: unknown, charactersMax: number): boolean =>
  typeof value === 'string' &&
  value.length > 0 &&
  value.length <= charactersMax &&
  !controlCharacters.test(value)
