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
import { installTokenCharactersMax } from '#shared/core/base/limits/installs.ts'
import type { CategorySignals } from '#shared/core/signals/signal-definition.ts'
import type { InstallProvider, installLevels, installVerdicts } from './registration.ts'

/** Bytes of a root. */
export const installRootBytes = 32

/** The keys of one epoch of a tenant's install root. */
export type InstallRoot = { epoch: number; tokenKey: KeyObject; signingKey: KeyObject }

/** What a token says. Its members are short, because every event brings it. */
export type InstallFacts = {
  /** Tenant. */
  t: string
  /** Device: `toDeviceHash` of its id. */
  d: string
  /** Package or bundle id; null when none was sent, or when it would make the token too long. */
  a: string | null
  /** Provider. */
  p: InstallProvider
  /** Verdict. */
  v: (typeof installVerdicts)[number]
  /** Level of the key. */
  l: (typeof installLevels)[number]
  /** Reason of a rejection. */
  r: string | null
  /** The attested public key: SPKI in base64; null without one. */
  k: string | null
  /** `hashSerial` of the certificates above the leaf, to find those that are revoked later. */
  s: readonly string[]
  /** Server signals of category `attestation` that hold as long as the token. */
  f: CategorySignals
  /** When it was made, and when it ends, in ms since 1970. */
  iat: number
  exp: number
}

/** Why a token does not count. Each is one 401; only a metric tells them apart. */
export type TokenFault = 'install_malformed' | 'install_epoch' | 'install_mac'

/** A token with the key that it derives. */
export type OpenedToken = {
  /** What a body must be signed with. Whoever has it got it with exactly this token. */
  key: string
  /** Null when the text has not the form of a token. */
  parts: TokenParts | null
  text: string
  /** Of its epoch; undefined when the tenant has none. */
  root: InstallRoot | undefined
  decoy: InstallRoot
}

type TokenParts = { head: string; epoch: number; payload: string; mac: string }

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
 * Derives the install key of a token: one HMAC, for any text. A signature that holds under it
 * proves the token as well, since nobody else can derive the key. What it says is not read.
 * @param text of the header
 * @param roots the valid roots of the tenant that the body names
 * @param decoy takes the place of a root that is missing
 */
export function openInstallToken(
  text: string,
  roots: readonly InstallRoot[],
  decoy: InstallRoot,
): OpenedToken {
  const parts = splitToken(text)
  const root = roots.find(({ epoch }) => epoch === parts?.epoch)
  // A longer text is none: it costs no more than the longest token.
  const read = text.slice(0, installTokenCharactersMax)
  return { key: macOf((root ?? decoy).signingKey, read), parts, text: read, root, decoy }
}

/**
 * Judges the MAC of a token that no signature has proven: one HMAC, for any text.
 * @returns null when this service made it for the tenant whose roots it was opened with
 */
export function findTokenFault({ parts, text, root, decoy }: OpenedToken): TokenFault | null {
  const right = Buffer.from(macOf((root ?? decoy).tokenKey, parts?.head ?? text), 'latin1')
  const given = Buffer.alloc(right.length)
  given.write(parts?.mac ?? noMac, 'latin1')
  const isRight = timingSafeEqual(given, right)
  if (parts === null) return 'install_malformed'
  if (root === undefined) return 'install_epoch'
  return isRight ? null : 'install_mac'
}

/**
 * Reads what a token says. Call it once the MAC, or a signature with the key of the token, holds:
 * then this service wrote it, in the shape that its first part names.
 */
export function readInstallFacts({ parts }: OpenedToken): InstallFacts {
  return JSON.parse(Buffer.from(parts!.payload, 'base64url').toString('utf8')) as InstallFacts
}

const form = 'ins1'
const macCharacters = 43
const noMac = '='.repeat(macCharacters)
const epochPattern = /^[1-9]\d{0,9}$/

/** Its alphabets are not looked at: a MAC or a key that holds is of exactly this text. */
function splitToken(text: string): TokenParts | null {
  if (text.length > installTokenCharactersMax) return null
  const parts = text.split('.')
  const [first, epoch = '', payload = '', mac = ''] = parts
  if (parts.length !== 4 || first !== form || mac.length !== macCharacters) return null
  if (payload === '' || !epochPattern.test(epoch)) return null
  return { head: text.slice(0, -1 - macCharacters), epoch: Number(epoch), payload, mac }
}

const macOf = (key: KeyObject, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url')
