/**
 * Decides which phone an install is on: a pure function of the rows of `identity_keys` before its
 * first event, of the links of the installs that share a key with it, and of the parameters. So
 * every scorer finds the same. What is compared of a phone are the first and the latest of
 * the installs that share a key with the new one, and of those that these were linked with. So a
 * decision does not need all installs of a phone, some of which may not be decided yet.
 *
 * The work is counted in steps, of which an install takes a bounded number.
 */
import {
  candidatesMax,
  comparedInstallsMax,
  installsPerSample,
  latestHoldersMax,
  personalHoldersMax,
  phoneInstallsMax,
  phonesOfKeyMax,
  resetSharersMax,
  sampledHoldersMin,
  traitHoldersMax,
} from '../base/limits/entities.ts'
import { comparePhone, type InstallTraits, type KeyedTraits, listKeys } from './comparison.ts'
import type { ObservedInstall } from './estimate-parameters.ts'
import { type Evidence, isSharedBy, type KnownPhone, linkInstall } from './link-install.ts'
import { toFixedText } from './other-phone.ts'
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
  /**
   * The identifiers by which alone it may be on a known phone, while another one differs. After a
   * reset of the phone they do, and where several phones have the same one.
   */
  doubtful: readonly string[]
  /** What it was first seen with that does not change on one phone; null where not stored. */
  fixed: string | null
  /**
   * False of an install that its tenant's bound left out: it counts as the first of its phone, and
   * nowhere for others, until it is decided again.
   */
  isCompared: boolean
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

export type First = Pick<NewInstall, 'traits' | 'receivedAtMs'>

/** By phone, the links of its installs, in the order of the stream. */
export type LinksByPhone = ReadonlyMap<string, readonly PhoneLink[]>

/** How many installs had a key before some install, and the phones of the latest of them. */
export type Holders = {
  count: number
  /** How many of the latest of them may be further phones; see `KeyPhones`. */
  doubtful: number
  /** Null where the installs are too many to lead to a phone. */
  phones: LinksByPhone | null
}

/** What an install is compared with. */
export type ComparedFacts = {
  holdersOf: (key: KeyedTraits) => Holders
  /** Undefined for an install that was erased. */
  linkOf: (deviceId: string) => PhoneLink | undefined
  /** Of the install's first event with traits. */
  firstOf: (deviceId: string) => First | undefined
}

/** The phones that an install may be on, and how many phones have each of its keys. */
export type Candidates = {
  phones: ReadonlyMap<string, Candidate>
  holdersOf: (key: string) => number
  /** Identifiers whose latest holders are each doubtful, so many that they lead to no phone. */
  doubtful: readonly string[]
  /** Phones that were looked up by a key, links that were joined and installs to compare. */
  steps: number
}

/** Finds the phones that an install may be on. Earlier installs with a key of it need links. */
export function findCandidates(traits: InstallTraits, facts: ComparedFacts): Candidates {
  const shared = listKeys(traits).map((keyed) => toSharers(keyed, facts.holdersOf(keyed)))
  const counts = new Map(shared.map(({ key, count }) => [key, count.all]))
  const found = new Set(shared.flatMap(({ candidates }) => candidates))
  const phones = new Map<string, Candidate>()
  let steps = shared.reduce((sum, { candidates }) => sum + Math.max(1, candidates.length), 0)
  for (const phoneId of [...found].slice(0, candidatesMax)) {
    const { joined, ...candidate } = toCandidate(phoneId, shared, facts)
    phones.set(phoneId, candidate)
    steps += joined + candidate.installs.length
  }
  const doubtful = shared.flatMap(({ identifier, count, candidates }) =>
    identifier !== null && candidates.length === 0 && count.doubtful > resetSharersMax
      ? [identifier]
      : [],
  )
  return { phones, holdersOf: (key) => counts.get(key) ?? 0, doubtful, steps }
}

/** An install that is not compared, and so is a phone of its own. */
export const noCandidates: Candidates = {
  phones: new Map(),
  holdersOf: () => 0,
  doubtful: [],
  steps: 0,
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
  candidates: Candidates,
  parameters: IdentityParameters,
): DecidedLink {
  const { phones, holdersOf } = candidates
  const { tenantId, deviceId, traits } = install
  const known = [...phones.values()]
  const { link, ...found } = linkInstall(traits, known, holdersOf, { parameters })
  // As it is stored: a stored link and one that was just decided are compared alike.
  const confidence = Math.fround(link?.confidence ?? 1)
  const own = {
    tenantId,
    deviceId,
    identifiersShared: found.identifiersShared || candidates.doubtful.length > 0,
    doubtful: [...new Set([...found.doubtful, ...candidates.doubtful])].sort(),
    fixed: toFixedText(traits),
    isCompared: candidates !== noCandidates,
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

/** A key, how many phones had it, and those that are found by it, which are few. */
type Sharers = KeyedTraits & {
  count: { all: number; doubtful: number }
  phones: LinksByPhone
  candidates: string[]
}

function toSharers(keyed: KeyedTraits, { count: installs, doubtful, phones }: Holders): Sharers {
  if (phones === null) {
    const count = { all: installs, doubtful: 0 }
    return { ...keyed, count, phones: new Map(), candidates: [] }
  }
  const areFew = phones.size <= phonesOfKeyMax
  // Of the latest installs many phones say that all have as many; few phones have had them all.
  const all = areFew || installs <= latestHoldersMax ? phones.size + doubtful : installs
  const count = { all, doubtful }
  return { ...keyed, count, phones, candidates: areFew ? [...phones.keys()] : [] }
}

/** A phone, with earlier installs of it. */
export type Candidate = KnownPhone & { earlier: string[] }

/** A phone as far as it shares keys with an install, also those that many phones have. */
function toCandidate(
  phoneId: string,
  shared: readonly Sharers[],
  { firstOf, linkOf }: ComparedFacts,
): Candidate & { joined: number } {
  const inCommon = shared.filter(({ phones }) => phones.has(phoneId))
  const links = listLatest(inCommon.map(({ phones }) => phones.get(phoneId)!))
  const earlier = joinInstalls(links)
  const firsts = listCompared(links).flatMap((deviceId) => {
    const first = firstOf(deviceId)
    if (first === undefined) return []
    const { traits, receivedAtMs: seenAtMs } = first
    const link = linkOf(deviceId)
    const own = Object.entries(traits.identifiers).filter(
      ([name]) => link === undefined || !isSharedBy(link, name),
    )
    return [{ ...traits, identifiers: Object.fromEntries(own), seenAtMs }]
  })
  // What an install had at a later event is known by the key that it has in common.
  const installs = [...firsts, { ...joinTraits(inCommon), seenAtMs: null }]
  const { possible } = links[0]!
  return {
    phoneId,
    installs,
    installCount: earlier.length,
    possible,
    earlier,
    joined: links.length,
  }
}

/**
 * The first link of these lists and the latest others that know as many installs as a link names,
 * in the order of the stream, as the lists are.
 */
function listLatest(lists: readonly (readonly PhoneLink[])[]): PhoneLink[] {
  const ends = lists.map(({ length }) => length)
  const latest: PhoneLink[] = []
  const installs = new Set<string>()
  while (installs.size < phoneInstallsMax) {
    const last = findLast(lists.map((links, n) => links[ends[n]! - 1]))
    if (last === undefined) return latest.reverse()
    lists.forEach((links, n) => {
      if (links[ends[n]! - 1] === last) ends[n]!--
    })
    latest.push(last)
    for (const deviceId of [...last.installs, last.deviceId]) installs.add(deviceId)
  }
  const [first] = lists.map(([link]) => link!).sort(compareLinks)
  return latest.includes(first!) ? latest.reverse() : [first!, ...latest.reverse()]
}

const findLast = (links: readonly (PhoneLink | undefined)[]): PhoneLink | undefined =>
  links.reduce((a, b) => (a === undefined || (b && compareLinks(a, b) < 0) ? b : a), undefined)

/** In the order of the stream. */
const compareLinks = (a: PhoneLink, b: PhoneLink): number =>
  a.streamOffset - b.streamOffset || (a.deviceId < b.deviceId ? -1 : 1)

/** The first install of a phone and the latest others, in the order of the stream. */
const joinInstalls = (links: readonly PhoneLink[]): string[] =>
  firstAndLatest(
    [...new Set(links.flatMap(({ installs, deviceId }) => [...installs, deviceId]))],
    phoneInstallsMax,
  )

/** The installs of a phone that a new one is compared with. */
const listCompared = (links: readonly PhoneLink[]): readonly string[] =>
  firstAndLatest([...new Set(links.flatMap(listKnown))], comparedInstallsMax)

/** The install of a link and those before it, as far as later ones are compared with them. */
export const listKnown = ({ installs, deviceId }: PhoneLink): string[] => [
  ...firstAndLatest(installs, comparedInstallsMax),
  deviceId,
]

const firstAndLatest = <T>(all: readonly T[], most: number): T[] =>
  all.length <= most ? [...all] : [all[0]!, ...all.slice(1 - most)]

const noTraits: InstallTraits = {
  identifiers: {},
  hardware: null,
  model: null,
  memoryBytes: null,
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
const toHoldersMax = ({ isPersonal }: Pick<KeyedTraits, 'isPersonal'>): number =>
  isPersonal ? personalHoldersMax : traitHoldersMax

/**
 * How many installs have a key, and whether they are so few that they lead to phones.
 * @param sampled how many of them are in the sample
 * @param countAll how many they are, where the sample is not enough
 */
export function countHolders(
  keyed: Pick<KeyedTraits, 'isPersonal'>,
  { sampled, countAll }: { sampled: number; countAll: () => number },
): { count: number; areFew: boolean } {
  if (isSampled(sampled)) return { count: fromSample(sampled), areFew: false }
  const count = countAll()
  return { count, areFew: count < toHoldersMax(keyed) }
}
