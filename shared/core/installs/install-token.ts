/**
 * Install tokens and install keys. A token says what a registration found, under a MAC; the key
 * that an install signs with is derived from it. Both need the install root of the tenant and
 * nothing else, so an edge keeps no state of installs: `ins1.<root epoch>.<payload>.<MAC>`.
 *
 * Both keys of a root are derived with HKDF, so that neither tells the other.
 */
import {
  createHmac,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto'
import { z } from 'zod'
import { installTokenCharactersMax } from '#shared/core/base/limits/installs.ts'
import type { CategorySignals } from '#shared/core/signals/signal-definition.ts'
import { installLevels, installProviders, installVerdicts } from './registration.ts'

/** Bytes of a root. */
export const installRootBytes = 32

/** The keys of one epoch of a tenant's install root. */
export type InstallRoot = { epoch: number; tokenKey: KeyObject; signingKey: KeyObject }

/** What a token says. Its members are short, because every event brings it. */
export const installFactsSchema = z.object({
  /** Tenant. */
  t: z.string(),
  /** Device: `toDeviceHash` of its id. */
  d: z.string(),
  /** Package or bundle id; null when none was sent, or when it would make the token too long. */
  a: z.string().nullable(),
  /** Provider. */
  p: z.enum(installProviders),
  /** Verdict. */
  v: z.enum(installVerdicts),
  /** Level of the key. */
  l: z.enum(installLevels),
  /** Reason of a rejection. */
  r: z.string().nullable(),
  /** The attested public key: SPKI in base64; null without one. */
  k: z.string().nullable(),
  /** Hashes of the chain's issuers and serials, as in the registration. */
  s: z.array(z.string()),
  /** Server signals of category `attestation` that hold as long as the token. */
  f: z.record(z.string(), z.unknown()),
  /** When it was made, and when it ends, in ms since 1970. */
  iat: z.number().int(),
  exp: z.number().int(),
})
export type InstallFacts = Omit<z.infer<typeof installFactsSchema>, 'f'> & { f: CategorySignals }

/** Why a token does not count. Each is one 401; only a metric tells them apart. */
export type TokenFault = 'install_malformed' | 'install_epoch' | 'install_mac'

export type TokenReading = {
  /** Null when this service made the token for the tenant whose root it was read with. */
  fault: TokenFault | null
  /** The install key of this text, whether the token counts or not. */
  key: string
  /** What it says, unread: base64url of JSON. Read it with `readInstallFacts` without a fault. */
  payload: string
}

/** @param root 32 random bytes @throws RangeError for another length */
export function toInstallRoot(epoch: number, root: Uint8Array): InstallRoot {
  if (root.length !== installRootBytes) {
    throw new RangeError(`an install root has ${installRootBytes} bytes`)
  }
  const derive = (purpose: string) =>
    createSecretKey(
      Buffer.from(hkdfSync('sha256', root, '', `device-intelligence ${purpose} v1`, 32)),
    )
  return { epoch, tokenKey: derive('install token'), signingKey: derive('install key') }
}

/** A device's id in a token: 132 bits of its SHA-256, 22 characters, however long the id is. */
export const toDeviceHash = (deviceId: string): string =>
  hash('sha256', deviceId, 'base64url').slice(0, 22)

/** A token's id in events and registrations: 132 bits of its SHA-256, 22 characters. */
export const toTokenId = (token: string): string => hash('sha256', token, 'base64url').slice(0, 22)

/**
 * Makes a token. Without its app where it would be too long otherwise.
 * @returns the token, and the key that its install signs with: 43 characters of base64url
 * @throws RangeError when it is too long even so
 */
export function makeInstallToken(
  root: InstallRoot,
  facts: InstallFacts,
): { token: string; key: string } {
  for (const fitting of [facts, { ...facts, a: null }]) {
    const payload = Buffer.from(JSON.stringify(fitting)).toString('base64url')
    const head = `${form}.${root.epoch}.${payload}`
    const token = `${head}.${macOf(root.tokenKey, head)}`
    if (token.length <= installTokenCharactersMax) {
      return { token, key: macOf(root.signingKey, token) }
    }
  }
  throw new RangeError(`an install token has more than ${installTokenCharactersMax} characters`)
}

/**
 * Reads a token's MAC and derives its install key: two HMACs, for any text. What the token says is
 * not read.
 * @param text `installTokenCharactersMax` characters of the header at most
 * @param roots the valid roots of the tenant that the body names
 * @param decoy takes the place of a root that is missing
 */
export function readInstallToken(
  text: string,
  roots: readonly InstallRoot[],
  decoy: InstallRoot,
): TokenReading {
  const parts = splitToken(text)
  const root = roots.find(({ epoch }) => epoch === parts?.epoch)
  const { tokenKey, signingKey } = root ?? decoy
  const right = Buffer.from(macOf(tokenKey, parts?.head ?? text), 'latin1')
  const given = Buffer.alloc(right.length)
  given.write(parts?.mac ?? noMac, 'latin1')
  const isRight = timingSafeEqual(given, right)
  const key = macOf(signingKey, text)
  const { payload = '' } = parts ?? {}
  if (parts === null) return { fault: 'install_malformed', key, payload }
  if (root === undefined) return { fault: 'install_epoch', key, payload }
  return { fault: isRight ? null : 'install_mac', key, payload }
}

/**
 * Reads what a token says. Call it once its MAC and the signature of the body hold.
 * @throws when it is none of ours, which the MAC excludes
 */
export function readInstallFacts(payload: string): InstallFacts {
  return installFactsSchema.parse(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')))
}

const form = 'ins1'
const macCharacters = 43
const noMac = '='.repeat(macCharacters)
const pattern = /^ins1\.([1-9]\d*)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/
/** A root epoch is an `integer` of Postgres. */
const epochDigitsMax = 10

type TokenParts = { head: string; epoch: number; payload: string; mac: string }

function splitToken(text: string): TokenParts | null {
  if (text.length > installTokenCharactersMax) return null
  const [, epoch = '', payload = '', mac = ''] = pattern.exec(text) ?? []
  if (mac.length !== macCharacters || epoch.length > epochDigitsMax) return null
  return { head: text.slice(0, -1 - macCharacters), epoch: Number(epoch), payload, mac }
}

const macOf = (key: KeyObject, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url')
