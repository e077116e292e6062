/**
 * Reads what velocity rules need of the recent past, for a whole batch of events at once: of their
 * devices, users and sessions. One query screens all of them; only those that may trigger a rule
 * are then read in detail. It also tells a client's retry of bytes that had already been taken. The
 * events, and all before them in the stream, must have been inserted; later ones may have been, and
 * change nothing.
 *
 * What a batch costs is bounded whatever its events are about: a hot key, one that more events
 * share than are looked at, is not screened but asked for its latest rows alone.
 */

import { LRUCache } from 'lru-cache'
import {
  activityQueryMax,
  activityRowsInMemoryMax,
  hotKeyMs,
  hotKeysMax,
} from '#shared/core/base/limits/history.ts'
import type { VelocityRule } from '#shared/core/policies/policy.ts'
import {
  type ActivityCount,
  type ActivityKind,
  type ActivityRow,
  countRule,
  metricSources,
} from '#shared/core/velocity/activity-counts.ts'
import { type Counts, countKey } from '#shared/core/velocity/correlation.ts'
import { toVelocityScreen, type VelocityScreen } from '#shared/core/velocity/velocity-screen.ts'
import { type Clickhouse, isTooMuchToRead } from '#shared/io/clickhouse/clickhouse.ts'
import {
  type ActivityBounds,
  type ActivityKey,
  type ActivitySpan,
  activityBounds,
  askBounded,
  readActivityRows,
  readFewRows,
  readLatestRows,
  toActivityKey,
  toHash,
  toReadMax,
  toShortHash,
} from './activity-rows-store.ts'
import { askScreen } from './activity-screen-store.ts'

/** An event that is asked about. */
export type ActivitySubject = {
  tenantId: string
  deviceId: string
  sessionId: string
  /** Users and accounts alike. */
  userIds: readonly string[]
  eventId: string
  streamOffset: number
  receivedAtMs: number
  /** The velocity rules of the policy it was scored by. */
  rules: readonly VelocityRule[]
}

export type Activity = {
  /** Counts as of the event; only those that exceed a rule's threshold are sure to be there. */
  counts: Counts
  /** More evidence, by the key of the count. */
  details: ReadonlyMap<string, Record<string, unknown>>
  /** Whether the same bytes were taken before: then this is a client's retry. */
  retry: boolean
}

export type ActivityStore = {
  /** @returns one answer for each subject, in their order */
  countActivity: (subjects: readonly ActivitySubject[]) => Promise<Activity[]>
}

export function createActivityStore(
  clickhouse: Clickhouse,
  bounds: ActivityBounds = activityBounds,
): ActivityStore {
  const store: Store = { clickhouse, bounds, hot: createHotKeys() }
  return {
    countActivity: async (subjects) => {
      const answers: Activity[] = []
      for (let at = 0; at < subjects.length; at += activityQueryMax) {
        const some = subjects.slice(at, at + activityQueryMax)
        answers.push(...(await countActivity(store, some)))
      }
      return answers
    },
  }
}

type Store = { clickhouse: Clickhouse; bounds: ActivityBounds; hot: HotKeys }

/** Hot keys that were met. By their hash: the same id of another tenant would be read beside. */
type HotKeys = { add: (key: ActivityKey) => void; has: (key: ActivityKey) => boolean }

function createHotKeys(): HotKeys {
  const keys = new LRUCache<string, true>({ max: hotKeysMax, ttl: hotKeyMs })
  const hashOf = (key: ActivityKey) => key.slice(key.indexOf(' ') + 1)
  return {
    add: (key) => keys.set(hashOf(key), true),
    has: (key) => keys.size > 0 && keys.has(hashOf(key)),
  }
}

type Asked = ActivitySubject & {
  eventHash: string
  keys: Record<ActivityKind, ActivityKey[]>
}

type Question = {
  asked: readonly Asked[]
  screen: VelocityScreen
  firstMs: number
  lastStreamOffset: number
}

async function countActivity(
  store: Store,
  subjects: readonly ActivitySubject[],
): Promise<Activity[]> {
  const asked = subjects.map(toAsked)
  const screen = toVelocityScreen(new Set(subjects.map((subject) => subject.rules)))
  const firstMs = Math.min(...subjects.map((subject) => subject.receivedAtMs))
  const lastStreamOffset = Math.max(...subjects.map((subject) => subject.streamOffset))
  const question: Question = { asked, screen, firstMs, lastStreamOffset }
  const keys = listKeys(question)
  const few = await findFewRows(store, keys, lastStreamOffset)
  const screened = await screenKeys(
    store,
    question,
    keys.filter((key) => !few.read.has(key)),
  )
  const widest = Math.max(0, ...[...screen.values()].flat().map((limit) => limit.windowSeconds))
  const span = { lastStreamOffset, afterMs: firstMs - widest * 1000 }
  const counted = asked.map(() => nothingCounted)
  addCounts(asked, few.rows, counted)
  addSightings(asked, few.rows, screened)
  for await (const rows of readInPieces(store, screened, span)) {
    addCounts(asked, rows, counted)
    addSightings(asked, rows, screened)
  }
  return asked.map((one, index) => {
    const first = screened.firstSeen.get(`${one.keys.device[0]} ${one.eventHash}`)
    return { ...counted[index]!, retry: first !== undefined && first < one.streamOffset }
  })
}

type Counted = { counts: Map<string, number>; details: Map<string, Record<string, unknown>> }

/** What nearly every event has: one for all of them, so that none is made for each. */
const nothingCounted: Counted = { counts: new Map(), details: new Map() }

/** Counts what can be counted in these rows; of several users the highest counts. */
function addCounts(
  asked: readonly Asked[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
  counted: Counted[],
): void {
  const countOf = createCounting(asked, rows)
  asked.forEach((one, index) => {
    for (const rule of one.rules) {
      const found = countOf(one, rule)
      if (found === null) continue
      if (counted[index] === nothingCounted) {
        counted[index] = { counts: new Map(), details: new Map() }
      }
      const { counts, details } = counted[index]!
      const name = countKey(rule)
      if (found.count <= (counts.get(name) ?? -1)) continue
      counts.set(name, found.count)
      if (found.details !== null) details.set(name, found.details)
    }
  })
}

/** Where a device was not screened, its rows tell which of the events were there before. */
function addSightings(
  asked: readonly Asked[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
  { screened, firstSeen }: Screened,
): void {
  const firstIn = new Map<ActivityKey, Map<number, number>>()
  for (const { keys, eventHash } of asked) {
    const [key] = keys.device as [ActivityKey]
    const own = rows.get(key)
    if (screened.has(key) || own === undefined) continue
    const firsts = firstIn.get(key) ?? toFirsts(own)
    firstIn.set(key, firsts)
    const first = firsts.get(toShortHash(eventHash)) ?? Number.POSITIVE_INFINITY
    const event = `${key} ${eventHash}`
    firstSeen.set(event, Math.min(first, firstSeen.get(event) ?? Number.POSITIVE_INFINITY))
  }
}

/** By event, the first stream offset among the rows. */
function toFirsts(rows: readonly ActivityRow[]): Map<number, number> {
  const firsts = new Map<number, number>()
  for (const { event, streamOffset } of rows) {
    firsts.set(event, Math.min(streamOffset, firsts.get(event) ?? Number.POSITIVE_INFINITY))
  }
  return firsts
}

/** The rows of all that may exceed a rule, so many at a time that memory stays bounded. */
async function* readInPieces(
  { clickhouse, bounds: { rowsMax } }: Store,
  { suspects, hot }: Screened,
  span: ActivitySpan,
): AsyncGenerator<Map<ActivityKey, ActivityRow[]>> {
  let piece: ActivityKey[] = []
  let expected = 0
  for (const [key, rows] of suspects) {
    if (expected + rows > activityRowsInMemoryMax && piece.length > 0) {
      yield await readActivityRows(clickhouse, piece, span)
      piece = []
      expected = 0
    }
    piece.push(key)
    expected += rows
  }
  if (piece.length > 0) yield await readActivityRows(clickhouse, piece, span)
  for (const key of hot) yield await readLatestRows(clickhouse, key, { ...span, rowsMax })
}

function toAsked(subject: ActivitySubject): Asked {
  const { tenantId, deviceId, sessionId, userIds } = subject
  return {
    ...subject,
    eventHash: toHash(subject.eventId),
    keys: {
      device: [toActivityKey(tenantId, 'device', deviceId)],
      user: [...new Set(userIds)].map((id) => toActivityKey(tenantId, 'user', id)),
      session: [toActivityKey(tenantId, 'session', sessionId)],
    },
  }
}

type Screened = {
  /** Keys that the screen was asked about. */
  screened: Set<ActivityKey>
  /** Of those, keys that may exceed a rule, and how many rows each has. */
  suspects: Map<ActivityKey, number>
  /** Hot keys, of which the latest rows are read. */
  hot: Set<ActivityKey>
  /** The first stream offset of events asked about, by device and event. */
  firstSeen: Map<string, number>
}

/** The keys that the rules of a batch count by. */
function listKeys({ asked, screen }: Question): ActivityKey[] {
  const kinds = new Set<ActivityKind>(['device'])
  for (const metric of screen.keys()) kinds.add(metricSources[metric].kind)
  const keys = new Set<ActivityKey>()
  for (const one of asked) {
    for (const kind of kinds) for (const key of one.keys[kind]) keys.add(key)
  }
  return [...keys]
}

/** Keys of which all rows are known, and their rows; a key may have none. */
type FewRowsFound = { read: Set<ActivityKey>; rows: Map<ActivityKey, ActivityRow[]> }

/** Of a small batch, the rows of all keys that have few; the others are left to the screen. */
async function findFewRows(
  { clickhouse, bounds, hot }: Store,
  keys: readonly ActivityKey[],
  lastStreamOffset: number,
): Promise<FewRowsFound> {
  const few: FewRowsFound = { read: new Set(), rows: new Map() }
  const some = keys.filter((key) => !hot.has(key))
  if (some.length > bounds.fewKeys) return few
  try {
    const found = await readFewRows(clickhouse, some, {
      lastStreamOffset,
      rowsPerKey: bounds.fewRows,
      readMax: toReadMax(some.length, bounds),
    })
    for (const key of some) {
      const rows = found.get(key) ?? []
      if (rows.length >= bounds.fewRows) continue
      few.read.add(key)
      few.rows.set(key, rows)
    }
  } catch (error) {
    if (!isTooMuchToRead(error)) throw error
  }
  return few
}

/**
 * One pass over many keys, answering little for each: what may exceed a threshold, and which
 * events were there twice.
 */
async function screenKeys(
  store: Store,
  question: Question,
  keys: readonly ActivityKey[],
): Promise<Screened> {
  const screened: Screened = {
    screened: new Set(),
    suspects: new Map(),
    hot: new Set(),
    firstSeen: new Map(),
  }
  const light: ActivityKey[] = []
  for (const key of keys) {
    if (store.hot.has(key)) screened.hot.add(key)
    else light.push(key)
  }
  screened.screened = new Set(light)
  const eventHashes = new Set(question.asked.map((one) => one.eventHash))
  const { rowsMax } = store.bounds
  const found = await askBounded(
    light,
    (some, settings) =>
      askScreen(store.clickhouse, some, { ...question, eventHashes, rowsMax, settings }),
    async (key) => {
      store.hot.add(key)
      screened.hot.add(key)
      screened.screened.delete(key)
      return []
    },
    store.bounds,
  )
  for (const [tenantId, keyHash, rows, suspect, sightings] of found.flat()) {
    const key = `${tenantId} ${keyHash}`
    const isHot = Number(rows) > store.bounds.rowsMax
    if (isHot) store.hot.add(key)
    // Another tenant's, of an id that both have, was not asked about.
    if (suspect && screened.screened.has(key)) {
      if (isHot) {
        screened.hot.add(key)
        screened.screened.delete(key)
      } else screened.suspects.set(key, Number(rows))
    }
    for (const [eventHash, streamOffset] of sightings) {
      const event = `${key} ${eventHash}`
      const known = screened.firstSeen.get(event) ?? Number.POSITIVE_INFINITY
      screened.firstSeen.set(event, Math.min(Number(streamOffset), known))
    }
  }
  return screened
}

/**
 * Counts of one key by one rule are made once for all its events.
 * @returns a function from an asked event and a rule to its count, of several users the highest;
 *   null when none of its keys is among the rows
 */
function createCounting(
  asked: readonly Asked[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
): (of: Asked, rule: VelocityRule) => ActivityCount | null {
  const eventsOf = new Map<ActivityKey, Asked[]>()
  for (const one of asked) {
    for (const key of Object.values(one.keys).flat()) {
      if (!rows.has(key)) continue
      const events = eventsOf.get(key)
      if (events === undefined) eventsOf.set(key, [one])
      else events.push(one)
    }
  }
  const counted = new Map<string, Map<Asked, ActivityCount>>()
  const countKeyOf = (key: ActivityKey, rule: VelocityRule): Map<Asked, ActivityCount> => {
    const name = `${key} ${countKey(rule)}`
    let counts = counted.get(name)
    if (counts === undefined) {
      const events = eventsOf.get(key)!
      const moments = events.map(({ streamOffset, receivedAtMs: atMs }) => ({ streamOffset, atMs }))
      const all = countRule(rows.get(key)!, rule, moments)
      counts = new Map(events.map((event, index) => [event, all[index]!]))
      counted.set(name, counts)
    }
    return counts
  }
  return (one, rule) => {
    let highest: ActivityCount | null = null
    for (const key of one.keys[metricSources[rule.metric].kind]) {
      if (!rows.has(key)) continue
      const found = countKeyOf(key, rule).get(one)!
      if (highest === null || found.count > highest.count) highest = found
    }
    return highest
  }
}
