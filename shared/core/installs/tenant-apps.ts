/**
 * The apps of a tenant as an operator names them, as the edges get them, and as evidence is judged.
 * A tenant without apps trusts none: everyone can write an app that a genuine phone attests.
 */
import { z } from 'zod'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import { readDecryptionKey, readVerificationKey } from '#shared/core/attestation/play-keys.ts'
import {
  appIdCharactersMax,
  appSignersMax,
  tenantAppsMax,
} from '#shared/core/base/limits/attestation.ts'

export const appPlatforms = ['android', 'ios'] as const
export type AppPlatform = (typeof appPlatforms)[number]

/** Letters, digits and `_`, from a letter on; two parts at least. */
function isPackage(text: string): boolean {
  const parts = text.split('.')
  return parts.length > 1 && parts.every((part) => /^[A-Za-z][A-Za-z0-9_]*$/.test(part))
}

const isBundle = (text: string): boolean =>
  text.split('.').every((part) => /^[A-Za-z0-9-]+$/.test(part))

const packageSchema = z
  .string()
  .max(appIdCharactersMax)
  .refine(isPackage, 'must be a package such as com.example.app')
const bundleSchema = z
  .string()
  .max(appIdCharactersMax)
  .refine(isBundle, 'must be a bundle id such as com.example.app')

/** The id of an app of either platform, in a path. */
export const appIdSchema = z
  .string()
  .max(appIdCharactersMax)
  .refine((text) => isPackage(text) || isBundle(text), 'must be a package or a bundle id')

/** 32 bytes; the last of 43 characters has two spare bits. */
const signerBase64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/**
 * 64 characters of hex, 32 pairs with colons between them, as keytool prints, or base64, as a key
 * attestation and `di attestation check` have it.
 */
const signerSchema = z
  .string()
  .max(95)
  .refine((text) => {
    if (signerBase64.test(text)) return true
    const pairs = text.split(':')
    if (pairs.length === 1) return /^[0-9A-Fa-f]{64}$/.test(text)
    return pairs.length === 32 && pairs.every((pair) => /^[0-9A-Fa-f]{2}$/.test(pair))
  }, "must be the SHA-256 of a signer's certificate: 64 characters of hex, with colons or without, or base64")
  .describe('SHA-256 of a certificate that signs it, in hex, with colons or without, or in base64')

const teamSchema = z
  .string()
  .regex(/^[A-Z0-9]{10}$/, 'must be the ten letters and digits of the team at Apple')

const playKeysSchema = z
  .strictObject({
    decryption_key: z
      .string()
      .refine((text) => readDecryptionKey(text) !== null, 'must be 32 bytes in base64'),
    verification_key: z
      .string()
      .refine(
        (text) => readVerificationKey(text) !== null,
        'must be a public key of P-256 in base64, as the Play Console shows it',
      ),
  })
  .describe('the two keys of the Play Console')

/** What an operator says of an app. */
export const newAppSchema = z.discriminatedUnion('platform', [
  z.strictObject({
    platform: z.literal('android'),
    id: packageSchema.describe('package'),
    signers: z.array(signerSchema).min(1).max(appSignersMax),
    play_keys: playKeysSchema
      .nullable()
      .optional()
      .describe('null removes them; left out, those of a replaced app stay'),
  }),
  z.strictObject({
    platform: z.literal('ios'),
    id: bundleSchema.describe('bundle id'),
    team: teamSchema,
    development: z
      .boolean()
      .default(false)
      .describe("whether keys of App Attest's development environment count"),
  }),
])
export type NewApp = z.output<typeof newAppSchema>

/** An app as it is shown: its keys never are. */
export const shownAppSchema = z.object({
  platform: z.enum(appPlatforms),
  id: z.string().describe('package or bundle id'),
  signers: z.array(z.string()).describe('SHA-256 in lower-case hex; empty for ios'),
  team: z.string().nullable(),
  play_keys: z.boolean().describe('whether it has the keys of the Play Console'),
  development: z.boolean(),
  created_at: z.string(),
})
export type ShownApp = z.infer<typeof shownAppSchema>

/** Signers as they are stored: hex in lower case without colons, each once. */
export const toSigners = (signers: readonly string[]): string[] => [...new Set(signers.map(toHex))]

const toHex = (signer: string): string =>
  signerBase64.test(signer)
    ? Buffer.from(signer, 'base64').toString('hex')
    : signer.replaceAll(':', '').toLowerCase()

/** The apps in the tenant's entry of the directory. */
export const appEntriesSchema = z
  .array(
    z.discriminatedUnion('platform', [
      z.object({
        platform: z.literal('android'),
        id: z.string(),
        signers: z.array(z.string()),
        play_keys_sealed: z.string().optional(),
      }),
      z.object({
        platform: z.literal('ios'),
        id: z.string(),
        team: z.string(),
        development: z.literal(true).optional(),
      }),
    ]),
  )
  .max(tenantAppsMax)
export type AppEntry = z.infer<typeof appEntriesSchema>[number]

/** As evidence is judged. */
export function toAttestedApp(app: AppEntry): AttestedApp {
  return app.platform === 'android'
    ? { platform: 'android', id: app.id, signers: app.signers }
    : {
        platform: 'ios',
        id: app.id,
        team: app.team,
        allowsDevelopment: app.development === true,
      }
}

/**
 * Which keys open a Play token: those of the app that it is said to be of, or the only ones.
 * @param keys by package
 * @returns null when the tenant has none for it
 */
export function findPlayKeys<Keys>(
  keys: ReadonlyMap<string, Keys>,
  packageName: string | null,
): Keys | null {
  if (packageName !== null) return keys.get(packageName) ?? null
  return keys.size === 1 ? [...keys.values()][0]! : null
}

const sealedKeysSchema = z.object({
  app: z.string(),
  decryption_key: z.string(),
  verification_key: z.string(),
})

/** The text that is sealed. It names its app, so that keys of one app do not open for another. */
export const encodePlayKeys = (
  app: string,
  keys: { decryption_key: string; verification_key: string },
): string => JSON.stringify({ app, ...keys })

/** @returns null when the text is of another app, or none */
export function decodePlayKeys(app: string, text: string) {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  const parsed = sealedKeysSchema.safeParse(value)
  if (!parsed.success || parsed.data.app !== app) return null
  const { decryption_key, verification_key } = parsed.data
  return { decryption_key, verification_key }
}
