/**
 * Finds which phones the installs of a batch of events are on. An install that is not decided yet
 * is decided here, and so are those before it in the stream that share a key with it and have no
 * link either: another scorer may have them. Every scorer finds the same, because all rows before
 * an event are stored and later ones change nothing.
 *
 * A link does not change once it was compared, so a batch of known installs costs no query. What
 * new ones cost is counted: an install for which its tenant has no steps left is a phone of its
 * own, and says so, until an event of it in a later batch.
 */
import { LRUCache } from 'lru-cache'
import {
  comparedAgainMs,
  comparedInstallsMax,
  firstTraitsInMemoryMax,
  heldKeysQueryMax,
  latestHoldersMax,
  linkKnownMs,
  linksInMemoryMax,
  personalHoldersMax,
  searchRoundsMax,
  tenantPhonesMin,
  tenantStepsMax,
} from '#shared/core/base/limits/entities.ts'
import {
  type Candidates,
  type DecidedLink,
  decideLink,
  findCandidates,
  listKnown,
  type NewInstall,
  noCandidates,
  type PhoneLink,
} from '#shared/core/identity/decide-link.ts'
import { createKeyPhones, type KeyPhones } from '#shared/core/identity/key-phones.ts'
import { type IdentityParameters, toInitialParameters } from '#shared/core/identity/parameters.ts'
import { isPlaceholderId } from '#shared/core/telemetry/placeholder-ids.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import {
  completeLinks,
  createKeyHolders,
  type Holder,
  type KeyHolders,
  type OffsetSpan,
  type PlacedKey,
  placeKeys,
  readFirsts,
} from './identity-keys-reader.ts'
import { type InstallName, readLinks, toName } from './phone-link-store.ts'

/** A link, and what it was decided by where it may not be stored yet. */
export type FoundLink = { link: PhoneLink; decided: DecidedLink | null }

/** The version of a tenant's parameters at an instant; null where there is none. */
export type FindParameters = (tenantId: string, atMs: number) => IdentityParameters | null

export type LinkFinder = {
  /** @returns the link of each install, in their order; null of one that was erased */
  findLinks: (installs: readonly InstallName[]) => Promise<(FoundLink | null)[]>
  /** Call it when links are stored: their installs are then known. */
  keepLinks: (links: readonly PhoneLink[]) => void
  /** Forgets what it has read: the rows may be gone. */
  forget: () => void
}

type State = {
  clickhouse: Clickhouse
  readParameters: (tenantIds: readonly string[]) => Promise<FindParameters>
  onSteps: (steps: number) => void
  links: LRUCache<string, PhoneLink>
  firsts: LRUCache<string, NewInstall>
}

/** @param onSteps told of the counted steps of each batch */
export function createLinkFinder(
  clickhouse: Clickhouse,
  readParameters: State['readParameters'],
  onSteps: State['onSteps'] = () => undefined,
): LinkFinder {
  const createMemory = (): Pick<State, 'links' | 'firsts'> => ({
    links: new LRUCache({ max: linksInMemoryMax, ttl: linkKnownMs }),
    firsts: new LRUCache({ max: firstTraitsInMemoryMax }),
  })
  const state: State = { clickhouse, readParameters, onSteps, ...createMemory() }
  return {
    findLinks: async (installs) => {
      const names = installs.map(toName)
      const links = await findLinks(state, new Map(names.map((name, at) => [name, installs[at]!])))
      return names.map((name) => links.get(name) ?? null)
    },
    keepLinks: (links) => {
      for (const link of links) keep(state.links, link)
    },
    // What is being read now, from before, goes into the old memory.
    forget: () => void Object.assign(state, createMemory()),
  }
}

/** Without the evidence, which nothing asks for. */
function keep(kept: State['links'], { ...link }: PhoneLink & { evidence?: unknown }): void {
  delete link.evidence
  kept.set(toName(link), link, { ttl: link.isCompared ? linkKnownMs : comparedAgainMs })
}

/** An install that is to be decided, with its keys. */
type OpenInstall = NewInstall & { keys: PlacedKey[] }

/** A key of open installs, and how far the installs that have it are known. */
type SearchedKey = {
  tenantId: string
  holders: readonly Holder[]
  /** Those whose link was not found yet. */
  unresolved: readonly Holder[]
  phones: KeyPhones
  /** How many of the holders were added to the phones. */
  added: number
  /** Whether steps are missing to know them all. */
  isLeft: boolean
}

/** What is known while the installs of a batch are decided, by `toName` or the name of a key. */
type Search = {
  links: Map<string, FoundLink>
  /** Installs without a link. */
  open: Map<string, OpenInstall>
  /** Neither has a row: it was erased. */
  gone: Set<string>
  keys: Map<string, SearchedKey>
  /** The installs with links that others may be compared with. */
  compared: Map<string, InstallName>
  /** By tenant. */
  readSteps: Map<string, number>
  comparedSteps: Map<string, number>
}

const createSearch = (): Search => ({
  links: new Map(),
  open: new Map(),
  gone: new Set(),
  keys: new Map(),
  compared: new Map(),
  readSteps: new Map(),
  comparedSteps: new Map(),
})

const hasSteps = (taken: ReadonlyMap<string, number>, tenantId: string): boolean =>
  (taken.get(tenantId) ?? 0) < tenantStepsMax

/** @returns whether the tenant had as many left */
function takeSteps(taken: Map<string, number>, tenantId: string, steps: number): boolean {
  const all = (taken.get(tenantId) ?? 0) + steps
  taken.set(tenantId, all)
  return all <= tenantStepsMax
}

async function findLinks(
  state: State,
  wanted: ReadonlyMap<string, InstallName>,
): Promise<ReadonlyMap<string, FoundLink>> {
  const search = createSearch()
  let span: OffsetSpan | null = null
  let holders: KeyHolders | null = null
  let asked = wanted
  // In each round the installs before those of the last one; few, since most are decided long ago.
  for (let round = 0; asked.size > 0 && round < searchRoundsMax; round++) {
    const found = await resolve(state, search, asked, { isWanted: round === 0 })
    if (found.length > 0) {
      const offsets = found.map(({ streamOffset }) => streamOffset)
      const firstOffset = Math.min(...offsets)
      if (holders === null || span === null || firstOffset < span.firstOffset) {
        // Rounds go back in the stream. All of what another scorer is deciding is found at once.
        const latest: number = span === null ? latestHoldersMax : personalHoldersMax
        const lastOffset: number = span?.lastOffset ?? Math.max(...offsets)
        span = { firstOffset, lastOffset }
        holders = createKeyHolders(state.clickhouse, span, latest)
        search.keys.clear()
      }
      await readKeys(search, holders)
    }
    asked = listUnknown(search)
  }
  for (const key of search.keys.values()) if (key.unresolved.length > 0) key.isLeft = true
  if (holders !== null) await decideAll(state, search, holders)
  return search.links
}

/**
 * Finds the links of installs.
 * @param isWanted whether an install that was not compared is to be decided again
 * @returns those without one
 */
async function resolve(
  { clickhouse, links: kept }: State,
  { links, open, gone }: Search,
  asked: ReadonlyMap<string, InstallName>,
  { isWanted }: { isWanted: boolean },
): Promise<NewInstall[]> {
  const unknown: [name: string, install: InstallName][] = []
  for (const [name, install] of asked) {
    const link = kept.get(name)
    if (link === undefined) unknown.push([name, install])
    else links.set(name, { link, decided: null })
  }
  if (unknown.length === 0) return []
  const stored = await readLinks(
    clickhouse,
    unknown.map(([, install]) => install),
  )
  await completeLinks(clickhouse, stored)
  for (const [name, link] of stored) {
    if (!asked.has(name) || (isWanted && !link.isCompared)) continue
    links.set(name, { link, decided: null })
    keep(kept, link)
  }
  const unlinked = unknown.filter(([name]) => !links.has(name))
  if (unlinked.length === 0) return []
  const firsts = await readFirsts(
    clickhouse,
    unlinked.map(([, install]) => install),
  )
  const found: NewInstall[] = []
  for (const [name] of unlinked) {
    const first = firsts.get(name)
    if (first === undefined) gone.add(name)
    else {
      open.set(name, { ...first, keys: placeKeys(first) })
      found.push(first)
    }
  }
  return found
}

/** Reads who has the keys of the open installs, as far as their tenants have steps. */
async function readKeys({ open, keys, readSteps }: Search, holders: KeyHolders): Promise<void> {
  const unread = new Map<string, PlacedKey>()
  for (const install of inOrder(open)) {
    takeSteps(readSteps, install.tenantId, install.keys.length)
    for (const key of install.keys) if (!keys.has(key.name)) unread.set(key.name, key)
  }
  const all = [...unread.values()]
  for (let at = 0; at < all.length; at += heldKeysQueryMax) {
    const some = all.slice(at, at + heldKeysQueryMax)
    await holders.add(some.filter(({ tenantId }) => hasSteps(readSteps, tenantId)))
    for (const key of some) {
      const { tenantId } = key
      const own = hasSteps(readSteps, tenantId) ? holders.list(key) : []
      const steps = own.map(({ deviceId }) =>
        open.has(toName({ tenantId, deviceId })) ? 1 : 1 + comparedInstallsMax,
      )
      const isLeft = !takeSteps(
        readSteps,
        tenantId,
        steps.reduce((sum, one) => sum + one, 0),
      )
      const unresolved = isLeft ? [] : own
      keys.set(key.name, {
        tenantId,
        holders: own,
        unresolved,
        isLeft,
        phones: createKeyPhones(key),
        added: 0,
      })
    }
  }
}

/** In the order of the stream: each needs the links of those before. */
const inOrder = (open: ReadonlyMap<string, OpenInstall>): OpenInstall[] =>
  [...open.values()].sort(
    (a, b) => a.streamOffset - b.streamOffset || (toName(a) < toName(b) ? -1 : 1),
  )

/**
 * The installs that share a key with the open ones, and earlier installs of their phones, where
 * they are not known yet. Of each key an install is visited until its link is known.
 */
function listUnknown({ links, open, gone, keys, compared }: Search): Map<string, InstallName> {
  const unknown = new Map<string, InstallName>()
  const isKnown = (name: string, { deviceId }: InstallName): boolean =>
    // A placeholder is the id of many devices, which are on no phone.
    links.has(name) || open.has(name) || gone.has(name) || isPlaceholderId(deviceId)
  for (const key of keys.values()) {
    const { tenantId } = key
    key.unresolved = key.unresolved.filter(({ deviceId }) => {
      const install = { tenantId, deviceId }
      const name = toName(install)
      if (!isKnown(name, install)) {
        unknown.set(name, install)
        return true
      }
      const found = links.get(name)
      for (const id of found === undefined ? [] : listKnown(found.link)) {
        const known = { tenantId, deviceId: id }
        const nameOfKnown = toName(known)
        compared.set(nameOfKnown, known)
        if (!isKnown(nameOfKnown, known)) unknown.set(nameOfKnown, known)
      }
      return false
    })
  }
  return unknown
}

async function decideAll(state: State, search: Search, holders: KeyHolders): Promise<void> {
  const { links, open, readSteps, comparedSteps } = search
  const installs = inOrder(open)
  const tenantIds = [...new Set(installs.map(({ tenantId }) => tenantId))]
  const [findParameters, firsts] = await Promise.all([
    state.readParameters(tenantIds),
    readCompared(state, search),
  ])
  for (const install of installs) {
    const { tenantId, streamOffset, receivedAtMs } = install
    const candidates = findCandidatesOf(install, search, { holders, firsts })
    const parameters =
      findParameters(tenantId, receivedAtMs) ??
      toInitialParameters(Math.max(tenantPhonesMin, holders.countInstalls(tenantId, streamOffset)))
    const decided = decideLink(install, candidates, parameters)
    links.set(toName(install), { link: decided, decided })
  }
  const steps = [...readSteps.values(), ...comparedSteps.values()]
  state.onSteps(steps.reduce((sum, one) => sum + one, 0))
}

/** What the installs of a search are compared by. */
type Read = { holders: KeyHolders; firsts: (name: string) => NewInstall | undefined }

/** The candidates of the next install in the order of the stream. */
function findCandidatesOf(
  { tenantId, traits, keys: placed, streamOffset }: OpenInstall,
  { keys, links, comparedSteps }: Search,
  { holders, firsts }: Read,
): Candidates {
  const isLeft = placed.some(({ name }) => keys.get(name)!.isLeft)
  if (isLeft || !hasSteps(comparedSteps, tenantId)) return noCandidates
  const linkOf = (deviceId: string) => links.get(toName({ tenantId, deviceId }))?.link
  const byKey = new Map(placed.map((one) => [one.key, one]))
  const candidates = findCandidates(traits, {
    holdersOf: ({ key }) => {
      const one = byKey.get(key)!
      const { count, areFew } = holders.count(one, streamOffset)
      if (!areFew) return { count, doubtful: 0, phones: null }
      const known = keys.get(one.name)!
      while ((known.holders[known.added]?.streamOffset ?? streamOffset) < streamOffset) {
        known.phones.add(linkOf(known.holders[known.added++]!.deviceId))
      }
      const { phones, countDoubtful } = known.phones
      return { count, doubtful: countDoubtful(), phones }
    },
    linkOf,
    firstOf: (deviceId) => firsts(toName({ tenantId, deviceId })),
  })
  takeSteps(comparedSteps, tenantId, candidates.steps)
  return candidates
}

/**
 * Finds the candidates that installs had at their first events, whatever was decided of them.
 * @returns those that have rows, in the order of the stream
 */
export async function findPastCandidates(
  clickhouse: Clickhouse,
  installs: readonly InstallName[],
): Promise<{ install: NewInstall; candidates: Candidates }[]> {
  const search = createSearch()
  const { links, open, gone } = search
  for (const [name, first] of await readFirsts(clickhouse, installs)) {
    open.set(name, { ...first, keys: placeKeys(first) })
  }
  const past = inOrder(open)
  if (past.length === 0) return []
  const [{ streamOffset: firstOffset }, { streamOffset: lastOffset }] = [past[0]!, past.at(-1)!]
  const holders = createKeyHolders(clickhouse, { firstOffset, lastOffset }, latestHoldersMax)
  await readKeys(search, holders)
  for (let asked = new Map(open) as Map<string, InstallName>; asked.size > 0; ) {
    const stored = await readLinks(clickhouse, [...asked.values()])
    for (const name of asked.keys()) {
      const link = stored.get(name)
      if (link === undefined) gone.add(name)
      else links.set(name, { link, decided: null })
    }
    asked = listUnknown(search)
  }
  const kept = new LRUCache<string, NewInstall>({ max: firstTraitsInMemoryMax })
  const firsts = await readCompared({ clickhouse, firsts: kept }, search)
  return past.flatMap((install) => {
    const candidates = findCandidatesOf(install, search, { holders, firsts })
    return candidates === noCandidates ? [] : [{ install, candidates }]
  })
}

/**
 * Reads the first traits of installs of phones that may be candidates; nearly always few.
 * @returns the first event with traits by name
 */
async function readCompared(
  { clickhouse, firsts: kept }: Pick<State, 'clickhouse' | 'firsts'>,
  { open, compared }: Search,
): Promise<(name: string) => NewInstall | undefined> {
  const found = new Map<string, NewInstall>(open)
  const unknown: InstallName[] = []
  for (const [name, install] of compared) {
    const first = open.get(name) ?? kept.get(name)
    if (first === undefined) unknown.push(install)
    else found.set(name, first)
  }
  if (unknown.length > 0) {
    for (const [name, first] of await readFirsts(clickhouse, unknown)) {
      found.set(name, first)
      kept.set(name, first)
    }
  }
  return (name) => found.get(name)
}
