/**
 * Identifiers of a phone as an SDK sends them, in `device.identifiers`. The edge puts keyed hashes
 * in their place before a body leaves it: no store, message or log has one in plain text.
 */
import { createHmac, type KeyObject } from 'node:crypto'
import { toEventId } from '../base/ids.ts'
import {
  identifierCharactersMax,
  identifierNameCharactersMax,
  identifiersMax,
} from '../base/limits/telemetry.ts'
import { findMember } from '../telemetry/json/find-member.ts'
import { isPlaceholderId } from '../telemetry/placeholder-ids.ts'
import { isObject, type Telemetry } from '../telemetry/submission.ts'

/** The name of an attested key among the identifiers of an install: no SDK can send it. */
export const attestedKeyName = 'attested_key'

const namePattern = new RegExp(`^[a-z0-9_]{1,${identifierNameCharactersMax}}$`)

/** Whether an identifier of this name counts. */
export const isIdentifierName = (name: string): boolean =>
  name !== attestedKeyName && namePattern.test(name)

/** Why an identifier is left out. */
export const identifierFaults = ['object', 'name', 'value', 'placeholder', 'many', 'key'] as const
export type IdentifierFault = (typeof identifierFaults)[number]

export type SentIdentifiers = {
  /** Those that count, by name. */
  identifiers: [name: string, value: string][]
  /** Those that are left out; without a name where `identifiers` is no object. */
  leftOut: { name: string | null; fault: IdentifierFault }[]
}

/** @returns null where the body has none */
export function readSentIdentifiers({ device }: Telemetry): SentIdentifiers | null {
  const sent = isObject(device) ? device.identifiers : undefined
  if (sent === undefined || sent === null) return null
  if (!isObject(sent)) return { identifiers: [], leftOut: [{ name: null, fault: 'object' }] }
  const identifiers: SentIdentifiers['identifiers'] = []
  const leftOut: SentIdentifiers['leftOut'] = []
  // By name, so that an SDK's order does not choose which ones count.
  for (const name of Object.keys(sent).sort()) {
    const value = sent[name]
    const fault = findFault(name, value, identifiers.length)
    if (fault === null) identifiers.push([name, value as string])
    else leftOut.push({ name, fault })
  }
  return { identifiers, leftOut }
}

function findFault(name: string, value: unknown, before: number): IdentifierFault | null {
  if (!isIdentifierName(name)) return 'name'
  if (typeof value !== 'string' || value.length > identifierCharactersMax) return 'value'
  if (isPlaceholderId(value)) return 'placeholder'
  return before < identifiersMax ? null : 'many'
}

export const identifierHashCharacters = 22

/** @param key the tenant's own, of addresses too: no address is such a text */
export const hashIdentifier = (name: string, value: string, key: KeyObject): string =>
  createHmac('sha256', key)
    .update(JSON.stringify(['identifier', name, value]))
    .digest('base64url')
    .slice(0, identifierHashCharacters)

/**
 * Whether a stored body has the bytes that were signed.
 * @returns null where hashes stand for its identifiers, so that its id does not say
 */
export function isSignedBody(text: string, eventId: string): boolean | null {
  if (toEventId(Buffer.from(text)) === eventId) return true
  try {
    return readSentIdentifiers(JSON.parse(text) as Telemetry) === null ? false : null
  } catch {
    return false
  }
}

/** A body with hashes in the place of identifiers. */
export type HashedBody = { body: Buffer; hashed: number; leftOut: readonly IdentifierFault[] }

/**
 * Puts hashes in the place of identifiers. Whatever else is in `device.identifiers` goes.
 * @param body as it was signed, and valid
 * @param telemetry as it was read from the body
 * @param key null where the tenant has none: then no identifier is kept
 * @returns null where the body has no identifiers, and may be stored as it is
 */
export function hashIdentifiers(
  body: Buffer,
  telemetry: Telemetry,
  key: KeyObject | null,
): HashedBody | null {
  const sent = readSentIdentifiers(telemetry)
  if (sent === null) return null
  const place = findMember(body, ['device', 'identifiers'])
  if (place === null) throw new Error('the identifiers of a valid body were not found')
  const kept = key === null ? [] : sent.identifiers
  const hashes = kept.map(([name, value]) => [name, hashIdentifier(name, value, key!)])
  const text = JSON.stringify(Object.fromEntries(hashes))
  const lost = sent.identifiers.slice(kept.length).map(() => 'key' as const)
  return {
    body: Buffer.concat([
      body.subarray(0, place.start),
      Buffer.from(text),
      body.subarray(place.end),
    ]),
    hashed: kept.length,
    leftOut: [...sent.leftOut.map(({ fault }) => fault), ...lost],
  }
}
