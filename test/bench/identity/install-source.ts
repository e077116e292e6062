/**
 * Installs in memory as the scorer reads them from ClickHouse, with the same bounds: who has a key,
 * the links that were decided, and the first traits of each.
 */
import { installsPerSample } from '#shared/core/base/limits/entities.ts'
import { type InstallTraits, type KeyedTraits, listKeys } from '#shared/core/identity/comparison.ts'
import {
  type ComparedFacts,
  type Holders,
  type NewInstall,
  type PhoneLink,
  toHolders,
} from '#shared/core/identity/decide-link.ts'

export type InstallSource = ReturnType<typeof createInstallSource>

type KeyHolders = { installs: string[]; sampled: number }

export function createInstallSource() {
  const links = new Map<string, PhoneLink>()
  const firsts = new Map<string, InstallTraits>()
  const holders = new Map<string, KeyHolders>()
  const phones = new Set<string>()

  const holdersOf = (keyed: KeyedTraits): Holders => {
    const { installs, sampled } = holders.get(keyed.key) ?? { installs: [], sampled: 0 }
    const all = { sampled, count: () => installs.length }
    return toHolders(keyed, all, (most) => installs.slice(0, most))
  }
  const facts: ComparedFacts = {
    holdersOf,
    linkOf: (deviceId) => links.get(deviceId),
    firstTraitsOf: (deviceId) => firsts.get(deviceId),
  }
  return {
    facts,
    countPhones: () => phones.size,
    add: (install: NewInstall, link: PhoneLink): void => {
      const { deviceId, traits } = install
      const isSampled = firsts.size % installsPerSample === 0
      links.set(deviceId, link)
      firsts.set(deviceId, traits)
      phones.add(link.phoneId)
      for (const { key } of listKeys(traits)) {
        const own = holders.get(key) ?? { installs: [], sampled: 0 }
        holders.set(key, own)
        own.installs.push(deviceId)
        if (isSampled) own.sampled++
      }
    },
  }
}
