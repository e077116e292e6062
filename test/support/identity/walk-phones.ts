/**
 * Phones by a plain walk: all rows are in memory, and each install is decided at its first event
 * with traits. Independent of how scorers find the rows.
 */
import { tenantPhonesMin } from '#shared/core/base/limits/entities.ts'
import { type InstallTraits, type KeyedTraits, listKeys } from '#shared/core/identity/comparison.ts'
import {
  type DecidedLink,
  decideLink,
  findCandidates,
  type Holders,
  type NewInstall,
} from '#shared/core/identity/decide-link.ts'
import { toInstallTraits } from '#shared/core/identity/install-traits.ts'
import { createKeyPhones } from '#shared/core/identity/key-phones.ts'
import { toInitialParameters } from '#shared/core/identity/parameters.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'

/**
 * A walk through the installs of one tenant.
 * @param countOf how many installs a key has that only counts; null of the others
 */
export function createPhoneWalk(
  tenantId: string,
  {
    phones = tenantPhonesMin,
    countOf = () => null,
  }: { phones?: number; countOf?: (key: string) => number | null } = {},
) {
  const links = new Map<string, DecidedLink>()
  const firsts = new Map<string, NewInstall>()
  const holders = new Map<string, Set<string>>()
  const holdersOf = (keyed: KeyedTraits): Holders => {
    const count = countOf(keyed.key)
    if (count !== null) return { count, doubtful: 0, phones: null }
    const installs = [...(holders.get(keyed.key) ?? [])]
    const known = createKeyPhones(keyed)
    for (const deviceId of installs) known.add(links.get(deviceId))
    const doubtful = known.countDoubtful()
    return { count: installs.length, doubtful, phones: known.phones }
  }
  return {
    links,
    /** @returns the link of the install, which its first event decides */
    add: (
      deviceId: string,
      traits: InstallTraits,
      { streamOffset, receivedAtMs }: Pick<NewInstall, 'streamOffset' | 'receivedAtMs'> = {
        streamOffset: firsts.size + 1,
        receivedAtMs: firsts.size + 1,
      },
    ): DecidedLink => {
      if (!links.has(deviceId)) {
        const install = { tenantId, deviceId, traits, streamOffset, receivedAtMs }
        firsts.set(deviceId, install)
        const candidates = findCandidates(traits, {
          holdersOf,
          linkOf: (id) => links.get(id),
          firstOf: (id) => firsts.get(id),
        })
        const link = decideLink(install, candidates, toInitialParameters(phones))
        links.set(deviceId, link)
      }
      for (const { key } of listKeys(traits)) {
        holders.set(key, new Set([...(holders.get(key) ?? []), deviceId]))
      }
      return links.get(deviceId)!
    },
  }
}

/** Of fewer installs than a sample or a bound matters for. @returns every link */
export function walkPhones(events: readonly AcceptedEvent[]): DecidedLink[] {
  const walks = new Map<string, ReturnType<typeof createPhoneWalk>>()
  for (const event of events.toSorted((a, b) => a.streamOffset - b.streamOffset)) {
    const traits = toInstallTraits(event)
    if (traits === null) continue
    const { tenant_id: tenantId, received_at: receivedAtMs, streamOffset, body } = event
    const walk = walks.get(tenantId) ?? createPhoneWalk(tenantId)
    walks.set(tenantId, walk)
    walk.add(body.device_id, traits, { streamOffset, receivedAtMs })
  }
  return [...walks.values()].flatMap(({ links }) => [...links.values()])
}

/** A Postgres without versions of parameters and with empty lists. */
export const emptyPostgres = { query: async () => ({ rows: [] }) } as never
