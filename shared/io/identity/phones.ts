/** The phones of events: what decisions on them need, and the writing of what was decided. */
import type { DecidedLink } from '#shared/core/identity/decide-link.ts'
import type { PhoneFacts } from '#shared/core/identity/phone-findings.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { correctLinks, type LinkAt } from './corrected-links.ts'
import { readDenied } from './denied-installs-store.ts'
import { createLinkFinder } from './link-finder.ts'
import { createParameters } from './parameters-store.ts'
import { createPhoneLinkWriter, type InstallName } from './phone-link-store.ts'

/** The install of an event that was received at an instant, in ms since 1970. */
export type SeenInstall = InstallName & { atMs: number }

export type Phones = {
  /**
   * @returns the phone of each install, in their order; null of one that was erased. All events
   *   before theirs must be stored.
   */
  findFacts: (installs: readonly SeenInstall[]) => Promise<(PhoneFacts | null)[]>
  /** @returns when each install was first seen with traits, in ms since 1970; null if it was erased */
  findFirstSeen: (installs: readonly InstallName[]) => Promise<(number | null)[]>
  /** Stores links that were decided. One call at a time. @throws when ClickHouse fails */
  insertLinks: (links: readonly DecidedLink[]) => Promise<void>
  /** Forgets what it has read and stored: the rows may be gone. */
  forget: () => void
}

export function createPhones(clickhouse: Clickhouse, postgres: Queryable): Phones {
  const finder = createLinkFinder(clickhouse, createParameters(postgres))
  const writer = createPhoneLinkWriter(clickhouse)
  /** How often it was told to forget. */
  let erasures = 0
  return {
    findFacts: async (installs) => {
      const found = await finder.findLinks(installs)
      const known = found.flatMap((one, at) =>
        one === null ? [] : [{ at, ...one, atMs: installs[at]!.atMs }],
      )
      if (known.length === 0) return installs.map(() => null)
      const links = await correctLinks({ clickhouse, postgres }, known)
      const seen = known.map(({ atMs }, n) => ({ link: links[n]!, atMs }))
      const denied = await findDenied(postgres, seen)
      const facts = new Array<PhoneFacts | null>(installs.length).fill(null)
      known.forEach(({ at, decided }, n) => {
        facts[at] = { link: links[n]!, decided, deniedInstall: denied[n]! }
      })
      return facts
    },
    findFirstSeen: async (installs) => {
      const found = await finder.findLinks(installs)
      return found.map((one) => one?.link.receivedAtMs ?? null)
    },
    insertLinks: async (links) => {
      if (links.length === 0) return
      const before = erasures
      await writer.insertLinks(links)
      // What may have been erased meanwhile is read again.
      if (erasures === before) finder.keepLinks(links)
    },
    forget: () => {
      erasures++
      finder.forget()
    },
  }
}

/** Looks up the deny list only where a phone had an install before; of several the latest counts. */
async function findDenied(
  postgres: Queryable,
  links: readonly LinkAt[],
): Promise<(string | null)[]> {
  const earlier = links.map(({ link: { tenantId, installs } }) =>
    installs.map((deviceId) => ({ tenantId, deviceId })),
  )
  const wanted = earlier.flat()
  if (wanted.length === 0) return links.map(() => null)
  const isDenied = await readDenied(postgres, wanted)
  return links.map(
    ({ atMs }, at) => earlier[at]!.findLast((one) => isDenied(one, atMs))?.deviceId ?? null,
  )
}
