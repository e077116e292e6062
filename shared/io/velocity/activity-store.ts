/**
 * Reads the recent activity of the devices, users and sessions of a batch of events, for velocity
 * rules. One query screens all of them; only those that may trigger a rule are then read in detail.
 * It also finds a client's retry of bytes that were stored before. The events, and all before them
 * in the stream, must have been inserted; later events change nothing.
 *
 * The cost of a batch is bounded: a hot key, which has more rows than are read, is not screened;
 * only its latest rows are read.
 */

import { LRUCache } from 'lru-cache'
import {
  activityQueryMax,
  activityRowsInMemoryMax,
  hotKeyMs,
  hotKeysMax,
  orderWindowMs,
} from '#shared/core/base/limits/history.ts'
import {
  type EventCopy,
  type FirstCopy,
  findFirstCopy,
  findReplays,
  type Replay,
} from '#shared/core/installs/replays.ts'
import { type Assertion, findReusedCounters } from '#shared/core/installs/reused-counters.ts'
import {
  type ActivityKind,
  type ActivityRow,
  metricSources,
} from '#shared/core/velocity/activity-counts.ts'
import { type Counts, countKey } from '#shared/core/velocity/correlation.ts'
import { toVelocityScreen, type VelocityScreen } from '#shared/core/velocity/velocity-screen.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  isTooMuchToRead,
} from '#shared/io/clickhouse/clickhouse.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'
import {
  type ActivityBounds,
  type ActivityKey,
  type ActivitySpan,
  activityBounds,
  queryBounded,
  readActivityRows,
  readFewRows,
  readLatestRows,
  toReadMax,
  toShardKey,
  toShortHash,
} from './activity-rows-store.ts'
import { queryScreen } from './activity-screen-store.ts'
import {
  type ActivitySubject,
  createCounting,
  isHigher,
  type KeyedSubject,
  toKeyedSubject,
} from './activity-subjects.ts'

export type Activity = {
  /** Counts as of the event; only those that exceed a rule's threshold are sure to be there. */
  counts: Counts
  /** More evidence, by the key of the count. */
  details: ReadonlyMap<string, Record<string, unknown>>
  /** Where the same bytes were stored before: then this is a client's retry, or a replay. */
  firstCopy: FirstCopy | null
  /** The highest counter of the assertion's key before it, where its own is not above that. */
  counterBefore: number | null
  /** The replay since the device's last event. */
  replay: Replay | null
}

export type ActivityStore = {
  /** @returns the activity of each subject, in their order */
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

/** Hot keys found so far, by their hash: a query finds the same id of other tenants too. */
type HotKeys = { add: (key: ActivityKey) => void; has: (key: ActivityKey) => boolean }

function createHotKeys(): HotKeys {
  const keys = new LRUCache<string, true>({ max: hotKeysMax, ttl: hotKeyMs })
  const hashOf = (key: ActivityKey) => key.slice(key.indexOf(' ') + 1)
  return {
    add: (key) => keys.set(hashOf(key), true),
    has: (key) => keys.size > 0 && keys.has(hashOf(key)),
  }
}

type SubjectBatch = {
  subjects: readonly KeyedSubject[]
  screen: VelocityScreen
  firstMs: number
  lastMs: number
  lastStreamOffset: number
}

async function countActivity(
  store: Store,
  unkeyed: readonly ActivitySubject[],
): Promise<Activity[]> {
  const subjects = unkeyed.map(toKeyedSubject)
  const screen = toVelocityScreen(new Set(subjects.map((subject) => subject.rules)))
  const firstMs = Math.min(...subjects.map((subject) => subject.receivedAtMs))
  const lastMs = Math.max(...subjects.map((subject) => subject.receivedAtMs))
  const lastStreamOffset = Math.max(...subjects.map((subject) => subject.streamOffset))
  const batch: SubjectBatch = { subjects, screen, firstMs, lastMs, lastStreamOffset }
  const keys = listKeys(batch)
  const few = await findFewRows(store, keys, lastStreamOffset)
  const screened = await screenKeys(
    store,
    batch,
    keys.filter((key) => !few.read.has(key)),
  )
  const widest = Math.max(0, ...[...screen.values()].flat().map((limit) => limit.windowSeconds))
  const windowMs = Math.max(widest * 1000, seeksOrder(subjects) ? orderWindowMs : 0)
  const span = { lastStreamOffset, afterMs: firstMs - windowMs }
  const counted = subjects.map(() => nothingCounted)
  const add = (rows: ReadonlyMap<ActivityKey, ActivityRow[]>) => {
    addCounts(subjects, rows, counted)
    addSightings(subjects, rows, screened)
    addOrder(subjects, rows, counted)
  }
  add(few.rows)
  for await (const rows of readInPieces(store, screened, span)) add(rows)
  return subjects.map((one, index) => {
    const copies = screened.copies.get(`${one.keys.device[0]} ${one.eventHash}`) ?? []
    return { ...counted[index]!, firstCopy: findFirstCopy(copies, one.streamOffset) }
  })
}

const seeksOrder = (subjects: readonly KeyedSubject[]): boolean =>
  subjects.some(({ assertion, seeksReplay }) => assertion !== null || seeksReplay)

type Counted = Pick<Activity, 'counterBefore' | 'replay'> & {
  counts: Map<string, number>
  details: Map<string, Record<string, unknown>>
}

const newCounted = (): Counted => {
  return { counts: new Map(), details: new Map(), counterBefore: null, replay: null }
}

/** The counts of nearly every event, shared by all of them. */
const nothingCounted: Counted = newCounted()

/** Adds the counts of these rows; of several users of an event the highest count is used. */
function addCounts(
  subjects: readonly KeyedSubject[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
  counted: Counted[],
): void {
  const countOf = createCounting(subjects, rows)
  subjects.forEach((one, index) => {
    for (const rule of one.rules) {
      const found = countOf(one, rule)
      if (found === null) continue
      if (counted[index] === nothingCounted) counted[index] = newCounted()
      const { counts, details } = counted[index]!
      const name = countKey(rule)
      const present = { count: counts.get(name) ?? -1, details: details.get(name) ?? null }
      if (!isHigher(found, present)) continue
      counts.set(name, found.count)
      if (found.details !== null) details.set(name, found.details)
    }
  })
}

/** Finds copies of the events in the rows of devices that were not screened. */
function addSightings(
  subjects: readonly KeyedSubject[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
  { screened, copies }: Screened,
): void {
  const copiesIn = new Map<ActivityKey, Map<number, EventCopy[]>>()
  for (const { keys, eventHash } of subjects) {
    const [key] = keys.device as [ActivityKey]
    const own = rows.get(key)
    if (screened.has(key) || own === undefined) continue
    const ofKey = copiesIn.get(key) ?? Map.groupBy(own, ({ event }) => event)
    copiesIn.set(key, ofKey)
    const found = ofKey.get(toShortHash(eventHash))
    if (found !== undefined) copies.set(`${key} ${eventHash}`, found)
  }
}

/** Finds reused counters and replays in the rows of devices. */
function addOrder(
  subjects: readonly KeyedSubject[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
  counted: Counted[],
): void {
  const indexesOf = new Map<ActivityKey, number[]>()
  subjects.forEach(({ keys, assertion, seeksReplay }, index) => {
    const [key] = keys.device as [ActivityKey]
    if ((assertion === null && !seeksReplay) || !rows.has(key)) return
    const own = indexesOf.get(key)
    if (own === undefined) indexesOf.set(key, [index])
    else own.push(index)
  })
  for (const [key, indexes] of indexesOf) {
    const own = rows.get(key)!
    const events = indexes.map((index) => {
      const { streamOffset, receivedAtMs: atMs, eventHash, assertion } = subjects[index]!
      const event = toShortHash(eventHash)
      return { streamOffset, atMs, event, ...(assertion ?? noAssertion) }
    })
    const counters = findReusedCounters(own, events)
    const replays = findReplays(own, events)
    indexes.forEach((index, at) => {
      const counterBefore = counters[at]!
      const replay = subjects[index]!.seeksReplay ? replays[at]! : null
      if (counterBefore === null && replay === null) return
      const before = counted[index] === nothingCounted ? newCounted() : counted[index]!
      counted[index] = { ...before, counterBefore, replay }
    })
  }
}

const noAssertion: Assertion = { assertedKey: 0, counter: 0 }

/** Reads the rows of all keys that may exceed a rule, in pieces that bound the memory. */
async function* readInPieces(
  { clickhouse, bounds: { rowsMax } }: Store,
  { suspects, hot }: Screened,
  span: ActivitySpan,
): AsyncGenerator<Map<ActivityKey, ActivityRow[]>> {
  const readLatest = (node: ClickhouseNode, [key]: ActivityKey[]) =>
    readLatestRows(node, key!, { ...span, rowsMax })
  const readPiece = (node: ClickhouseNode, keys: ActivityKey[]) =>
    readActivityRows(node, keys, span)
  let piece: ActivityKey[] = []
  let expected = 0
  for (const [key, rows] of suspects) {
    if (expected + rows > activityRowsInMemoryMax && piece.length > 0) {
      yield* await onNodesOf(clickhouse, piece, toShardKey, readPiece)
      piece = []
      expected = 0
    }
    piece.push(key)
    expected += rows
  }
  if (piece.length > 0) yield* await onNodesOf(clickhouse, piece, toShardKey, readPiece)
  for (const key of hot) yield* await onNodesOf(clickhouse, [key], toShardKey, readLatest)
}

type Screened = {
  /** Keys that were screened. */
  screened: Set<ActivityKey>
  /** Of these, the keys that may exceed a rule, with the number of their rows. */
  suspects: Map<ActivityKey, number>
  /** Hot keys: only their latest rows are read. */
  hot: Set<ActivityKey>
  /** The copies of events of the batch that may have several, by device and event. */
  copies: Map<string, EventCopy[]>
}

/** The keys by which the rules of a batch count. */
function listKeys({ subjects, screen }: SubjectBatch): ActivityKey[] {
  const kinds = new Set<ActivityKind>(['device'])
  for (const metric of screen.keys()) kinds.add(metricSources[metric].kind)
  const keys = new Set<ActivityKey>()
  for (const one of subjects) {
    for (const kind of kinds) for (const key of one.keys[kind]) keys.add(key)
  }
  return [...keys]
}

/** Keys whose rows have all been read, and the rows; a key may have none. */
type FewRowsFound = { read: Set<ActivityKey>; rows: Map<ActivityKey, ActivityRow[]> }

/** Reads the rows of the keys of a small batch that have few rows; the others are screened. */
async function findFewRows(
  { clickhouse, bounds, hot }: Store,
  keys: readonly ActivityKey[],
  lastStreamOffset: number,
): Promise<FewRowsFound> {
  const few: FewRowsFound = { read: new Set(), rows: new Map() }
  const some = keys.filter((key) => !hot.has(key))
  if (some.length > bounds.fewKeys) return few
  try {
    const readOf = (node: ClickhouseNode, nodeKeys: ActivityKey[]) =>
      readFewRows(node, nodeKeys, {
        lastStreamOffset,
        rowsPerKey: bounds.fewRows,
        readMax: toReadMax(nodeKeys.length, bounds),
      })
    const found = await onNodesOf(clickhouse, some, toShardKey, readOf)
    for (const key of some) {
      const rows = found.flatMap((one) => one.get(key) ?? [])
      if (rows.length >= bounds.fewRows) continue
      few.read.add(key)
      few.rows.set(key, rows)
    }
  } catch (error) {
    if (!isTooMuchToRead(error)) throw error
  }
  return few
}

/** Finds, in one pass over many keys, those that may exceed a threshold, and repeated events. */
async function screenKeys(
  store: Store,
  batch: SubjectBatch,
  keys: readonly ActivityKey[],
): Promise<Screened> {
  const screened: Screened = {
    screened: new Set(),
    suspects: new Map(),
    hot: new Set(),
    copies: new Map(),
  }
  const light: ActivityKey[] = []
  for (const key of keys) {
    if (store.hot.has(key)) screened.hot.add(key)
    else light.push(key)
  }
  screened.screened = new Set(light)
  const eventHashes = new Set(batch.subjects.map((one) => one.eventHash))
  const { rowsMax } = store.bounds
  const seeks = {
    counters: batch.subjects.some((one) => one.assertion !== null),
    replays: batch.subjects.some((one) => one.seeksReplay),
  }
  const foundHot = async (key: ActivityKey) => {
    store.hot.add(key)
    screened.hot.add(key)
    screened.screened.delete(key)
    return []
  }
  const screenOn = (node: ClickhouseNode, nodeKeys: ActivityKey[]) =>
    queryBounded(
      nodeKeys,
      (chunk, settings) =>
        queryScreen(node, chunk, { ...batch, eventHashes, seeks, rowsMax, settings }),
      foundHot,
      store.bounds,
    )
  const found = await onNodesOf(store.clickhouse, light, toShardKey, screenOn)
  for (const [tenantId, keyHash, rows, suspect, sightings] of found.flat(2)) {
    const key = `${tenantId} ${keyHash}`
    const isHot = Number(rows) > store.bounds.rowsMax
    if (isHot) store.hot.add(key)
    // A row of another tenant with the same id is not of this batch.
    if (suspect && screened.screened.has(key)) {
      if (isHot) {
        screened.hot.add(key)
        screened.screened.delete(key)
      } else screened.suspects.set(key, Number(rows))
    }
    for (const [eventHash, streamOffset, atMs, network] of sightings) {
      const [event, name] = [toShortHash(eventHash), `${key} ${eventHash}`]
      const copy = { streamOffset: Number(streamOffset), atMs: Number(atMs), event }
      const copies = screened.copies.get(name) ?? []
      screened.copies.set(name, [...copies, { ...copy, network: Number(network) }])
    }
  }
  return screened
}
