/**
 * The phones of the installs that have one key, while installs are decided in the order of the
 * stream. Each install is added once, however many others are compared with it afterwards.
 */
import { latestHoldersMax } from '../base/limits/entities.ts'
import type { KeyedTraits } from './comparison.ts'
import type { LinksByPhone, PhoneLink } from './decide-link.ts'

export type KeyPhones = {
  /** Of the latest installs with the key. */
  phones: LinksByPhone
  /** @param link of the next install in the order of the stream; undefined if it was erased */
  add: (link: PhoneLink | undefined) => void
}

export function createKeyPhones({ isIdentifier }: Pick<KeyedTraits, 'isIdentifier'>): KeyPhones {
  const phones = new Map<string, PhoneLink[]>()
  const latest: (PhoneLink | null)[] = []
  return {
    phones,
    add: (link) => {
      // Shared identifiers belong to no phone, and an install that was not compared to any.
      const counts = link?.isCompared && !(isIdentifier && link.identifiersShared)
      latest.push(counts ? link : null)
      if (counts) {
        const own = phones.get(link.phoneId) ?? []
        phones.set(link.phoneId, own)
        own.push(link)
      }
      if (latest.length > latestHoldersMax) removeFirst(phones, latest.shift()!)
    },
  }
}

/** The link is the first of its phone. */
function removeFirst(phones: Map<string, PhoneLink[]>, link: PhoneLink | null): void {
  if (link === null) return
  const own = phones.get(link.phoneId)!
  own.shift()
  if (own.length === 0) phones.delete(link.phoneId)
}
