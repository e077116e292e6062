/**
 * Whether the attested key of an event, or the certificate that signed it, is where it cannot be
 * unless it leaked: registered on more devices or models than one key is for. It counts verified
 * registrations before the event in the stream, so the order of processing changes nothing.
 */
import { issuerModelsMax } from '#shared/core/base/limits/history.ts'
import type { Registration } from './registration.ts'

/**
 * What a verified registration shows of a key.
 * - `key`: the attested key on a device; a phone keeps the private one in its hardware.
 * - `remote_issuer`: a certificate that was provisioned for one phone, on a device.
 * - `issuer`: a certificate of a factory's batch of phones, on a model.
 */
export const keyKinds = ['key', 'remote_issuer', 'issuer'] as const
export type KeyKind = (typeof keyKinds)[number]

/**
 * How many devices, or models for `issuer`, may have the key. A phone that was bought used, or
 * whose app was installed again, has a new key: one device is all that a key is for.
 */
export const sharedKeyMax: Record<KeyKind, number> = {
  key: 1,
  remote_issuer: 1,
  issuer: issuerModelsMax,
}

/** The devices or models of a key, as far as one query has read them. */
export type KeySightings = {
  kind: KeyKind
  /** When the event's key was first registered under it, as a stream offset; 0 for the key. */
  sinceOffset: number
  /** The first stream offset of each device or model. */
  firstOffsets: readonly number[]
}

/** A key that is shared, with the number of its devices or models as of an event. */
export type SharedKey = { kind: KeyKind; count: number }

/**
 * @param sightings of the event's attested key and of what signed it
 * @param streamOffset of the event: later registrations change nothing
 * @returns the strongest proof: the key itself, then a phone's own certificate, then a batch's
 */
export function findSharedKey(
  sightings: readonly KeySightings[],
  streamOffset: number,
): SharedKey | null {
  for (const kind of keyKinds) {
    let count = 0
    for (const one of sightings) {
      if (one.kind !== kind || one.sinceOffset > streamOffset) continue
      const before = one.firstOffsets.filter((first) => first <= streamOffset).length
      count = Math.max(count, before)
    }
    if (count > sharedKeyMax[kind]) return { kind, count }
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
