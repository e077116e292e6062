/**
 * Finds which phones the installs of a batch of events are on. An install that is not decided yet
 * is decided here, and so are those before it in the stream that share a key with it and have no
 * link either: another scorer may have them. Every scorer finds the same, because all rows before
 * an event are stored and later ones change nothing.
 *
 * Links never change, so a batch of known installs costs no query.
 */
import { LRUCache } from 'lru-cache'
import {
  firstTraitsInMemoryMax,
  linkKnownMs,
  linksInMemoryMax,
  phonesOfKeyMax,
  tenantPhonesMin,
} from '#shared/core/base/limits/entities.ts'
import type { InstallTraits } from '#shared/core/identity/comparison.ts'
import {
  type Candidates,
  type DecidedLink,
  decideLink,
  findCandidates,
  type Holders,
  type NewInstall,
  type PhoneLink,
} from '#shared/core/identity/decide-link.ts'
import { type IdentityParameters, toInitialParameters } from '#shared/core/identity/parameters.ts'
import { isPlaceholderId } from '#shared/core/telemetry/placeholder-ids.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import {
  createKeyHolders,
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
  links: LRUCache<string, PhoneLink>
  firsts: LRUCache<string, NewInstall>
}

export function createLinkFinder(
  clickhouse: Clickhouse,
  readParameters: State['readParameters'],
): LinkFinder {
  const createMemory = (): Pick<State, 'links' | 'firsts'> => ({
    links: new LRUCache({ max: linksInMemoryMax, ttl: linkKnownMs }),
    firsts: new LRUCache({ max: firstTraitsInMemoryMax }),
  })
  const state: State = { clickhouse, readParameters, ...createMemory() }
  return {
    findLinks: async (installs) => {
      const names = installs.map(toName)
      const links = await findLinks(state, new Map(names.map((name, at) => [name, installs[at]!])))
      return names.map((name) => links.get(name) ?? null)
    },
    keepLinks: (links) => {
      for (const link of links) state.links.set(toName(link), toKept(link))
    },
    // What is being read now, from before, goes into the old memory.
    forget: () => void Object.assign(state, createMemory()),
  }
}

/** Without the evidence, which nothing asks for. */
function toKept({ ...link }: PhoneLink & { evidence?: unknown }): PhoneLink {
  delete link.evidence
  return link
}

/** An install that is to be decided, with its keys. */
type OpenInstall = NewInstall & { keys: OpenKey[] }
/** A key, and who had it before the install; undefined until it is read. */
type OpenKey = PlacedKey & { holders?: Holders | undefined }

/** What is known while the installs of a batch are decided, by `toName`. */
type Search = {
  links: Map<string, FoundLink>
  /** Installs without a link. */
  open: Map<string, OpenInstall>
  /** Neither has a row: it was erased. */
  gone: Set<string>
}

async function findLinks(
  state: State,
  wanted: ReadonlyMap<string, InstallName>,
): Promise<ReadonlyMap<string, FoundLink>> {
  const search: Search = { links: new Map(), open: new Map(), gone: new Set() }
  let span: OffsetSpan | null = null
  let holders: KeyHolders | null = null
  // In each round the installs before those of the last one; few, since most are decided long ago.
  for (let asked = wanted; asked.size > 0; ) {
    const found = await resolve(state, search, asked)
    if (found.length > 0) {
      const offsets = found.map(({ streamOffset }) => streamOffset)
      const firstOffset = Math.min(...offsets)
      if (holders === null || span === null || firstOffset < span.firstOffset) {
        // Rounds go back in the stream.
        const lastOffset: number = span?.lastOffset ?? Math.max(...offsets)
        span = { firstOffset, lastOffset }
        holders = createKeyHolders(state.clickhouse, span)
        for (const { keys } of search.open.values()) for (const key of keys) key.holders = undefined
      }
      await holders.add(listUnknownKeys(search.open.values(), holders))
      for (const { keys, streamOffset } of search.open.values()) {
        for (const key of keys) key.holders ??= holders.holdersOf(key, streamOffset)
      }
    }
    if (holders === null) break
    asked = listCompared(search)
  }
  if (holders !== null) await decideAll(state, search, holders)
  return search.links
}

/** Finds the links of installs. @returns those without one */
async function resolve(
  { clickhouse, links: kept }: State,
  { links, open, gone }: Search,
  asked: ReadonlyMap<string, InstallName>,
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
  for (const [name, link] of stored) {
    if (!asked.has(name)) continue
    links.set(name, { link, decided: null })
    kept.set(name, link)
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

function listUnknownKeys(installs: Iterable<OpenInstall>, holders: KeyHolders): PlacedKey[] {
  const unknown = new Map<string, PlacedKey>()
  for (const { keys } of installs) {
    for (const key of keys) if (!holders.has(key)) unknown.set(key.name, key)
  }
  return [...unknown.values()]
}

/**
 * The installs before the open ones that share a key with them, and earlier installs of their
 * phones, where they are not known yet.
 */
function listCompared({ links, open, gone }: Search): Map<string, InstallName> {
  const unknown = new Map<string, InstallName>()
  const add = (name: string, install: InstallName): void => {
    if (links.has(name) || open.has(name) || gone.has(name)) return
    // A placeholder is the id of many devices, which are on no phone.
    if (!isPlaceholderId(install.deviceId)) unknown.set(name, install)
  }
  for (const { tenantId, keys } of open.values()) {
    for (const deviceId of keys.flatMap(listInstalls)) {
      const install = { tenantId, deviceId }
      const name = toName(install)
      add(name, install)
      for (const earlier of links.get(name)?.link.installs ?? []) {
        const other = { tenantId, deviceId: earlier }
        add(toName(other), other)
      }
    }
  }
  return unknown
}

const listInstalls = ({ holders }: OpenKey): readonly string[] =>
  holders === undefined || 'count' in holders ? [] : holders.installs

/** Decides the open installs in the order of the stream: each needs the links of those before. */
async function decideAll(
  state: State,
  { links, open }: Search,
  holders: KeyHolders,
): Promise<void> {
  const inOrder = [...open.values()].sort(
    (a, b) => a.streamOffset - b.streamOffset || (toName(a) < toName(b) ? -1 : 1),
  )
  const tenantIds = [...new Set(inOrder.map(({ tenantId }) => tenantId))]
  const [findParameters, firsts] = await Promise.all([
    state.readParameters(tenantIds),
    readCompared(state, { links, open }),
  ])
  for (const install of inOrder) {
    const { tenantId, streamOffset, receivedAtMs } = install
    const candidates = findCandidatesOf(install, links, firsts)
    const parameters =
      findParameters(tenantId, receivedAtMs) ??
      toInitialParameters(Math.max(tenantPhonesMin, holders.countInstalls(tenantId, streamOffset)))
    const decided = decideLink(install, candidates, parameters)
    links.set(toName(install), { link: decided, decided })
  }
}

/** The candidates of an install whose keys were read. */
function findCandidatesOf(
  { tenantId, traits, keys }: OpenInstall,
  links: ReadonlyMap<string, FoundLink>,
  firsts: (name: string) => InstallTraits | undefined,
): Candidates {
  const nameOf = (deviceId: string) => toName({ tenantId, deviceId })
  const holdersByKey = new Map(keys.map(({ key, holders }) => [key, holders!]))
  return findCandidates(traits, {
    holdersOf: ({ key }) => holdersByKey.get(key)!,
    linkOf: (deviceId) => links.get(nameOf(deviceId))?.link,
    firstTraitsOf: (deviceId) => firsts(nameOf(deviceId)),
  })
}

/**
 * Finds the candidates that installs had at their first events, whatever was decided of them.
 * @returns those that have rows, in the order of the stream
 */
export async function findPastCandidates(
  clickhouse: Clickhouse,
  installs: readonly InstallName[],
): Promise<{ install: NewInstall; candidates: Candidates }[]> {
  const search: Search = { links: new Map(), open: new Map(), gone: new Set() }
  const { links, open, gone } = search
  for (const [name, first] of await readFirsts(clickhouse, installs)) {
    open.set(name, { ...first, keys: placeKeys(first) })
  }
  const inOrder = [...open.values()].sort((a, b) => a.streamOffset - b.streamOffset)
  if (inOrder.length === 0) return []
  const [{ streamOffset: firstOffset }, { streamOffset: lastOffset }] = [
    inOrder[0]!,
    inOrder.at(-1)!,
  ]
  const holders = createKeyHolders(clickhouse, { firstOffset, lastOffset })
  await holders.add(listUnknownKeys(inOrder, holders))
  for (const { keys, streamOffset } of inOrder) {
    for (const key of keys) key.holders = holders.holdersOf(key, streamOffset)
  }
  for (let asked = new Map(open) as Map<string, InstallName>; asked.size > 0; ) {
    const stored = await readLinks(clickhouse, [...asked.values()])
    for (const name of asked.keys()) {
      const link = stored.get(name)
      if (link === undefined) gone.add(name)
      else links.set(name, { link, decided: null })
    }
    asked = listCompared(search)
  }
  const firsts = new LRUCache<string, NewInstall>({ max: firstTraitsInMemoryMax })
  const compared = await readCompared({ clickhouse, firsts }, search)
  return inOrder.map((install) => ({
    install,
    candidates: findCandidatesOf(install, links, compared),
  }))
}

/**
 * Reads the first traits of installs of phones that may be candidates; nearly always few. Of a key
 * that too many phones have there are none.
 * @returns the first traits by name
 */
async function readCompared(
  { clickhouse, firsts: kept }: Pick<State, 'clickhouse' | 'firsts'>,
  { links, open }: Pick<Search, 'links' | 'open'>,
): Promise<(name: string) => InstallTraits | undefined> {
  const wanted = new Map<string, InstallName>()
  for (const { tenantId, keys } of open.values()) {
    for (const key of keys) {
      const own = listInstalls(key).flatMap((deviceId) => {
        const known = links.get(toName({ tenantId, deviceId }))
        return known === undefined ? [] : [known.link]
      })
      if (new Set(own.map(({ phoneId }) => phoneId)).size > phonesOfKeyMax) continue
      for (const { deviceId, installs: earlier } of own) {
        for (const id of [deviceId, ...earlier]) {
          const name = { tenantId, deviceId: id }
          wanted.set(toName(name), name)
        }
      }
    }
  }
  const found = new Map<string, NewInstall>(open)
  const unknown: InstallName[] = []
  for (const [name, install] of wanted) {
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
  return (name) => found.get(name)?.traits
}
