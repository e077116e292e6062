/** The phones of events: what decisions on them need, and the writing of what was decided. */
import type { InstallTraits } from '#shared/core/identity/comparison.ts'
import type { DecidedLink, PhoneLink } from '#shared/core/identity/decide-link.ts'
import { findOtherPhone, readAttestedKey } from '#shared/core/identity/other-phone.ts'
import type { PhoneFacts } from '#shared/core/identity/phone-findings.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { attestedKeyName } from '#shared/core/identity/sent-identifiers.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { correctLinks, type LinkAt } from './corrected-links.ts'
import { readDenied } from './denied-installs-store.ts'
import { createLinkFinder, type LinkFinder } from './link-finder.ts'
import { createParameters } from './parameters-store.ts'
import { createPhoneLinkWriter, type InstallName, toName } from './phone-link-store.ts'

/** The install of an event that was received at an instant, in ms since 1970. */
export type SeenInstall = InstallName & { atMs: number; traits: InstallTraits | null }

export type Phones = {
  /**
   * @returns the phone of each install, in their order; null of one that was erased. All events
   *   before theirs must be stored.
   */
  findFacts: (installs: readonly SeenInstall[]) => Promise<(PhoneFacts | null)[]>
  /** @returns the link of each install as it was decided, without corrections; null if it was erased */
  findLinks: (installs: readonly InstallName[]) => Promise<(PhoneLink | null)[]>
  /** Stores links that were decided. One call at a time. @throws when ClickHouse fails */
  insertLinks: (links: readonly DecidedLink[]) => Promise<void>
  /** Forgets what it has read and stored: the rows may be gone. */
  forget: () => void
}

/** @param onSteps told of the counted steps of each batch with new installs */
export function createPhones(
  clickhouse: Clickhouse,
  postgres: Queryable,
  onSteps?: (steps: number) => void,
): Phones {
  const finder = createLinkFinder(clickhouse, createParameters(postgres), onSteps)
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
      const seen = known.map(({ at, atMs }, n) => {
        const attestedKey = installs[at]!.traits?.identifiers[attestedKeyName] ?? null
        return { link: links[n]!, atMs, attestedKey }
      })
      const denied = await findDenied(postgres, finder, seen)
      const facts = new Array<PhoneFacts | null>(installs.length).fill(null)
      known.forEach(({ at, decided }, n) => {
        const { traits } = installs[at]!
        const link = links[n]!
        const { fixed } = link
        const isKnown = traits !== null && fixed !== null
        const otherPhone = isKnown ? findOtherPhone(fixed, traits) : []
        facts[at] = { link, decided, hasDeniedInstall: denied[n]!, otherPhone }
      })
      return facts
    },
    findLinks: async (installs) => {
      const found = await finder.findLinks(installs)
      return found.map((one) => one?.link ?? null)
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

type SeenLink = LinkAt & { attestedKey: string | null }

/**
 * Whether a denial of an earlier install reaches the phone of each link: from the install that the
 * phone is named after, and from one with the same attested key. Any other may have copied what it
 * was linked by, and would take its denial to the phone of its victim.
 *
 * Looks up the deny list only where a phone had an install before. Installs of one phone have the
 * same earlier ones, which are asked for once.
 */
async function findDenied(
  postgres: Queryable,
  finder: Pick<LinkFinder, 'findLinks'>,
  links: readonly SeenLink[],
): Promise<boolean[]> {
  const wanted = new Map<string, InstallName>()
  const earlier = links.map(({ link: { tenantId, installs } }) =>
    installs.map((deviceId) => {
      const install = { tenantId, deviceId }
      const name = toName(install)
      const known = wanted.get(name) ?? install
      wanted.set(name, known)
      return known
    }),
  )
  if (wanted.size === 0) return links.map(() => false)
  const isDenied = await readDenied(postgres, [...wanted.values()])
  const found = links.map(({ atMs }, at) => earlier[at]!.filter((one) => isDenied(one, atMs)))
  const keys = await readKeys(finder, found.flat())
  return links.map(({ link, attestedKey }, at) =>
    found[at]!.some(
      (one) =>
        toPhoneId(one.tenantId, one.deviceId) === link.phoneId ||
        (attestedKey !== null && keys.get(toName(one)) === attestedKey),
    ),
  )
}

/** @returns the attested keys of installs that have one, by `toName`; of few, so rarely asked */
async function readKeys(
  { findLinks }: Pick<LinkFinder, 'findLinks'>,
  installs: readonly InstallName[],
): Promise<Map<string, string | null>> {
  if (installs.length === 0) return new Map()
  const found = await findLinks(installs)
  return new Map(
    installs.map((install, at) => {
      const fixed = found[at]?.link.fixed ?? null
      return [toName(install), fixed === null ? null : readAttestedKey(fixed)]
    }),
  )
}
