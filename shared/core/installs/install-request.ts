/**
 * The body of a registration, as a client sends it. Members beyond these are accepted and left out.
 */
import { z } from 'zod'
import { tenantIdPattern } from '#shared/core/base/ids.ts'
import { evidenceCharactersMax } from '#shared/core/base/limits/attestation.ts'
import {
  appIdCharactersMax,
  deviceModelCharactersMax,
  registrationDepthMax,
  registrationMembersMax,
} from '#shared/core/base/limits/installs.ts'
import { controlCharacters } from '#shared/core/base/visible-text.ts'
import { describeFault } from '#shared/core/http/fault-messages.ts'
import type { ProblemDetail } from '#shared/core/http/problem.ts'
import { scanBody } from '#shared/core/telemetry/body-scan.ts'
import { findDuplicateMember } from '#shared/core/telemetry/json/duplicate-member.ts'
import { describeJsonFault, findTextFault } from '#shared/core/telemetry/json/json-syntax.ts'
import { toProblemDetails } from '#shared/core/telemetry/parse-telemetry.ts'
import { isObject, sentIdSchema } from '#shared/core/telemetry/submission.ts'
import { type ChallengeFault, decodeChallenge } from './challenge.ts'
import { installProviders } from './registration.ts'

const textSchema = z.string().min(1).max(evidenceCharactersMax)

/** What a client can register with. Each text is judged where it is verified. */
export const evidenceSchema = z.discriminatedUnion(
  'provider',
  [
    z.object({
      provider: z.literal('key_attestation'),
      chain: z
        .array(textSchema)
        .min(1)
        .meta({ description: 'Certificates in base64 DER, leaf first.' }),
    }),
    z.object({
      provider: z.literal('app_attest'),
      key_id: textSchema,
      attestation: textSchema.meta({ description: 'CBOR in base64.' }),
    }),
    z.object({
      provider: z.literal('play_integrity'),
      token: textSchema.meta({ description: 'Of a classic request; its nonce is the challenge.' }),
    }),
    z.object({ provider: z.literal('none') }),
  ],
  {
    error: ({ code }) =>
      code === 'invalid_union' ? `must be one of ${installProviders.join(', ')}` : undefined,
  },
)
export type Evidence = z.infer<typeof evidenceSchema>

const visibleText = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((text) => !controlCharacters.test(text), 'must not contain control characters')
    .refine((text) => text.isWellFormed(), 'must not contain a lone surrogate')

export const installBodySchema = z
  .object({
    tenant_id: z.string().regex(tenantIdPattern).meta({ description: 'The tenant slug.' }),
    device_id: sentIdSchema.meta({ description: 'As in telemetry: one installation of the app.' }),
    challenge: z
      .string()
      .refine((text) => decodeChallenge(text) !== null, 'must be base64url of 40 bytes')
      .meta({ description: 'From `GET /v1/rasp/challenge`, two minutes old at most.' }),
    app: z
      .object({
        platform: z.enum(['android', 'ios']),
        id: visibleText(appIdCharactersMax).meta({ description: 'Package or bundle id.' }),
      })
      .optional()
      .meta({ description: 'Required with evidence.' }),
    device_model: visibleText(deviceModelCharactersMax)
      .optional()
      .meta({ description: 'As the system names it.' }),
    evidence: evidenceSchema,
  })
  .meta({ id: 'InstallRegistration' })
export type InstallBody = z.infer<typeof installBodySchema>

/** A registration whose body was read. */
export type InstallRequest = {
  tenantId: string
  deviceId: string
  /** The 40 bytes that evidence is made over. */
  challenge: Buffer
  /** Why the challenge does not count; null when it does. */
  challengeFault: ChallengeFault | null
  /** Null is possible without evidence only. */
  app: NonNullable<InstallBody['app']> | null
  /** As the client said; empty when it did not. */
  deviceModel: string
  evidence: Evidence
  /** The edge's wall clock, in ms since 1970. */
  receivedAtMs: number
}

type ParsedInstall = { ok: true; body: InstallBody } | { ok: false; errors: ProblemDetail[] }

/**
 * Parses a body whose signature has been verified for a tenant.
 * @returns what it says, or every fault with its JSON path
 */
export function parseInstall(body: Buffer, tenantId: string): ParsedInstall {
  const refuse = (path: string, message: string): ParsedInstall => ({
    ok: false,
    errors: [{ path, message }],
  })
  const scan = scanBody(body)
  if (scan.depth > registrationDepthMax) {
    return refuse('$', `is nested deeper than ${registrationDepthMax} levels`)
  }
  if (scan.members > registrationMembersMax) {
    return refuse('$', `has more than ${registrationMembersMax} members in all`)
  }
  const textFault = findTextFault(body)
  if (textFault !== null) return refuse('$', textFault)
  const text = body.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return refuse('$', describeJsonFault(body))
  }
  if (!isObject(value)) return refuse('$', 'must be an object')
  const duplicate = findDuplicateMember(text)
  if (duplicate !== null) return refuse(duplicate, 'is given more than once')
  if (value.tenant_id !== tenantId) return refuse('$.tenant_id', 'is given more than once')
  const parsed = installBodySchema.safeParse(value, { error: describeFault })
  if (!parsed.success) return { ok: false, errors: toProblemDetails(parsed.error) }
  const { app, evidence } = parsed.data
  if (app === undefined && evidence.provider !== 'none') {
    return refuse('$.app', 'is missing; evidence is of an app')
  }
  return { ok: true, body: parsed.data }
}
