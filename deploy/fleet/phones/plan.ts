/**
 * The plan of a run: the sessions of each phone, their batches, and the time of every request. It
 * is fixed before the first request (an open loop: a slow service delays no request), and a pure
 * function of the seed.
 */
import type { Phone } from './population.ts'
import { createRandom, type Random } from './random.ts'

export type Session = {
  /** Index of its phone. */
  phone: number
  sessionId: string
  userId: string | null
  batches: number
}

export type Plan = {
  seed: number
  phones: Phone[]
  sessions: Session[]
  /** By event: the index of its session, and its place in it from 0. */
  sessionOf: Uint32Array
  batchOf: Uint16Array
  /** By arrival: the event that is sent, and when, in ms from the start. */
  eventOf: Uint32Array
  atMs: Float64Array
  /** By arrival: 1 when the event was sent before and these are the same bytes again. */
  isRepeat: Uint8Array
}

export type PlanOptions = {
  seed: number
  phones: Phone[]
  /** Requests per second, repeats included. */
  ratePerSecond: number
  durationMs: number
}

/** The share of requests that repeat earlier bytes, as SDKs do when a response is lost. */
const repeatShare = 0.02

/** Farms, scripts and account farms get at most this share of the events of a run. */
const hostileShare = 0.35

/** Plans the whole run. */
export function makePlan({ seed, phones, ratePerSecond, durationMs }: PlanOptions): Plan {
  const arrivals = Math.max(1, Math.round((ratePerSecond * durationMs) / 1000))
  const repeats = Math.floor(arrivals * repeatShare)
  const sessions = planSessions({ seed, phones, events: arrivals - repeats, durationMs })
  const { sessionOf, batchOf } = listEvents(sessions)
  const idealMs = scheduleEvents({ seed, phones, sessions, sessionOf, durationMs })
  const { order, repeated } = insertRepeats({ seed, idealMs, repeats, durationMs })
  const jitter = createRandom(seed, 'arrivals')
  const gapMs = 1000 / ratePerSecond
  const events = sessionOf.length
  return {
    seed,
    phones,
    sessions,
    sessionOf,
    batchOf,
    eventOf: order.map((entry) => (entry < events ? entry : repeated[entry - events]!)),
    isRepeat: Uint8Array.from(order, (entry) => (entry < events ? 0 : 1)),
    atMs: Float64Array.from(order, (_, slot) => (slot + jitter.next()) * gapMs),
  }
}

type SessionPlanning = { seed: number; phones: Phone[]; events: number; durationMs: number }

function planSessions({ seed, phones, events, durationMs }: SessionPlanning): Session[] {
  const random = createRandom(seed, 'sessions')
  const sessions: Session[][] = phones.map(() => [])
  let left = events
  const start = (phone: Phone, batches: number) => {
    const own = sessions[phone.index]!
    const granted = Math.min(batches, left)
    if (granted <= 0) return
    left -= granted
    own.push(makeSession(seed, phone, own.length, granted))
  }
  let hostileLeft = Math.floor(events * hostileShare)
  for (const phone of phones) {
    const sessions = hostileSessions(phone, random)
    const cost = sessions.reduce((sum, batches) => sum + batches, 0)
    if (cost === 0 || cost > hostileLeft) continue
    hostileLeft -= cost
    for (const batches of sessions) start(phone, batches)
  }
  for (const phone of phones) {
    if (sessions[phone.index]!.length === 0) start(phone, drawBatches(phone, random))
  }
  const people = phones.filter(({ kind }) => kind.usage === 'person')
  const draw = createDraw(people.length > 0 ? people : phones)
  const sessionsMax = personSessionsMax(durationMs)
  while (left > 0) {
    const phone = draw(random)
    const own = sessions[phone.index]!
    if (own.length < sessionsMax) start(phone, drawBatches(phone, random))
    else {
      // For more traffic people make longer sessions, not more of them.
      const longer = Math.min(left, random.int(1, 6))
      own[random.int(0, own.length - 1)]!.batches += longer
      left -= longer
    }
  }
  return sessions.flat()
}

function makeSession(seed: number, phone: Phone, number: number, batches: number): Session {
  const random = createRandom(seed, `session:${phone.index}:${number}`)
  const { users, kind } = phone
  const oneByOne = kind.usage === 'accounts' || number < users.length
  const userId = oneByOne ? users[number % users.length] : users[random.int(0, users.length - 1)]
  return {
    phone: phone.index,
    sessionId: phone.sdk.name === 'flutter' ? `s-${random.hex(24)}` : random.uuid(),
    userId: userId ?? null,
    batches,
  }
}

/** Batches of each session that a farm, a script or an account farm starts; none for people. */
function hostileSessions({ kind, users }: Phone, random: Random): number[] {
  if (kind.usage === 'person') return []
  if (kind.usage === 'script') return Array.from({ length: random.int(26, 42) }, () => 1)
  if (kind.usage === 'accounts') return users.map(() => random.int(1, 2))
  return Array.from({ length: random.int(3, 8) }, () => random.int(1, 3))
}

function drawBatches({ kind }: Phone, random: Random): number {
  const batches = random.weighted([
    [1, 30],
    [2, 26],
    [3, 20],
    [4, 12],
    [5, 7],
    [8, 5],
  ])
  // Signals that change within a session need several batches.
  return kind.later === undefined ? batches : batches + 1
}

/** Far below the velocity rules of the default policy: 20 sessions in 5 minutes, 60 in an hour. */
function personSessionsMax(durationMs: number): number {
  return Math.min(10 * Math.ceil(durationMs / 300_000), 40 * Math.ceil(durationMs / 3_600_000))
}

/** Draws phones by their activity, by bisection over the running sums. */
function createDraw(phones: Phone[]): (random: Random) => Phone {
  const sums: number[] = []
  let sum = 0
  for (const phone of phones) {
    sum += phone.activity
    sums.push(sum)
  }
  return (random) => {
    const at = random.next() * sum
    let low = 0
    let high = sums.length - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle]! <= at) low = middle + 1
      else high = middle
    }
    return phones[low]!
  }
}

function listEvents(sessions: Session[]): Pick<Plan, 'sessionOf' | 'batchOf'> {
  const events = sessions.reduce((sum, session) => sum + session.batches, 0)
  const sessionOf = new Uint32Array(events)
  const batchOf = new Uint16Array(events)
  let event = 0
  sessions.forEach((session, index) => {
    for (let batch = 0; batch < session.batches; batch++) {
      sessionOf[event] = index
      batchOf[event] = batch
      event++
    }
  })
  return { sessionOf, batchOf }
}

type Scheduling = Pick<Plan, 'seed' | 'phones' | 'sessions' | 'sessionOf'> & { durationMs: number }

/** The preferred time of each event, ascending for every phone. */
function scheduleEvents(options: Scheduling): Float64Array {
  const { seed, phones, sessions, sessionOf, durationMs } = options
  const idealMs = new Float64Array(sessionOf.length)
  const replaced = new Set(phones.map(({ installedAfter }) => installedAfter))
  for (let first = 0; first < sessionOf.length; ) {
    const phone = phones[sessions[sessionOf[first]!]!.phone]!
    let end = first + 1
    while (end < sessionOf.length && sessions[sessionOf[end]!]!.phone === phone.index) end++
    const random = createRandom(seed, `times:${phone.index}`)
    const whole = activeWindow(phone, end - first, durationMs, random)
    const { fromMs, lengthMs } = halfOf(whole, phone, replaced)
    const times = idealMs.subarray(first, end)
    for (let at = 0; at < times.length; at++) times[at] = fromMs + random.next() * lengthMs
    times.sort()
    first = end
  }
  return idealMs
}

function activeWindow(phone: Phone, events: number, durationMs: number, random: Random) {
  const lengths: Record<Phone['kind']['usage'], number> = {
    person: durationMs,
    farm: Math.max(3_000, durationMs * 0.25),
    accounts: events * 900,
    script: events * 500,
  }
  const lengthMs = Math.min(durationMs, lengths[phone.kind.usage])
  return { fromMs: random.next() * (durationMs - lengthMs), lengthMs }
}

/** A phone's first install is used until the half, and the next one from then on. */
function halfOf(
  { fromMs, lengthMs }: { fromMs: number; lengthMs: number },
  { index, installedAfter }: Phone,
  replaced: ReadonlySet<number | null>,
) {
  const half = lengthMs / 2
  if (installedAfter !== null) return { fromMs: fromMs + half, lengthMs: half }
  return replaced.has(index) ? { fromMs, lengthMs: half } : { fromMs, lengthMs }
}

type Repeating = { seed: number; idealMs: Float64Array; repeats: number; durationMs: number }

/**
 * The order of all arrivals. A value below the number of events is that event, one above it the
 * n-th of `repeated`, which follows its first request after 0.2 to 5 s.
 */
function insertRepeats({ seed, idealMs, repeats, durationMs }: Repeating) {
  const random = createRandom(seed, 'repeats')
  const events = idealMs.length
  const repeated = Uint32Array.from({ length: repeats }, () => random.int(0, events - 1))
  const times = new Float64Array(events + repeats)
  times.set(idealMs)
  repeated.forEach((event, at) => {
    times[events + at] = Math.min(durationMs, idealMs[event]! + 200 + random.next() * 4_800)
  })
  const order = Uint32Array.from(times, (_, at) => at)
  order.sort((a, b) => times[a]! - times[b]! || a - b)
  return { order, repeated }
}
