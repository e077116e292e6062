/**
 * The phones of a stream by a plain walk through its events: all rows are in memory, and each
 * install is decided at its first event with traits. Independent of how scorers find the rows.
 */
import { tenantPhonesMin } from '#shared/core/base/limits/entities.ts'
import { listKeys } from '#shared/core/identity/comparison.ts'
import { type DecidedLink, decideLink, type NewInstall } from '#shared/core/identity/decide-link.ts'
import { toInstallTraits } from '#shared/core/identity/install-traits.ts'
import { toInitialParameters } from '#shared/core/identity/parameters.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'

/** Of fewer installs than a sample or a bound matters for. @returns by `tenant device` */
export function walkPhones(events: readonly AcceptedEvent[]): Map<string, DecidedLink> {
  const links = new Map<string, DecidedLink>()
  const firsts = new Map<string, NewInstall>()
  const holders = new Map<string, Set<string>>()
  const inOrder = events.toSorted((a, b) => a.streamOffset - b.streamOffset)
  for (const event of inOrder) {
    const traits = toInstallTraits(event)
    if (traits === null) continue
    const { tenant_id: tenantId, received_at: receivedAtMs, streamOffset } = event
    const { device_id: deviceId } = event.body
    const nameOf = (id: string) => `${tenantId} ${id}`
    const holdersOf = (key: string) => holders.get(`${tenantId} ${key}`) ?? new Set<string>()
    if (!links.has(nameOf(deviceId))) {
      const install = { tenantId, deviceId, traits, streamOffset, receivedAtMs }
      firsts.set(nameOf(deviceId), install)
      const link = decideLink(install, {
        holdersOf: ({ key }) => ({ installs: [...holdersOf(key)] }),
        linkOf: (id) => links.get(nameOf(id)),
        firstTraitsOf: (id) => firsts.get(nameOf(id))?.traits,
        parameters: toInitialParameters(tenantPhonesMin),
      })
      links.set(nameOf(deviceId), link)
    }
    for (const { key } of listKeys(traits)) {
      holders.set(`${tenantId} ${key}`, new Set([...holdersOf(key), deviceId]))
    }
  }
  return links
}

/** A Postgres without versions of parameters and with empty lists. */
export const emptyPostgres = { query: async () => ({ rows: [] }) } as never
