/**
 * Decides which phone an install is on: a pure function of the rows of `identity_keys` before its
 * first event, of the links of the installs that share a key with it, and of the parameters. So
 * whoever decides it finds the same. What is compared of a phone are the installs that share a key
 * with the new one, and those that these were linked with: nobody has to know all installs of a
 * phone, some of which may not be decided yet.
 */
import { installsPerSample, phoneInstallsMax, phonesOfKeyMax } from '../base/limits/entities.ts'
import { type InstallTraits, type KeyedTraits, listKeys } from './comparison.ts'
import { type Evidence, type KnownPhone, linkInstall } from './link-install.ts'
import type { IdentityParameters } from './parameters.ts'
import { toPhoneId } from './phone-id.ts'

export const linkKinds = ['first', 'linked', 'possible'] as const
export type LinkKind = (typeof linkKinds)[number]

/** Which phone an install is on, as it was decided once for all. */
export type PhoneLink = {
  tenantId: string
  deviceId: string
  phoneId: string
  kind: LinkKind
  /** What the first install of its phone may be on too, too uncertain to be joined. */
  possible: KnownPhone['possible']
  confidence: number
  identifiersShared: boolean
  /** Earlier installs of the phone, in the order of the stream: the first and the latest others. */
  installs: readonly string[]
  parametersVersion: number
  /** Of its first event with traits. */
  streamOffset: number
  receivedAtMs: number
}

/** A link with what it was decided by. */
export type DecidedLink = PhoneLink & { evidence: readonly Evidence[] }

/** The first event with traits of an install. */
export type NewInstall = {
  tenantId: string
  deviceId: string
  traits: InstallTraits
  streamOffset: number
  receivedAtMs: number
}

/** The installs that had a key before some install, or how many they were. */
export type Holders = { installs: readonly string[] } | { count: number }

export type LinkFacts = {
  holdersOf: (key: KeyedTraits) => Holders
  /** Undefined for an install that was erased. */
  linkOf: (deviceId: string) => PhoneLink | undefined
  /** Of the install's first event with traits. */
  firstTraitsOf: (deviceId: string) => InstallTraits | undefined
  parameters: IdentityParameters
}

/** Decides an install. Earlier installs that share a key with it must have their links. */
export function decideLink(install: NewInstall, facts: LinkFacts): DecidedLink {
  const { tenantId, deviceId, traits } = install
  const shared = listKeys(traits).map((keyed) => toSharers(keyed, facts))
  const counts = new Map(shared.map(({ key, count }) => [key, count]))
  const phones = toCandidates(shared, facts)
  const known = [...phones.values()]
  const { link, identifiersShared } = linkInstall(
    traits,
    known,
    (key) => counts.get(key) ?? 0,
    facts,
  )
  // As it is stored: a stored link and one that was just decided are compared alike.
  const confidence = Math.fround(link?.confidence ?? 1)
  const own = {
    tenantId,
    deviceId,
    identifiersShared,
    parametersVersion: facts.parameters.version,
    streamOffset: install.streamOffset,
    receivedAtMs: install.receivedAtMs,
    evidence: link?.evidence ?? [],
  }
  if (link?.kind === 'linked') {
    const { phoneId } = link
    const { possible, earlier } = phones.get(phoneId)!
    return { ...own, phoneId, kind: 'linked', possible, confidence, installs: earlier }
  }
  const phoneId = toPhoneId(tenantId, deviceId)
  if (link === null) {
    return { ...own, phoneId, kind: 'first', possible: null, confidence, installs: [] }
  }
  const possible = { phoneId: link.phoneId, confidence }
  return { ...own, phoneId, kind: 'possible', possible, confidence, installs: [] }
}

/** A key, how many phones had it, and the installs that are known to, where they are few. */
type Sharers = KeyedTraits & { count: number; links: PhoneLink[]; hasCandidates: boolean }

function toSharers(keyed: KeyedTraits, { holdersOf, linkOf }: LinkFacts): Sharers {
  const holders = holdersOf(keyed)
  if ('count' in holders) {
    return { ...keyed, count: holders.count, links: [], hasCandidates: false }
  }
  const links = holders.installs.map(linkOf).filter((link) => link !== undefined)
  // Shared identifiers are nobody's.
  const own = keyed.isIdentifier ? links.filter((link) => !link.identifiersShared) : links
  const count = new Set(own.map(({ phoneId }) => phoneId)).size
  return { ...keyed, count, links: own, hasCandidates: count <= phonesOfKeyMax }
}

type Candidate = KnownPhone & { earlier: string[] }

/** The phones that share a key with the install which few phones have. */
function toCandidates(shared: readonly Sharers[], facts: LinkFacts): Map<string, Candidate> {
  const found = new Set(
    shared.flatMap(({ hasCandidates, links }) =>
      hasCandidates ? links.map(({ phoneId }) => phoneId) : [],
    ),
  )
  const sharing = new Map<string, Map<PhoneLink, KeyedTraits[]>>()
  for (const { links, ...keyed } of shared) {
    for (const link of links) {
      if (!found.has(link.phoneId)) continue
      const ofPhone = sharing.get(link.phoneId) ?? new Map<PhoneLink, KeyedTraits[]>()
      sharing.set(link.phoneId, ofPhone)
      ofPhone.set(link, [...(ofPhone.get(link) ?? []), keyed])
    }
  }
  return new Map(
    [...sharing].map(([phoneId, ofPhone]) => [phoneId, toCandidate(phoneId, ofPhone, facts)]),
  )
}

function toCandidate(
  phoneId: string,
  sharing: ReadonlyMap<PhoneLink, readonly KeyedTraits[]>,
  { firstTraitsOf, linkOf }: LinkFacts,
): Candidate {
  const links = [...sharing.keys()].sort(
    (a, b) => a.streamOffset - b.streamOffset || (a.deviceId < b.deviceId ? -1 : 1),
  )
  const earlier = joinInstalls(links)
  const firsts = earlier.flatMap((deviceId) => {
    const traits = firstTraitsOf(deviceId)
    if (traits === undefined) return []
    return [linkOf(deviceId)?.identifiersShared ? { ...traits, identifiers: {} } : traits]
  })
  // What an install had at a later event is known by the key that it has in common.
  const inCommon = links.map((link) => joinTraits(sharing.get(link)!))
  const installs = [...firsts, ...inCommon]
  const { possible } = links[0]!
  return { phoneId, installs, installCount: earlier.length, possible, earlier }
}

/** The first install of a phone and the latest others, in the order of the stream. */
function joinInstalls(links: readonly PhoneLink[]): string[] {
  const all = [...new Set(links.flatMap(({ installs, deviceId }) => [...installs, deviceId]))]
  return all.length <= phoneInstallsMax ? all : [all[0]!, ...all.slice(1 - phoneInstallsMax)]
}

const noTraits: InstallTraits = {
  identifiers: {},
  hardware: null,
  setup: null,
  network: null,
  users: [],
  bootAtMs: null,
}

function joinTraits(keyed: readonly KeyedTraits[]): InstallTraits {
  const identifiers: Record<string, string> = {}
  const users: string[] = []
  const all: InstallTraits = { ...noTraits, identifiers, users }
  for (const { traits } of keyed) {
    Object.assign(identifiers, traits.identifiers)
    users.push(...(traits.users ?? []))
    all.hardware ??= traits.hardware ?? null
    all.setup ??= traits.setup ?? null
    all.network ??= traits.network ?? null
  }
  return all
}

/** How many installs a sample stands for. */
export const fromSample = (sampled: number): number => sampled * installsPerSample
