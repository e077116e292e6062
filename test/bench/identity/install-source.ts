/**
 * Installs in memory as the scorer reads them from ClickHouse, with the same bounds: who has a key,
 * the links that were decided, and the first traits of each.
 */
import { installsPerSample } from '#shared/core/base/limits/entities.ts'
import { type KeyedTraits, listKeys } from '#shared/core/identity/comparison.ts'
import {
  type ComparedFacts,
  countHolders,
  type Holders,
  type NewInstall,
  type PhoneLink,
} from '#shared/core/identity/decide-link.ts'
import { createKeyPhones, type KeyPhones } from '#shared/core/identity/key-phones.ts'

type KeyHolders = KeyPhones & { installs: number; sampled: number }

export function createInstallSource() {
  const links = new Map<string, PhoneLink>()
  const firsts = new Map<string, NewInstall>()
  const holders = new Map<string, KeyHolders>()
  const phones = new Set<string>()

  const holdersOf = (keyed: KeyedTraits): Holders => {
    const known = holders.get(keyed.key)
    if (known === undefined) return { count: 0, doubtful: 0, phones: new Map() }
    const { sampled, installs, phones, countDoubtful } = known
    const { count, areFew } = countHolders(keyed, { sampled, countAll: () => installs })
    return { count, doubtful: countDoubtful(), phones: areFew ? phones : null }
  }
  const facts: ComparedFacts = {
    holdersOf,
    linkOf: (deviceId) => links.get(deviceId),
    firstOf: (deviceId) => firsts.get(deviceId),
  }
  return {
    facts,
    countPhones: () => phones.size,
    add: (install: NewInstall, link: PhoneLink): void => {
      const { deviceId, traits } = install
      const isSampled = firsts.size % installsPerSample === 0
      links.set(deviceId, link)
      firsts.set(deviceId, install)
      phones.add(link.phoneId)
      for (const keyed of listKeys(traits)) {
        const own = holders.get(keyed.key) ?? {
          ...createKeyPhones(keyed),
          installs: 0,
          sampled: 0,
        }
        holders.set(keyed.key, own)
        own.add(link)
        own.installs++
        if (isSampled) own.sampled++
      }
    },
  }
}
