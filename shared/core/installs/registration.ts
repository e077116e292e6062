/**
 * A registration of an install as it travels through the telemetry stream: an element of a batch
 * beside events, in their order. The edge makes it from what it verified; nothing of the evidence
 * itself is in it, because certificates can name a phone.
 */
import { z } from 'zod'
import { toEventId } from '#shared/core/base/ids.ts'

/** What an install can be registered with. */
export const installProviders = ['key_attestation', 'app_attest', 'play_integrity', 'none'] as const
export type InstallProvider = (typeof installProviders)[number]

export const installVerdicts = ['verified', 'rejected', 'none'] as const
export const installLevels = ['strongbox', 'hardware', 'software', 'none'] as const

/** The body of the element, as the edge writes it. */
export const registrationSchema = z.object({
  tenant_id: z.string(),
  device_id: z.string(),
  platform: z.enum(['android', 'ios']).nullable(),
  /** Package or bundle id, as the app said; judged by `app_known`. */
  app_id: z.string().nullable(),
  provider: z.enum(installProviders),
  verdict: z.enum(installVerdicts),
  /** Of the first failed step; null unless rejected. */
  reason: z.string().nullable(),
  level: z.enum(installLevels),
  /** SHA-256 of the attested key's SubjectPublicKeyInfo in base64url; null without one. */
  attested_key: z.string().nullable(),
  /**
   * The certificates above the leaf, from the leaf's issuer up without the root: SHA-256 of issuer
   * and serial in base64url, 22 characters. Empty without a chain.
   */
  issuers: z.array(z.string()).max(8),
  /** Whether the chain was provisioned remotely, so that each phone has an issuer of its own. */
  remotely_provisioned: z.boolean(),
  /** The phone's model as the attestation or else the client said; empty where unknown. */
  device_model: z.string(),
  /** The epoch of the tenant's install root that made the token. */
  root_epoch: z.number().int(),
  /** SHA-256 of the token in base64url, 22 characters. */
  token_id: z.string(),
  /** When the token ends, in ms since 1970. */
  expires_at: z.number().int(),
})
export type Registration = z.infer<typeof registrationSchema>

/** What the edge adds to it. */
export const registrationHeaderSchema = z.object({
  /** Tells it from an event. */
  registration: z.literal(true),
  /** Of the body's bytes, as of an event. */
  event_id: z.string(),
  tenant_id: z.string(),
  /** The edge's wall clock, in ms since 1970. */
  received_at: z.number().int(),
})
export type RegistrationHeader = z.infer<typeof registrationHeaderSchema>

/** One registration as the scorer decodes it. */
export type AcceptedRegistration = RegistrationHeader & {
  streamOffset: number
  body: Registration
}

/**
 * The body of a registration's element, with its id. Equal registrations at one moment are one.
 * @returns the bytes to publish after the head that `encodeRegistrationHead` makes
 */
export function encodeRegistration(registration: Registration): { id: string; body: Buffer } {
  const body = Buffer.from(JSON.stringify(registrationSchema.parse(registration)))
  return { id: toEventId(body), body }
}
