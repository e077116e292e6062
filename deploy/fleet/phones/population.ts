/**
 * The phones of the fleet: kind, hardware, SDK, users and constant signals of each. A pure function
 * of the seed and the number of phones.
 */
import { shareOut } from '#shared/core/scoring/score-reasons.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { cleanSignals } from './clean-signals.ts'
import { drawHardware, drawSdk, drawTablet, type Hardware, type Sdk } from './hardware.ts'
import { type Kind, kinds } from './kinds.ts'
import { drawIdentity, type PhoneIdentity, sendsIdentity, toReinstalled } from './phone-identity.ts'
import { createRandom, type Random, shuffle } from './random.ts'

export type Phone = {
  index: number
  deviceId: string
  kind: Kind
  hardware: Hardware
  sdk: Sdk
  identity: PhoneIdentity
  /** The index of the phone that this is another, later install on; null for the first one. */
  installedAfter: number | null
  appVersion: string
  locale: string
  timezone: string
  /** Empty for a phone without a signed-in user. */
  users: string[]
  /** The field of the user id in its integration. */
  userField: 'user_id' | 'account_id'
  /** An account beside the user, when an integration sends both. */
  accountId: string | null
  /** Its signals, unless a session changes them. */
  signals: Signals
  /** How often it is used, relative to others. */
  activity: number
  /** The error of its clock in minutes; null when its SDK sends no `occurred_at`. */
  clockErrorMinutes: number | null
}

/** Phones of one farm: they share a model, an emulator, an app build and a pool of accounts. */
const farmSize = 24

const places: readonly (readonly [readonly [string, string], number])[] = [
  [['de-DE', 'Europe/Berlin'], 22],
  [['fr-FR', 'Europe/Paris'], 14],
  [['en-GB', 'Europe/London'], 16],
  [['en-US', 'America/New_York'], 14],
  [['pt-BR', 'America/Sao_Paulo'], 12],
  [['en-IN', 'Asia/Kolkata'], 10],
  [['vi-VN', 'Asia/Ho_Chi_Minh'], 7],
  [['pl-PL', 'Europe/Warsaw'], 5],
]

/**
 * Makes the fleet.
 * @param devices how many phones, at least 1
 * @returns phones in random order
 */
export function makePopulation(seed: number, devices: number): Phone[] {
  const counts = shareOut(
    kinds.map((kind) => kind.share),
    devices,
  )
  const drawn = kinds.flatMap((kind, at) => Array.from({ length: counts[at] ?? 0 }, () => kind))
  shuffle(drawn, createRandom(seed, 'kinds'))
  const users = createUsers(seed)
  const farmed = new Map<string, number>()
  const phones = drawn.map((kind, index) => {
    const random = createRandom(seed, `phone:${index}`)
    if (kind.usage !== 'farm')
      return makePhone({ seed, kind, index, users, random, traits: random })
    const place = farmed.get(kind.name) ?? 0
    farmed.set(kind.name, place + 1)
    // One stream of traits for the whole farm: its phones are copies of one image.
    const farm = `farm:${kind.name}:${Math.floor(place / farmSize)}`
    const traits = createRandom(seed, farm)
    return makePhone({ seed, kind, index, users, random, traits, farm })
  })
  return withReinstalls(seed, phones)
}

/** The share of people who have installed the app again. */
const reinstalledShare = 0.03

/**
 * Makes some phones the same as an earlier one, with another `device_id`. Its first install is not
 * used any more.
 */
function withReinstalls(seed: number, phones: Phone[]): Phone[] {
  const free = new Map<string, Phone[]>()
  return phones.map((phone) => {
    const { kind, sdk, index, users } = phone
    if (!kind.name.startsWith('stock-') || !sendsIdentity(sdk)) return phone
    const own = createRandom(seed, `reinstalled:${index}`)
    const name = `${kind.name} ${sdk.name}`
    const first = own.chance(reinstalledShare) ? free.get(name)?.shift() : undefined
    if (first !== undefined) return toReinstall(phone, first, own)
    if (users.length === 1) free.set(name, [...(free.get(name) ?? []), phone])
    return phone
  })
}

/** The same phone and owner, with an id of its own. */
const toReinstall = ({ index, deviceId, activity }: Phone, first: Phone, own: Random): Phone => ({
  ...first,
  index,
  deviceId,
  activity,
  identity: toReinstalled(first.identity, own),
  installedAfter: first.index,
})

type Making = {
  seed: number
  kind: Kind
  index: number
  users: Users
  /** Random numbers of this phone. */
  random: Random
  /** Random numbers that it shares with its farm. */
  traits: Random
  farm?: string
}

function makePhone({ seed, kind, index, users, random, traits, farm }: Making): Phone {
  const hardware = kind.tablet ? drawTablet(traits) : drawHardware(kind.platform, traits)
  const sdk = drawSdk(kind.platform, traits)
  const [locale, timezone] = traits.weighted(places)
  const appVersion = traits.weighted([
    ['8.14.0', 40],
    ['8.13.2', 30],
    ['8.12.0', 18],
    ['7.40.1', 12],
  ])
  const signals = cleanSignals({ platform: kind.platform, hardware, sdk }, traits)
  kind.paint(signals, traits)
  const owners = users.draw(kind, random, farm)
  const userField = traits.chance(0.06) ? 'account_id' : 'user_id'
  const namesBoth = owners.length === 1 && userField === 'user_id' && random.chance(0.05)
  return {
    index,
    deviceId: drawDeviceId(kind, sdk, random),
    kind,
    hardware,
    sdk,
    identity: drawIdentity({ seed, index, platform: kind.platform, hardware, sdk, farm }),
    installedAfter: null,
    appVersion,
    locale,
    timezone,
    users: owners,
    userField,
    accountId: namesBoth ? `acc_${random.hex(10)}` : null,
    signals,
    // A few people use an app all day, most now and then.
    activity: 0.2 + random.exponential(1),
    clockErrorMinutes: drawClockError(random),
  }
}

// Every SDK has its own form of install ids; the base64 of React Native's needs escaping in a URL.
function drawDeviceId(kind: Kind, sdk: Sdk, random: Random): string {
  if (sdk.name === 'react-native') {
    return `rn:${Buffer.from(random.hex(36), 'hex').toString('base64')}`
  }
  if (kind.platform === 'ios') return random.uuid().toUpperCase()
  return sdk.name === 'android' ? `and-${random.hex(32)}` : random.uuid()
}

function drawClockError(random: Random): number | null {
  if (random.chance(0.15)) return null
  return random.chance(0.97) ? 0 : random.int(-600, 600)
}

type Users = { draw(kind: Kind, random: Random, farm?: string): string[] }

function createUsers(seed: number): Users {
  const signedUp: string[] = []
  const signUp = (random: Random): string => {
    const number = random.int(100_000, 99_999_999)
    const user = random.chance(0.97)
      ? `usr_${number}${random.hex(6)}`
      : `${random.pick(['jürgen.müller', 'zoë', 'nguyễn.an', 'łukasz'])}+${number}@example.com`
    signedUp.push(user)
    return user
  }
  const several = (count: number, random: Random) =>
    Array.from({ length: count }, () => signUp(random))
  return {
    draw(kind, random, farm) {
      if (farm !== undefined) return drawFarmed({ seed, kind, farm, random })
      if (kind.usage === 'accounts') return several(random.int(14, 40), random)
      if (random.chance(0.12)) return []
      if (random.chance(0.08)) return several(random.int(2, 3), random)
      // A user with another phone.
      if (signedUp.length > 0 && random.chance(0.1)) return [random.pick(signedUp)]
      return [signUp(random)]
    },
  }
}

type Farming = { seed: number; kind: Kind; farm: string; random: Random }

/** Emulator farms have several accounts per phone; cloud phone farms several phones per account. */
function drawFarmed({ seed, kind, farm, random }: Farming): string[] {
  const pool = kind.name === 'cloud-phone' ? farmSize / 3 : farmSize * 3
  const accounts = new Set<string>()
  const count = random.weighted([
    [1, 40],
    [2, 30],
    [3, 20],
    [6, 10],
  ])
  while (accounts.size < count) {
    const account = random.int(1, pool)
    accounts.add(`usr_${createRandom(seed, `${farm}:account:${account}`).hex(14)}`)
  }
  return [...accounts]
}
