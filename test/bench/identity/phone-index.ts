/** The phones so far, by the keys of their installs: what the ordered scorer would ask for. */
import { phonesOfKeyMax } from '#shared/core/base/limits/entities.ts'
import { comparePhone, type InstallTraits, toKeys } from '#shared/core/identity/comparison.ts'
import type { ObservedInstall } from '#shared/core/identity/estimate-parameters.ts'
import type { KnownPhone } from '#shared/core/identity/link-install.ts'

type OwnPhone = KnownPhone & { installs: InstallTraits[] }

export type PhoneIndex = ReturnType<typeof createPhoneIndex>

export function createPhoneIndex() {
  const phones = new Map<string, OwnPhone>()
  const byKey = new Map<string, Set<string>>()
  const holdersOf = (key: string): number => byKey.get(key)?.size ?? 0

  function findCandidates(install: InstallTraits): KnownPhone[] {
    const found = new Set<string>()
    for (const key of toKeys(install)) {
      const holders = byKey.get(key)
      // A value that more phones share than are compared gives no candidates.
      if (holders === undefined || holders.size > phonesOfKeyMax) continue
      for (const phoneId of holders) found.add(phoneId)
    }
    return [...found].map((phoneId) => phones.get(phoneId)!)
  }

  return {
    phones,
    holdersOf,
    findCandidates,
    add: (phoneId: string, install: InstallTraits, possible: KnownPhone['possible']): void => {
      const phone = phones.get(phoneId) ?? { phoneId, installs: [], possible }
      phones.set(phoneId, phone)
      phone.installs.push(install)
      for (const key of toKeys(install)) {
        const holders = byKey.get(key)
        if (holders === undefined) byKey.set(key, new Set([phoneId]))
        else holders.add(phoneId)
      }
    },
    observe: (install: InstallTraits): ObservedInstall => ({
      phones: phones.size,
      candidates: findCandidates(install).map(({ installs }) =>
        comparePhone(install, installs).map((one) => ({
          one,
          holders: one.key === null ? 1 : holdersOf(one.key),
        })),
      ),
    }),
  }
}
