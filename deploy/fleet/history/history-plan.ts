/**
 * Weeks of the simulated fleet as a pure function of a seed: the users and sessions of each phone,
 * with planted stories that an analyst should find: a bad SDK release, phones that become rooted,
 * users who move to a phone of a confirmed case, accounts that become active again on a new phone,
 * sessions that flip or are shared. The planted stories are returned, so that answers can be
 * checked.
 */
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { drawIdentity, toReinstalled } from '../phones/phone-identity.ts'
import { makePopulation, type Phone } from '../phones/population.ts'
import { createRandom, type Random } from '../phones/random.ts'

/** The time of a history. */
export type HistorySpan = {
  /** Midnight UTC of its first day, in ms since 1970. */
  startMs: number
  /** Its length; the days of the stories are scaled to it. */
  days: number
  /** Days on which phones are used; the last may be a part of a day. */
  visitDays: number
  /**
   * When the last good day ends and the bad release begins, if the hourly search for spikes must
   * find it: its phones are used on the day before and after it. By default it begins after seven
   * tenths of the history.
   */
  badReleaseMs?: number
}

/** One session: the state of a phone in each of its batches, and the receipt time of each. */
export type Visit = {
  sessionId: string
  userId: string | null
  batches: { phone: Phone; atMs: number }[]
}

/** The planted stories, by the ids that an analyst should find. */
export type Stories = {
  release: { platform: string; sdkVersion: string; signal: string; fromMs: number }
  rooted: { deviceId: string; rootedAtMs: number }[]
  movedTo: { deviceId: string; users: string[] }
  woken: { userId: string; deviceId: string }[]
  flapping: string[]
  shared: string[]
  burstHourMs: number
}

export type HistoryPlan = { seed: number; visits: Visit[]; stories: Stories }

/** The stories are written for this many days. */
const storyDays = 90
const releaseDay = 55
const badReleaseDay = 65
/** From this day on people use the apps that they installed again. */
const reinstallDay = 45
const releaseVersion = '3.2.0'
const releaseSignal = 'debugger.xposed_detected'

/** The seed and the time, with the instants that depend on them. */
type Making = { seed: number; span: HistorySpan; badReleaseMs: number }

/** A day of the stories as an instant of this history. */
const toStoryMs = ({ startMs, days }: HistorySpan, day: number, hour = 0): number =>
  startMs + toStoryDay(days, day) * dayMs + hour * hourMs

const toStoryDay = (days: number, day: number): number => Math.floor((day * days) / storyDays)

/** Traffic by the hour, UTC: low at night. */
const hourWeights = [2, 1, 1, 1, 1, 2, 4, 7, 8, 8, 8, 9, 10, 9, 8, 8, 9, 10, 11, 11, 9, 7, 5, 3]

/** @param devices phones of the fleet, without those that stories add */
export function makeHistory(seed: number, devices: number, span: HistorySpan): HistoryPlan {
  const badReleaseMs = span.badReleaseMs ?? toStoryMs(span, badReleaseDay)
  const making: Making = { seed, span, badReleaseMs }
  const phones = makePopulation(seed, devices)
  const everyUser = phones.flatMap(({ users }) => users)
  const phonesOf = (user: string) => everyUser.filter((one) => one === user).length
  // A second phone of the same user would mix two stories.
  const stock = phones.filter(
    ({ kind, users, sdk }) =>
      kind.name === 'stock-android' &&
      users.length === 1 &&
      phonesOf(users[0]!) === 1 &&
      !adoptsRelease(sdk),
  )
  const take = (count: number) => stock.splice(0, count)
  const planted = new Set<Phone>()
  const visits: Visit[] = []
  const cast = {
    rooted: take(5),
    moved: take(3),
    woken: take(4),
    flapping: take(3),
    shared: take(4),
    burst: take(25),
  }
  for (const phone of [...cast.rooted, ...cast.woken]) planted.add(phone)
  const replaced = new Set(phones.map(({ installedAfter }) => installedAfter))
  for (const phone of phones) {
    if (planted.has(phone)) continue
    visits.push(...visitsOf(making, phone, replaced.has(phone.index)))
  }
  visits.push(...abuserVisits(making, phones))
  if (span.badReleaseMs !== undefined) visits.push(...releaseVisits(making, phones))
  const stories = plant(making, cast, phones, visits)
  return { seed, visits, stories }
}

/** Installs of one phone whose owner abuses the bonus for new customers. */
const abusedInstalls = 3

/** A hooked phone that installs the app again and again, each time for another account. */
function abuserVisits(making: Making, phones: readonly Phone[]): Visit[] {
  const { seed, span } = making
  const abuser = phones.find(
    ({ kind, identity: { identifiers } }) =>
      kind.name.startsWith('frida-') && Object.keys(identifiers).length > 0,
  )
  if (abuser === undefined) return []
  return Array.from({ length: abusedInstalls }, (_, n) => {
    const random = createRandom(seed, `abuser:${n}`)
    const user = `bonus-${random.hex(8)}`
    const identity = toReinstalled(abuser.identity, random)
    const phone = { ...abuser, deviceId: random.uuid(), users: [user], identity }
    const share = (n + 1) / (abusedInstalls + 1)
    const atMs = span.startMs + Math.floor(span.days * share) * dayMs + random.int(8, 20) * hourMs
    return visit(making, phone, atMs, { n: `abuser${n}`, user, batches: 2 })
  })
}

const adoptsRelease = (sdk: Phone['sdk']) => sdk.name === 'android' && sdk.version.startsWith('3.')

/** The phones of the new release on the day before it became bad, and on the day after. */
function releaseVisits(making: Making, phones: Phone[]): Visit[] {
  return phones
    .filter(({ sdk, kind }) => adoptsRelease(sdk) && kind.usage === 'person')
    .flatMap((phone) => {
      const random = createRandom(making.seed, `around-release:${phone.index}`)
      const user = phone.users[0] ?? null
      return [-1, 1].map((side) => {
        const atMs = making.badReleaseMs + side * random.int(hourMs, 20 * hourMs)
        return visit(making, phone, atMs, { n: `release${side}`, user, batches: 1 })
      })
    })
}

function visitsOf(making: Making, phone: Phone, isReplaced: boolean): Visit[] {
  const { seed, span } = making
  const random = createRandom(seed, `history:${phone.index}`)
  const { usage } = phone.kind
  if (usage === 'person') return personVisits(making, phone, random, isReplaced)
  const { days } = span
  const firstMs = dayAt(span, random, toStoryDay(days, 2), toStoryDay(days, 84))
  const count = { farm: random.int(3, 8), accounts: phone.users.length, script: random.int(26, 42) }
  // A script's sessions fit into an hour, farms and account farms take days.
  const stepMs = { farm: 7 * hourMs, accounts: 3 * hourMs, script: 80_000 }[usage]
  return Array.from({ length: count[usage] }, (_, n) => {
    const user = phone.users[n % Math.max(1, phone.users.length)] ?? null
    return visit(making, phone, firstMs + n * stepMs, {
      n,
      user,
      batches: usage === 'farm' ? 2 : 1,
    })
  }).filter((one) => one.batches[0]!.atMs < span.startMs + span.visitDays * dayMs)
}

/** @param isReplaced whether the app is installed again later, as another device */
function personVisits(making: Making, phone: Phone, random: Random, isReplaced: boolean): Visit[] {
  const { span } = making
  const again = Math.max(1, toStoryDay(span.days, reinstallDay))
  const drawn = random.int(0, toStoryDay(span.days, 70))
  const installed = phone.installedAfter === null ? drawn : Math.max(again, drawn)
  const joined = isReplaced ? Math.min(again - 1, drawn) : installed
  const count = 2 + Math.floor(phone.activity * 2.5)
  return Array.from({ length: count }, (_, n) => {
    const atMs = dayAt(span, random, joined, isReplaced ? again : span.visitDays)
    const user = phone.users.length === 0 ? null : random.pick(phone.users)
    return visit(making, phone, atMs, { n, user, batches: random.int(1, 3) })
  })
}

function dayAt(span: HistorySpan, random: Random, fromDay: number, untilDay: number): number {
  const hour = random.weighted(hourWeights.map((weight, at) => [at, weight] as const))
  const day = random.int(fromDay, untilDay - 1)
  return span.startMs + day * dayMs + hour * hourMs + random.int(0, hourMs - 400_000)
}

type VisitFacts = { n: number | string; user: string | null; batches: number }

function visit(making: Making, phone: Phone, atMs: number, facts: VisitFacts): Visit {
  const { n, user, batches } = facts
  const random = createRandom(making.seed, `visit:${phone.deviceId}:${n}`)
  const sessionId = phone.sdk.name === 'flutter' ? `s-${random.hex(24)}` : random.uuid()
  const current = phoneAt(making, phone, atMs, random)
  const batchCount = phone.kind.later === undefined ? batches : batches + 1
  return {
    sessionId,
    userId: user,
    batches: Array.from({ length: batchCount }, (_, batch) => ({
      phone: current,
      atMs: atMs + batch * random.int(20_000, 90_000),
    })),
  }
}

/** The state of a phone at a time: its SDK may be newer, and more people use a VPN at night. */
function phoneAt(making: Making, phone: Phone, atMs: number, random: Random): Phone {
  const { seed, span, badReleaseMs } = making
  let current = phone
  const device = createRandom(seed, `release:${phone.deviceId}`)
  const adoptionMs = (3 * dayMs * span.days) / storyDays
  const adoptedMs = toStoryMs(span, releaseDay) + device.next() * adoptionMs
  const badly = device.chance(span.badReleaseMs === undefined ? 0.35 : 0.6)
  if (adoptsRelease(phone.sdk) && atMs >= adoptedMs) {
    current = { ...current, sdk: { ...phone.sdk, version: releaseVersion, age: 1 } }
    const bad = badly && atMs >= badReleaseMs
    if (bad) current = painted(current, 'debugger', { xposed_detected: true })
  }
  const hour = new Date(atMs).getUTCHours()
  if (hour < 5 && phone.kind.usage === 'person' && random.chance(0.3)) {
    current = painted(current, 'network', { vpn_active: true })
  }
  return current
}

function painted(
  phone: Phone,
  category: keyof Phone['signals'],
  values: Record<string, unknown>,
): Phone {
  const { signals } = phone
  return { ...phone, signals: { ...signals, [category]: { ...signals[category], ...values } } }
}

type Cast = Record<'rooted' | 'moved' | 'woken' | 'flapping' | 'shared' | 'burst', Phone[]>

function plant(making: Making, cast: Cast, phones: Phone[], visits: Visit[]): Stories {
  const { seed, span, badReleaseMs } = making
  const at = (day: number, hour = 12) => toStoryMs(span, day, hour)
  const add = (phone: Phone, atMs: number, n: string, facts: Partial<VisitFacts> = {}) => {
    const user = phone.users[0] ?? null
    const one = visit(making, phone, atMs, { n, user, batches: 2, ...facts })
    visits.push(one)
    return one
  }
  const rooted = cast.rooted.map((phone, n) => {
    const root = { su_binary: true, magisk_detected: true, bootloader_unlocked: true }
    const rootedAtMs = at(40 + 7 * n)
    add(phone, at(10), 'clean')
    add(phone, at(30), 'still-clean')
    add(painted(phone, 'root', root), rootedAtMs, 'rooted')
    add(painted(phone, 'root', root), rootedAtMs + dayMs, 'still-rooted')
    return { deviceId: phone.deviceId, rootedAtMs }
  })
  const [target] = phones.filter(({ kind }) => kind.name === 'repackaged')
  const movedTo = { deviceId: target?.deviceId ?? '', users: [] as string[] }
  if (target !== undefined) add(target, at(20), 'first-case')
  for (const [n, phone] of cast.moved.entries()) {
    if (target === undefined) break
    const user = phone.users[0]!
    add(phone, at(15), 'before')
    add(target, at(86) + n * hourMs, `moved-${n}`, { user })
    movedTo.users.push(user)
  }
  const woken = cast.woken.map((phone, n) => {
    const userId = phone.users[0]!
    const deviceId = createRandom(seed, `woken:${n}`).uuid()
    add(phone, at(2), 'long-ago')
    add(phone, at(5 + n), 'last')
    add({ ...phone, deviceId, identity: identityOfNext(phone, seed) }, at(70 + n), 'back')
    return { userId, deviceId }
  })
  return {
    release: {
      platform: 'android',
      sdkVersion: releaseVersion,
      signal: releaseSignal,
      fromMs: badReleaseMs,
    },
    rooted,
    movedTo: { ...movedTo, users: movedTo.users.sort() },
    woken,
    ...plantSessions(cast, add, at),
    burstHourMs: plantBurst(cast.burst, at(33, 14), add),
  }
}

/** Of the user's next phone, which is of the same model. */
const identityOfNext = ({ index, kind, hardware, sdk }: Phone, seed: number) =>
  drawIdentity({
    seed,
    index: -1 - index,
    platform: kind.platform,
    hardware,
    sdk,
    farm: undefined,
  })

function plantSessions(
  cast: Cast,
  add: (phone: Phone, atMs: number, n: string, facts?: Partial<VisitFacts>) => Visit,
  at: (day: number) => number,
): Pick<Stories, 'flapping' | 'shared'> {
  const flapping = cast.flapping.map((phone) => {
    const one = add(phone, at(50), 'flapping', { batches: 6 })
    for (const [n, batch] of one.batches.entries()) {
      batch.phone = painted(batch.phone, 'root', { su_binary: n % 2 === 1 })
      batch.atMs = at(50) + n * 60_000
    }
    return one.sessionId
  })
  const shared = [0, 2].flatMap((first) => {
    const [victim, thief] = cast.shared.slice(first, first + 2)
    // A small fleet has too few phones.
    if (victim === undefined || thief === undefined) return []
    const one = add(victim, at(60), 'shared')
    const two = add(thief, at(61), 'shared', { user: one.userId })
    two.sessionId = one.sessionId
    return [one.sessionId]
  })
  return { flapping, shared }
}

/** Twenty-five phones, hooked with the same tool within one hour. */
function plantBurst(
  phones: Phone[],
  burstHourMs: number,
  add: (phone: Phone, atMs: number, n: string, facts?: Partial<VisitFacts>) => Visit,
): number {
  for (const [n, like] of phones.slice(0, 25).entries()) {
    const phone = { ...like, deviceId: createRandom(n, 'burst').uuid(), users: [] }
    const hooked = painted(phone, 'debugger', { xposed_detected: true, hook_framework: 'lsposed' })
    add(hooked, burstHourMs + n * 120_000, 'burst', { user: null, batches: 1 })
  }
  return burstHourMs
}
