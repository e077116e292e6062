/**
 * Decides which phone an install is on: a pure function of the rows of `identity_keys` before its
 * first event, of the links of the installs that share a key with it, and of the parameters. So
 * whoever decides it finds the same. What is compared of a phone are the installs that share a key
 * with the new one, and those that these were linked with: nobody has to know all installs of a
 * phone, some of which may not be decided yet.
 */
import {
  installsPerSample,
  personalHoldersMax,
  phoneInstallsMax,
  phonesOfKeyMax,
  sampledHoldersMin,
  traitHoldersMax,
} from '../base/limits/entities.ts'
import { comparePhone, type InstallTraits, type KeyedTraits, listKeys } from './comparison.ts'
import type { ObservedInstall } from './estimate-parameters.ts'
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

/** What an install is compared with. */
export type ComparedFacts = {
  holdersOf: (key: KeyedTraits) => Holders
  /** Undefined for an install that was erased. */
  linkOf: (deviceId: string) => PhoneLink | undefined
  /** Of the install's first event with traits. */
  firstTraitsOf: (deviceId: string) => InstallTraits | undefined
}

/** The phones that an install may be on, and how many phones have each of its keys. */
export type Candidates = {
  phones: ReadonlyMap<string, Candidate>
  holdersOf: (key: string) => number
}

/** Finds the phones that an install may be on. Earlier installs with a key of it need links. */
export function findCandidates(traits: InstallTraits, facts: ComparedFacts): Candidates {
  const shared = listKeys(traits).map((keyed) => toSharers(keyed, facts))
  const counts = new Map(shared.map(({ key, count }) => [key, count]))
  return { phones: toCandidates(shared, facts), holdersOf: (key) => counts.get(key) ?? 0 }
}

/** What parameters are learned from, of an install: how it compares with its candidates. */
export const observeInstall = (
  traits: InstallTraits,
  { phones, holdersOf }: Candidates,
  phoneCount: number,
): ObservedInstall => ({
  phones: phoneCount,
  candidates: [...phones.values()].map(({ installs }) =>
    comparePhone(traits, installs).map((one) => ({
      // Thousands of them are kept, and nothing is learned from the text of a key.
      one: { ...one, key: null },
      holders: one.key === null ? 1 : holdersOf(one.key),
    })),
  ),
})

/** @param candidates as `findCandidates` has them */
export function decideLink(
  install: NewInstall,
  { phones, holdersOf }: Candidates,
  parameters: IdentityParameters,
): DecidedLink {
  const { tenantId, deviceId, traits } = install
  const known = [...phones.values()]
  const { link, identifiersShared } = linkInstall(traits, known, holdersOf, { parameters })
  // As it is stored: a stored link and one that was just decided are compared alike.
  const confidence = Math.fround(link?.confidence ?? 1)
  const own = {
    tenantId,
    deviceId,
    identifiersShared,
    parametersVersion: parameters.version,
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

function toSharers(keyed: KeyedTraits, { holdersOf, linkOf }: ComparedFacts): Sharers {
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

/** A phone, with earlier installs of it. */
export type Candidate = KnownPhone & { earlier: string[] }

/** The phones that share a key with the install which few phones have. */
function toCandidates(shared: readonly Sharers[], facts: ComparedFacts): Map<string, Candidate> {
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
  { firstTraitsOf, linkOf }: ComparedFacts,
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

/** Whether the sample alone says how many installs have a key. */
export const isSampled = (sampled: number): boolean => sampled >= sampledHoldersMin

/** Of a key of so many installs none of them is read. */
export const toHoldersMax = ({ isPersonal }: Pick<KeyedTraits, 'isPersonal'>): number =>
  isPersonal ? personalHoldersMax : traitHoldersMax

/**
 * Who counts as having a key: each install where they are few, otherwise their number.
 * @param sampled how many of them are in the sample
 * @param count how many they are, where the sample is not enough
 * @param first the first so many of them, in the order of the stream
 */
export function toHolders(
  keyed: Pick<KeyedTraits, 'isPersonal'>,
  { sampled, count }: { sampled: number; count: () => number },
  first: (most: number) => readonly string[],
): Holders {
  if (isSampled(sampled)) return { count: fromSample(sampled) }
  const all = count()
  return all < toHoldersMax(keyed) ? { installs: first(all) } : { count: all }
}
