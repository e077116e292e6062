/**
 * Compares an install with those of a phone, field by field. Values are keyed hashes: only whether
 * they are equal, and how many phones have one, matters.
 */
import { bootToleranceMs } from '../base/limits/entities.ts'

/** What is known of an install; what its SDK did not send is null or left out. */
export type InstallTraits = {
  /** By name, such as `keychain_id`; the attested key is one. */
  identifiers: Readonly<Record<string, string>>
  /** Brand, model, storage, memory and screen together. */
  hardware: string | null
  /** Brand and model. */
  model: string | null
  memoryBytes: number | null
  /** The hardware with build, system version, locale, time zone and carrier. */
  setup: string | null
  network: string | null
  users: readonly string[]
  /** When the system started, in ms since 1970. */
  bootAtMs: number | null
}

/**
 * The levels of agreement of each field, weakest first. Level 0 stands before them: both sides know
 * the field and it differs. Traits are one field: a model has its build and screen, and a household
 * or a shop its locale and network, so that each of them alone would count the same fact again.
 */
export const levelsOf = {
  identifier: ['equal'],
  traits: ['hardware', 'setup', 'setup and network'],
  user: ['in common'],
  boot: ['equal'],
  /** A phone keeps its model: what differs is another one. */
  model: [],
  /** Whether the install leaves out the hardware that the phone is known to have. */
  omitted: [],
  /** The phone was in use after the install's system had started, and had started at another time. */
  'in use': [],
} as const

export type Field = keyof typeof levelsOf

/** How an install and a phone compare in one field. */
export type Comparison = {
  field: Field
  /** The name of the identifier; null of other fields. */
  name: string | null
  /** 0 differs; else the place in `levelsOf`, from 1. */
  level: number
  /** The key of the value in common, as `toKeys` has it; null where none is counted. */
  key: string | null
}

/** The traits of an install with when they were received, in ms since 1970; null where unknown. */
export type SeenTraits = InstallTraits & { seenAtMs: number | null }

/** A comparison with a phone, and how many phones had the value in common then. */
export type Observed = { one: Comparison; holders: number }

const toKey = (kind: string, ...values: readonly string[]): string =>
  JSON.stringify([kind, ...values])

const identifierKey = (name: string, value: string) => toKey('identifier', name, value)
/** The key of a user. */
export const toUserKey = (user: string): string => toKey('user', user)

const networkKey = ({ setup, network }: InstallTraits): string | null =>
  setup === null || network === null ? null : toKey('setup and network', setup, network)
const setupKey = ({ setup }: InstallTraits) => (setup === null ? null : toKey('setup', setup))
const hardwareKey = ({ hardware }: InstallTraits) =>
  hardware === null ? null : toKey('hardware', hardware)

/** A key of an install, with the traits that whoever has the key has too. */
export type KeyedTraits = {
  key: string
  /** Whether it is of an identifier or a user, which few phones share. */
  isPersonal: boolean
  /** The name of the identifier; null of other keys. */
  identifier: string | null
  traits: Partial<InstallTraits>
}

/** The keys by which phones with a value in common are found and counted. */
export function listKeys(install: InstallTraits): KeyedTraits[] {
  const { hardware, setup, network } = install
  const identifiers = Object.entries(install.identifiers).map(([name, value]) => {
    const key = identifierKey(name, value)
    return { key, isPersonal: true, identifier: name, traits: { identifiers: { [name]: value } } }
  })
  const users = install.users.map((user) => {
    const key = toUserKey(user)
    return { key, isPersonal: true, identifier: null, traits: { users: [user] } }
  })
  const common = [
    { key: networkKey(install), traits: { setup, network } },
    { key: setupKey(install), traits: { setup } },
    { key: hardwareKey(install), traits: { hardware } },
  ]
  const traits = common.flatMap(({ key, traits }) =>
    key === null ? [] : [{ key, isPersonal: false, identifier: null, traits }],
  )
  return [...identifiers, ...users, ...traits]
}

export const toKeys = (install: InstallTraits): string[] => listKeys(install).map(({ key }) => key)

/**
 * Compares a new install with a phone. A field that either side does not know is left out.
 * @param installs of the phone, latest last, one at least
 */
export function comparePhone(
  install: InstallTraits,
  installs: readonly SeenTraits[],
): Comparison[] {
  const identifiers = Object.entries(install.identifiers).map(([name, value]) => {
    const known = installs.map((one) => one.identifiers[name]).filter((one) => one !== undefined)
    if (known.length === 0) return null
    const key = known.includes(value) ? identifierKey(name, value) : null
    return { field: 'identifier' as const, name, level: key === null ? 0 : 1, key }
  })
  const all = [...identifiers, compareTraits(install, installs), compareUsers(install, installs)]
  return [...all, ...compareBoots(install, installs)].filter((one) => one !== null)
}

/** Values are compared and not their keys, which would be made for each install. */
function compareTraits(
  install: InstallTraits,
  installs: readonly InstallTraits[],
): Comparison | null {
  const { hardware, setup, network } = install
  const ofSetup = setup === null ? [] : installs.filter((one) => one.setup === setup)
  const ofNetwork = network === null ? [] : ofSetup.filter((one) => one.network === network)
  const toLevel = (level: number, key: string | null): Comparison => ({
    field: 'traits',
    name: null,
    level,
    key,
  })
  if (ofNetwork.length > 0) return toLevel(3, networkKey(install))
  if (ofSetup.length > 0) return toLevel(2, setupKey(install))
  const models = installs.flatMap(({ model }) => (model === null ? [] : [model]))
  if (install.model !== null && models.length > 0 && !models.includes(install.model)) {
    return { field: 'model', name: null, level: 0, key: null }
  }
  if (hardware === null) {
    const isKnown = installs.some((one) => one.hardware !== null)
    return isKnown ? { field: 'omitted', name: null, level: 0, key: null } : null
  }
  if (installs.some((one) => one.hardware === hardware)) return toLevel(1, hardwareKey(install))
  return installs.some((one) => one.hardware !== null) ? toLevel(0, null) : null
}

function compareUsers(
  { users }: InstallTraits,
  installs: readonly InstallTraits[],
): Comparison | null {
  const known = new Set(installs.flatMap((one) => one.users))
  if (users.length === 0 || known.size === 0) return null
  const common = users.find((user) => known.has(user))
  return common === undefined
    ? { field: 'user', name: null, level: 0, key: null }
    : { field: 'user', name: null, level: 1, key: toUserKey(common) }
}

function compareBoots({ bootAtMs }: InstallTraits, installs: readonly SeenTraits[]): Comparison[] {
  const known = installs.filter((one) => one.bootAtMs !== null)
  if (bootAtMs === null || known.length === 0) return []
  const toComparison = (field: 'boot' | 'in use', level: number): Comparison => ({
    field,
    name: null,
    level,
    key: null,
  })
  if (known.some((one) => Math.abs(one.bootAtMs! - bootAtMs) <= bootToleranceMs)) {
    return [toComparison('boot', 1)]
  }
  const isInUse = known.some(({ seenAtMs }) => seenAtMs !== null && bootAtMs < seenAtMs - clockMs)
  return [toComparison('boot', 0), ...(isInUse ? [toComparison('in use', 0)] : [])]
}

/** How far clocks of phones are off the service's. */
const clockMs = 300_000
