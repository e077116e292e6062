/**
 * Whether the attested key of an event, or the certificate that signed it, is where it cannot be
 * unless it leaked: registered on more devices or models than one key is for. It counts verified
 * registrations before the event in the stream, so the order of processing changes nothing.
 */
import { issuerModelsMax, sharedPhonesMax } from '#shared/core/base/limits/history.ts'
import type { PhoneLink } from '../identity/decide-link.ts'
import { toPhoneId } from '../identity/phone-id.ts'
import { attestedKeyName } from '../identity/sent-identifiers.ts'
import type { Registration } from './registration.ts'

/**
 * What a verified registration shows of a key.
 * - `key`: the attested key on a phone, which keeps the private one in its hardware.
 * - `remote_issuer`: a certificate that was provisioned for one phone, on a phone.
 * - `issuer`: a certificate of a factory's batch of phones, on a model.
 */
export const keyKinds = ['key', 'remote_issuer', 'issuer'] as const
export type KeyKind = (typeof keyKinds)[number]

/**
 * How many phones, or models for `issuer`, may have the key. Installs that are on one phone are one:
 * a phone whose app was installed again has a new key, and the same certificate above it.
 */
export const sharedKeyMax: Record<KeyKind, number> = {
  key: 1,
  remote_issuer: 1,
  issuer: issuerModelsMax,
}

/** Since when a device or a model has a key. */
export type KeySighting = {
  streamOffset: number
  /** The phone that the device is on, as of the event, or the model. */
  holder: string
}

/** The devices or models of a key, as far as one query has read them. */
export type KeySightings = {
  kind: KeyKind
  /** When the event's key was first registered under it, as a stream offset; 0 for the key. */
  sinceOffset: number
  /** The first of each device or model. */
  sightings: readonly KeySighting[]
}

/** The phone of a device that has a key; a key in common alone proves none. */
export const toPhoneOfKey = (
  { tenantId, deviceId }: { tenantId: string; deviceId: string },
  link: Pick<PhoneLink, 'phoneId' | 'doubtful'> | undefined,
): string =>
  link === undefined || link.doubtful.includes(attestedKeyName)
    ? toPhoneId(tenantId, deviceId)
    : link.phoneId

/** A key that is shared, as of an event. */
export type SharedKey = {
  kind: KeyKind
  /** Of its phones, or models for `issuer`. */
  count: number
  /** Phones that have it beside the event's own, the first ones; none of models. */
  phones: readonly string[]
}

/**
 * @param sightings of the event's attested key and of what signed it
 * @param event later registrations change nothing; `holder` is its phone
 * @returns the strongest proof: the key itself, then a phone's own certificate, then a batch's
 */
export function findSharedKey(
  sightings: readonly KeySightings[],
  { streamOffset, holder: own }: KeySighting,
): SharedKey | null {
  for (const kind of keyKinds) {
    let most = new Set<string>()
    for (const one of sightings) {
      if (one.kind !== kind || one.sinceOffset > streamOffset) continue
      const before = one.sightings.filter((first) => first.streamOffset <= streamOffset)
      const holders = new Set(before.map(({ holder }) => holder))
      if (holders.size > most.size) most = holders
    }
    if (most.size <= sharedKeyMax[kind]) continue
    const others = kind === 'issuer' ? [] : [...most].filter((holder) => holder !== own)
    return { kind, count: most.size, phones: others.slice(0, sharedPhonesMax) }
  }
  return null
}

/** The key of a row of `install_keys`: what is hashed, as ClickHouse's view hashes it. */
export const toKeyText = (kind: KeyKind, key: string): string => `${kind} ${key}`

/**
 * Which certificate of a chain is judged: that which signed the attested key. Those above it belong
 * to a maker or to all phones of a platform. App Attest has one for all phones.
 */
export const findJudgedIssuer = ({
  provider,
  issuers,
}: Pick<Registration, 'provider' | 'issuers'>): string | null =>
  provider === 'key_attestation' ? (issuers[0] ?? null) : null
