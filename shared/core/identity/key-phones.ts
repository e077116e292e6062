/**
 * The phones of the installs that have one key, while installs are decided in the order of the
 * stream. Each install is added once, however many others are compared with it afterwards.
 */
import { latestHoldersMax } from '../base/limits/entities.ts'
import type { KeyedTraits } from './comparison.ts'
import type { LinksByPhone, PhoneLink } from './decide-link.ts'
import { isSharedBy } from './link-install.ts'

export type KeyPhones = {
  /** Of the latest installs with the key. */
  phones: LinksByPhone
  /**
   * How many of these installs had the key as the only thing in common with their phone, while
   * another identifier differed: each may be a phone that has the same one, so each holds it.
   */
  countDoubtful: () => number
  /** @param link of the next install in the order of the stream; undefined if it was erased */
  add: (link: PhoneLink | undefined) => void
}

export function createKeyPhones({ identifier }: Pick<KeyedTraits, 'identifier'>): KeyPhones {
  const phones = new Map<string, PhoneLink[]>()
  const latest: { link: PhoneLink | null; isDoubtful: boolean }[] = []
  let doubtful = 0
  return {
    phones,
    countDoubtful: () => doubtful,
    add: (link) => {
      // Shared identifiers belong to no phone, and an install that was not compared to any.
      const counts = link?.isCompared && !(identifier !== null && isSharedBy(link, identifier))
      const isOfOwnPhone = counts && link.kind !== 'linked'
      const isDoubtful =
        identifier !== null && !isOfOwnPhone && link?.doubtful.includes(identifier) === true
      if (isDoubtful) doubtful++
      latest.push({ link: counts ? link : null, isDoubtful })
      if (counts) {
        const own = phones.get(link.phoneId) ?? []
        phones.set(link.phoneId, own)
        own.push(link)
      }
      if (latest.length <= latestHoldersMax) return
      const first = latest.shift()!
      if (first.isDoubtful) doubtful--
      removeFirst(phones, first.link)
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
