/**
 * Installs of simulated phones with the truth of which phone each is on: reinstalls, resets,
 * restored backups, second-hand phones, a shop's equal phones, colliding and constant identifiers,
 * and attackers who copy those of others. The same in every run.
 */
import { dayMs } from '#shared/core/base/instants.ts'
import type { InstallTraits } from '#shared/core/identity/comparison.ts'
import { createRandom, type Random } from '../../../deploy/fleet/phones/random.ts'

export type Case =
  | 'first install'
  | 'reinstall'
  | 'reset'
  | 'restored backup'
  | 'second-hand'
  | 'shop'
  | 'colliding identifier'
  | 'constant identifier'
  | 'copied identifiers'
  | 'shared firmware'
  | 'farm'
  | 'carried backup'
  | 'copied without traits'
  | 'copied whole'

/** The single traits, for implementations that compare each alone. */
export type SingleTraits = Record<
  'model' | 'build' | 'osVersion' | 'storage' | 'memory' | 'screen' | 'locale' | 'zone' | 'carrier',
  string
>

export type SimulatedInstall = {
  atMs: number
  phone: number
  case: Case
  singles: SingleTraits
  traits: InstallTraits
}

export type Phone = {
  platform: 'android' | 'ios'
  singles: SingleTraits
  identifiers: Record<string, string>
  network: string
  users: string[]
  bootAtMs: number
}

export const startMs = Date.UTC(2026, 0, 1)
export const spanMs = 180 * dayMs

/** Models by how many people have them; few are on many phones. */
const modelCount = 600
const shopPhones = 1_000
const pickRank = (random: Random, count: number, skew: number): number =>
  Math.floor(count * random.next() ** skew)

export function makeSingles(random: Random, platform: Phone['platform']): SingleTraits {
  const model = pickRank(random, modelCount, 2.5)
  const name = `${platform}-${model}`
  const storage = random.pick(['64', '128', '128', '256'])
  const locale = random.weighted([
    ['de-DE', 50],
    ['en-DE', 12],
    ['tr-DE', 8],
    ['fr-FR', 14],
    ['en-GB', 10],
    ['pl-PL', 6],
  ])
  const osVersion = `${12 + pickRank(random, 5, 1.5)}`
  return {
    model: name,
    osVersion,
    build: `${name}-${osVersion}-${pickRank(random, 6, 1.5)}`,
    storage: `${storage}-${pickRank(random, 3, 2)}`,
    memory: `${4 + 2 * (model % 4)}`,
    screen: `${model % 40}`,
    locale,
    zone: locale.endsWith('GB') ? 'Europe/London' : `Europe/${locale.slice(-2)}`,
    carrier: `carrier-${pickRank(random, 14, 1.5)}`,
  }
}

const androidIds = (random: Random) => ({
  media_drm_id: random.hex(32),
  android_id: random.hex(16),
})
const iosIds = (random: Random) => ({ keychain_id: random.hex(32), vendor_id: random.hex(32) })
const makeIds = (random: Random, platform: Phone['platform']) =>
  platform === 'android' ? androidIds(random) : iosIds(random)

export function makePhone(random: Random): Phone {
  const platform = random.chance(0.6) ? 'android' : 'ios'
  return {
    platform,
    singles: makeSingles(random, platform),
    identifiers: makeIds(random, platform),
    // A tenth of all phones are behind the shared addresses of operators.
    network: random.chance(0.1) ? `operator-${random.int(0, 400)}` : `home-${random.hex(8)}`,
    users: [`user-${random.hex(10)}`],
    bootAtMs: 0,
  }
}

/** Days pass: builds, networks and starts change, and rarely the carrier or the language. */
function live(
  phone: Phone,
  random: Random,
  { atMs, beforeMs, isSoon }: { atMs: number; beforeMs: number; isSoon: boolean },
): Phone {
  const { singles } = phone
  const isUpdated = !isSoon && random.chance(0.3)
  const build = `${singles.model}-${singles.osVersion}-${random.int(6, 12)}`
  return {
    ...phone,
    singles: {
      ...singles,
      ...(isUpdated ? { build } : {}),
      ...(!isSoon && random.chance(0.03) ? { carrier: `carrier-${random.int(0, 13)}` } : {}),
      ...(!isSoon && random.chance(0.02) ? { locale: 'en-US' } : {}),
    },
    network: random.chance(isSoon ? 0.15 : 0.35) ? `home-${random.hex(8)}` : phone.network,
    bootAtMs: isSoon ? phone.bootAtMs : toLaterBoot(phone, random, { atMs, beforeMs }),
  }
}

export const toBoot = (random: Random, atMs: number) =>
  Math.round(atMs - random.exponential(6 * dayMs))

/** A phone that was in use after a start of its system has not started since. */
function toLaterBoot(
  { bootAtMs }: Phone,
  random: Random,
  { atMs, beforeMs }: { atMs: number; beforeMs: number },
): number {
  const startedMs = toBoot(random, atMs)
  return startedMs > beforeMs ? startedMs : bootAtMs
}

export function toInstall(
  phone: Phone,
  random: Random,
  facts: Omit<SimulatedInstall, 'singles' | 'traits'>,
) {
  const { singles } = phone
  const { model, storage, memory, screen, build, osVersion, locale, zone, carrier } = singles
  const hardware = [model, storage, memory, screen].join()
  return {
    ...facts,
    singles,
    traits: {
      identifiers: { ...phone.identifiers },
      hardware,
      model,
      memoryBytes: Number(memory) * 2 ** 30,
      setup: [hardware, build, osVersion, locale, zone, carrier].join(),
      network: phone.network,
      users: random.chance(0.85) ? phone.users : [],
      // The clock of a phone is a moment off.
      bootAtMs: phone.bootAtMs + random.int(-600, 600),
    },
  }
}

export type MoreOptions = {
  phones: number
  /** Of the first half of the time. */
  victims: readonly Phone[]
  /** Takes the number of a phone. */
  take: () => number
}

export type SimulatedFleet = { phones: number; installs: SimulatedInstall[] }

/**
 * @param makeMore makes further installs
 * @returns installs in the order of time; `phones` ordinary phones, and a shop's beside them
 */
export function simulateInstalls(
  phones: number,
  seed: number,
  makeMore: (random: Random, options: MoreOptions) => SimulatedInstall[] = () => [],
): SimulatedFleet {
  const random = createRandom(seed, 'identity')
  const installs: SimulatedInstall[] = []
  const victims: Phone[] = []
  let number = 0
  const add = (phone: Phone, of: number, atMs: number, kind: Case) =>
    installs.push(toInstall(phone, random, { atMs, phone: of, case: kind }))

  for (let at = 0; at < phones; at++) {
    const own = number++
    let phone = makePhone(random)
    let kind: Case = 'first install'
    if (phone.platform === 'android' && random.chance(0.01)) {
      kind = 'colliding identifier'
      phone.identifiers.media_drm_id = `collides-${random.int(0, Math.ceil(phones / 10_000))}`
    } else if (random.chance(0.005)) {
      kind = 'constant identifier'
      const [name] = Object.keys(phone.identifiers)
      phone.identifiers[name!] = 'constant'
    }
    let atMs = startMs + random.next() * spanMs
    phone.bootAtMs = toBoot(random, atMs)
    add(phone, own, atMs, kind)
    if (victims.length < 2_000 && kind === 'first install' && atMs < startMs + spanMs / 2) {
      victims.push(phone)
    }
    const again = random.chance(0.25)
      ? random.weighted([
          [1, 70],
          [2, 20],
          [5, 10],
        ])
      : 0
    for (let times = 0; times < again; times++) {
      const isSoon = random.chance(0.4)
      const beforeMs = atMs
      atMs += isSoon ? random.exponential(600_000) : random.exponential(20 * dayMs)
      const change = random.weighted<Case>([
        ['reinstall', 78],
        ['reset', 9],
        ['second-hand', 5],
        ['restored backup', 8],
      ])
      const isSame = isSoon && change === 'reinstall'
      phone = live(phone, random, { atMs, beforeMs, isSoon: isSame })
      if (change === 'restored backup') {
        // Another phone, of the same model for one in twenty. The SDK keeps its keychain item on
        // this device alone; an older one has it carried over.
        const { platform } = phone
        const kept = platform === 'ios' ? { keychain_id: phone.identifiers.keychain_id! } : {}
        const carried = platform === 'ios' && random.chance(0.02) ? kept : {}
        const singles = random.chance(0.05) ? phone.singles : makeSingles(random, platform)
        phone = { ...phone, singles, identifiers: { ...makeIds(random, platform), ...carried } }
        phone.bootAtMs = toBoot(random, atMs)
        add(phone, number++, atMs, change)
        break
      }
      if (change !== 'reinstall') {
        const fresh = makeIds(random, phone.platform)
        const drm = phone.identifiers.media_drm_id
        const survives = drm !== undefined && random.chance(0.9) ? { media_drm_id: drm } : {}
        phone = { ...phone, identifiers: { ...fresh, ...survives } }
        // It starts again after it was last used.
        const sinceMs = Math.min(random.int(120_000, 3_600_000), (atMs - beforeMs) / 2)
        phone.bootAtMs = Math.round(atMs - sinceMs)
        if (change === 'second-hand') {
          phone.users = [`user-${random.hex(10)}`]
          phone.network = `home-${random.hex(8)}`
          phone.singles = { ...phone.singles, carrier: `carrier-${random.int(0, 13)}` }
        }
      } else if (phone.platform === 'ios' && random.chance(0.7)) {
        // The last app of its vendor was removed.
        phone = { ...phone, identifiers: { ...phone.identifiers, vendor_id: random.hex(32) } }
      }
      add(phone, own, atMs, change)
    }
  }
  addShop(random, installs, () => number++)
  addCopiers(random, installs, victims, () => number++)
  installs.push(...makeMore(random, { phones, victims, take: () => number++ }))
  installs.sort((a, b) => a.atMs - b.atMs)
  return { phones: number, installs }
}

/** A thousand phones on display, without identifiers and users. */
function addShop(random: Random, installs: SimulatedInstall[], take: () => number): void {
  const model = makePhone(random)
  for (let at = 0; at < shopPhones; at++) {
    const atMs = startMs + random.next() * spanMs
    const phone: Phone = {
      ...model,
      identifiers: {},
      network: 'shop',
      users: [],
      // They are switched on in the morning, all within an hour.
      bootAtMs: Math.floor(atMs / dayMs) * dayMs + random.int(0, 3_600_000),
    }
    installs.push(toInstall(phone, random, { atMs, phone: take(), case: 'shop' }))
  }
}

/** Attackers send the identifiers of two others from a phone of their own. */
function addCopiers(
  random: Random,
  installs: SimulatedInstall[],
  victims: readonly Phone[],
  take: () => number,
): void {
  for (let at = 0; at < 500; at++) {
    const own = makePhone(random)
    const first = random.pick(victims)
    const others = victims.filter((one) => one.platform === first.platform && one !== first)
    const [name] = Object.keys(first.identifiers)
    const identifiers = { ...random.pick(others).identifiers, [name!]: first.identifiers[name!]! }
    const atMs = startMs + (0.5 + random.next() / 2) * spanMs
    const phone: Phone = { ...own, identifiers, bootAtMs: toBoot(random, atMs) }
    const facts = { atMs, phone: take(), case: 'copied identifiers' as const }
    installs.push(toInstall(phone, random, facts))
  }
}
